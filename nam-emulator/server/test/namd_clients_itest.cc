// The real msa-namd: what processes on its host may do, and what they may not.
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "msa/adapters/process/files.h"
#include "msa/nam/atomics.h"
#include "msa/namd/book.h"

#include "namd_fixture.h"

namespace msa::namd::test {
namespace {

using nam::LockMode;
using ::testing::HasSubstr;
using NamdClients = NamdTest;

// A child of the test that runs `body` with a pipe whose end the test holds; killed when the test is over.
class Child {
 public:
  explicit Child(const std::function<void(int report)>& body) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    report_.reset(ends[0]);
  }
  ~Child() { Kill(); }
  // What the body has written, one byte; 0 if it did not in time.
  char Report() const {
    pollfd wait{report_.get(), POLLIN, 0};
    char byte = 0;
    if (::poll(&wait, 1, static_cast<int>(kLimit.count())) <= 0 || ::read(report_.get(), &byte, 1) != 1)
      return 0;
    return byte;
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd report_;
};

void Say(int report, bool good) { [[maybe_unused]] const auto n = ::write(report, good ? "y" : "n", 1); }

TEST_F(NamdClients, KeepsFewFilesForAClientThatDoesNotReadItsAnswers) {
  StartWithExtent();
  const auto descriptors = [this] {
    const auto names = ListDirectory("/proc/" + std::to_string(namd_.pid) + "/fd");
    return names.ok() ? names->size() : 0;
  };
  TestClient flood = Client();
  const std::size_t before = descriptors();
  const std::string blob = Blob();
  const std::string attach =
      wire::Pack(wire::NamAttach{.blob = blob, .client = NamClientId(1), .map = true}, 1);
  std::size_t sent = 0;
  constexpr std::size_t kRequests = 3000;
  // Until namd reads no more: it answers others, and the pipe stays full.
  std::string left;
  for (int refused = 0; refused < 20 && sent < kRequests;) {
    if (left.empty()) left = attach;
    const ssize_t n = ::send(flood.socket.fd(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) left.erase(0, static_cast<std::size_t>(n));
    if (left.empty()) ++sent;
    refused = n > 0 ? 0 : refused + 1;
    if (n > 0) continue;
    TestClient other = Client();
    ASSERT_TRUE(other.Attach(blob, 2).status.ok());
  }
  EXPECT_LT(sent, kRequests);
  EXPECT_LT(descriptors(), before + 32);
  // It goes on with each file that is read.
  if (!left.empty()) ++sent;
  for (std::size_t answered = 0; answered < sent; ++answered) {
    if (!left.empty()) {
      const ssize_t n = ::send(flood.socket.fd(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) left.erase(0, static_cast<std::size_t>(n));
    }
    const auto frame = flood.socket.Receive(kLimit);
    ASSERT_TRUE(frame && frame->type == wire::NamAttached::kType) << answered << " of " << sent;
    ASSERT_FALSE(flood.socket.files.empty());
    flood.socket.files.pop_front();
  }
}

TEST_F(NamdClients, HandsTheFileOutAndBothSeeTheSameMemory) {
  StartWithExtent();
  TestClient client = Client();
  const auto attached = client.Attach(Blob(), 1);
  ASSERT_TRUE(attached.status.ok()) << attached.status.message();
  EXPECT_EQ(attached.answer.owner, 1u);
  EXPECT_EQ(attached.answer.header_bytes, Bytes(nam::HeaderBytes(2)));
  const Mapping mapping(attached.file.get(), attached.answer);
  ASSERT_TRUE(mapping);
  const std::int64_t value = 40;
  std::memcpy(mapping.view().data() + 8, &value, sizeof value);
  EXPECT_EQ(client.FetchAdd(attached.answer.attachment, 8, 2), 40);
  EXPECT_EQ(client.FetchAdd(attached.answer.attachment, 8, 0), 42);
  EXPECT_EQ(mapping.view().owner(1).process.load(), static_cast<std::uint64_t>(::getpid()))
      << "and not its client number, by which others could pass for it";
  EXPECT_EQ(mapping.view().header().highest_owner.load(), 1u);
}

TEST_F(NamdClients, HandsAReadOnlyDescriptorOutForAReadOnlyLease) {
  StartWithExtent();
  TestClient client = Client();
  const auto attached = client.Attach(Blob(NamRights::kRead | NamRights::kMap), 1);
  ASSERT_TRUE(attached.file);
  EXPECT_EQ(::fcntl(attached.file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, attached.file.get(), 0), MAP_FAILED);
  EXPECT_NE(::ftruncate(attached.file.get(), 0), 0);
  client.FetchAdd(attached.answer.attachment, 0, 1);
  EXPECT_EQ(client.failure.code(), Code::kPermissionDenied);
  EXPECT_EQ(client.Lock(attached.answer.attachment, 0, LockMode::kShared), true);
}

TEST_F(NamdClients, HandsNoFileOutWithoutTheRightToMap) {
  StartWithExtent();
  TestClient client = Client();
  const auto attached = client.Attach(Blob(NamRights::kRead | NamRights::kWrite), 1);
  ASSERT_TRUE(attached.status.ok());
  EXPECT_FALSE(attached.file);
  EXPECT_EQ(client.FetchAdd(attached.answer.attachment, 0, 1), 0) << "by namd's own hand it may";
}

TEST_F(NamdClients, RefusesWrongSignaturesOldGenerationsAndUnknownExtents) {
  StartWithExtent();
  TestClient client = Client();
  wire::NamLease lease = controller_->LeaseOf(kExtent, ::geteuid());
  std::string forged = controller_->Sign(lease);
  forged.back() = static_cast<char>(forged.back() ^ 1);
  EXPECT_EQ(client.Attach(forged, 1).status.code(), Code::kUnauthenticated);
  lease.system ^= 1;
  EXPECT_EQ(client.Attach(controller_->Sign(lease), 1).status.code(), Code::kUnauthenticated);
  lease.system ^= 1;
  lease.uuid.low ^= 1;
  EXPECT_EQ(client.Attach(controller_->Sign(lease), 1).status.code(), Code::kNotFound);
  EXPECT_EQ(client.Attach("", 1).status.code(), Code::kUnauthenticated);
  EXPECT_EQ(client.Attach(Blob(), 0).status.code(), Code::kInvalidArgument);
  const ExtentKey newer{kExtent.uuid, Generation(2)};
  ASSERT_TRUE(controller_->AllocateAndCommit(newer, {64}));
  ASSERT_TRUE(client.Attach(controller_->Sign(controller_->LeaseOf(newer, ::geteuid())), 1).status.ok());
  const std::string old = Blob();
  EXPECT_EQ(controller_->AwaitDone(controller_->Free(kExtent))->code, 0);
  EXPECT_EQ(client.Attach(old, 1).status.code(), Code::kFailedPrecondition);
}

TEST_F(NamdClients, RefusesARevokedLeaseAlsoAfterARestart) {
  StartWithExtent();
  wire::NamLease lease = controller_->LeaseOf(kExtent, ::geteuid());
  const std::string blob = controller_->Sign(lease);
  TestClient client = Client();
  const auto attached = client.Attach(blob, 1);
  ASSERT_TRUE(attached.status.ok());
  ASSERT_EQ(client.Lock(attached.answer.attachment, 0, LockMode::kExclusive), true);
  controller_->Revoke({lease.lease});
  EXPECT_TRUE(
      Eventually(kLimit, [&] { return !client.Lock(attached.answer.attachment, 1, LockMode::kShared); }));
  EXPECT_EQ(client.failure.code(), Code::kFailedPrecondition);
  EXPECT_EQ(client.Attach(blob, 1).status.code(), Code::kFailedPrecondition);
  const Mapping mapping(attached.file.get(), attached.answer);
  EXPECT_EQ(mapping.view().lock(0).exclusive.load(), 0u) << "its locks are free";
  Restart();
  ASSERT_TRUE(controller_->Connect());
  TestClient again = Client();
  EXPECT_TRUE(Eventually(kLimit, [&] { return again.Attach(blob, 1).status.code() != Code::kUnavailable; }));
  EXPECT_EQ(again.Attach(blob, 1).status.code(), Code::kFailedPrecondition);
}

TEST_F(NamdClients, RefusesALeaseInTheHandsOfAnotherUser) {
  // As root, in CI, deploy/test fails on a skip.
  if (::geteuid() != 0) GTEST_SKIP() << "posing as another user needs root";
  StartWithExtent();
  const std::string root = Blob();
  const std::string user = controller_->Sign(controller_->LeaseOf(kExtent, 4711));
  const Child child([&](int report) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(4711) != 0 || ::setuid(4711) != 0) return Say(report, false);
    TestClient client(Socket());
    Say(report, client.Attach(root, 1).status.code() == Code::kPermissionDenied &&
                    client.Attach(user, 1).status.ok());
  });
  EXPECT_EQ(child.Report(), 'y');
  EXPECT_EQ(Client().Attach(user, 2).status.code(), Code::kPermissionDenied) << "not even root";
}

TEST_F(NamdClients, FreesTheExclusiveLockOfAKilledClientWithinASecond) {
  StartWithExtent();
  const std::string blob = Blob();
  Child child([&](int report) {
    TestClient client(Socket());
    const auto attached = client.Attach(blob, 7);
    const Mapping mapping(attached.file.get(), attached.answer);
    const bool taken = mapping && nam::TryLock(mapping.view().lock(0), LockMode::kExclusive,
                                               attached.answer.owner, attached.answer.owner);
    if (mapping) mapping.view().lock(1).elements = attached.answer.owner;  // dies in an update
    Say(report, taken);
    for (;;) ::pause();
  });
  ASSERT_EQ(child.Report(), 'y');
  TestClient client = Client();
  const auto attached = client.Attach(blob, 8);
  ASSERT_EQ(attached.answer.owner, 2u);
  ASSERT_EQ(client.Lock(attached.answer.attachment, 0, LockMode::kExclusive), false);
  client.FetchAdd(attached.answer.attachment, 0, 1);
  EXPECT_EQ(client.failure.code(), Code::kDeadlineExceeded) << "the segment is locked";
  child.Kill();
  EXPECT_TRUE(Eventually(
      kLimit, [&] { return client.Lock(attached.answer.attachment, 0, LockMode::kExclusive) == true; }));
  const Mapping mapping(attached.file.get(), attached.answer);
  EXPECT_EQ(mapping.view().lock(1).elements.load(), 0u);
}

TEST_F(NamdClients, KeepsTheLocksOfALivingClientOverARestart) {
  StartWithExtent();
  const std::string blob = Blob();
  TestClient client = Client();
  const auto before = client.Attach(blob, 7);
  ASSERT_EQ(client.Lock(before.answer.attachment, 0, LockMode::kExclusive), true);
  Restart();
  ASSERT_TRUE(controller_->Connect());
  TestClient other = Client();
  TestClient::Attached attached;
  ASSERT_TRUE(Eventually(kLimit, [&] { return (attached = other.Attach(blob, 8)).status.ok(); }));
  EXPECT_EQ(attached.answer.owner, 2u);
  EXPECT_EQ(other.Lock(attached.answer.attachment, 0, LockMode::kExclusive), false);
  TestClient again = Client();
  const auto after = again.Attach(blob, 7);
  EXPECT_EQ(after.answer.owner, 1u) << "its number of before";
  again.Close();
  EXPECT_TRUE(Eventually(
      kLimit, [&] { return other.Lock(attached.answer.attachment, 0, LockMode::kExclusive) == true; }));
}

TEST_F(NamdClients, FreesTheLocksOfAClientThatDiedWhileNamdWasAway) {
  StartWithExtent();
  const std::string blob = Blob();
  const auto holder = [&](std::uint64_t id, std::uint32_t slot) {
    return std::make_unique<Child>([&, id, slot](int report) {
      TestClient client(Socket());
      Say(report, client.Lock(client.Attach(blob, id).answer.attachment, slot, LockMode::kExclusive) == true);
      for (;;) ::pause();
    });
  };
  const auto dies_meanwhile = holder(7, 0);
  const auto dies_later = holder(9, 1);
  ASSERT_EQ(dies_meanwhile->Report(), 'y');
  ASSERT_EQ(dies_later->Report(), 'y');
  StopNamd(SIGKILL);
  dies_meanwhile->Kill();
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  TestClient client = Client();
  TestClient::Attached attached;
  ASSERT_TRUE(Eventually(kLimit, [&] { return (attached = client.Attach(blob, 8)).status.ok(); }));
  EXPECT_EQ(client.Lock(attached.answer.attachment, 0, LockMode::kExclusive), true);
  EXPECT_EQ(client.Lock(attached.answer.attachment, 1, LockMode::kExclusive), false);
  dies_later->Kill();
  EXPECT_TRUE(Eventually(
      kLimit, [&] { return client.Lock(attached.answer.attachment, 1, LockMode::kExclusive) == true; }));
}

TEST_F(NamdClients, OutlivesAClientThatTruncatesWhileItServesAtomics) {
  StartWithExtent();
  TestClient client = Client();
  const std::string blob = Blob();
  const auto attached = client.Attach(blob, 1);
  ASSERT_TRUE(attached.file);
  ASSERT_TRUE(client.FetchAdd(attached.answer.attachment, 0, 1).has_value());
  ASSERT_EQ(::ftruncate(attached.file.get(), 0), 0);
  // Each touches a page that is gone: the locks' and the data's.
  EXPECT_TRUE(client.FetchAdd(attached.answer.attachment, 0, 1).has_value()) << client.failure.message();
  EXPECT_TRUE(client.Lock(attached.answer.attachment, 1, LockMode::kExclusive).has_value());
  const auto damaged = controller_->Await<wire::NamExtentDamaged>();
  ASSERT_TRUE(damaged.has_value());
  EXPECT_EQ(damaged->uuid, kExtent.uuid);
  EXPECT_THAT(damaged->reason, HasSubstr("truncated"));
  EXPECT_EQ(Client().Attach(blob, 2).status.code(), Code::kDataLoss);
  ASSERT_TRUE(controller_->AllocateAndCommit(kOther, {64})) << "it serves on";
  const auto other = client.Attach(controller_->Sign(controller_->LeaseOf(kOther, ::geteuid())), 1);
  EXPECT_EQ(client.FetchAdd(other.answer.attachment, 0, 5), 0);
}

TEST_F(NamdClients, FindsATruncationAtTheNextAttach) {
  StartWithExtent();
  TestClient client = Client();
  const std::string blob = Blob();
  const auto attached = client.Attach(blob, 1);
  ASSERT_EQ(::ftruncate(attached.file.get(), 8192), 0);
  EXPECT_EQ(Client().Attach(blob, 2).status.code(), Code::kDataLoss);
  EXPECT_TRUE(controller_->Await<wire::NamExtentDamaged>().has_value());
}

TEST_F(NamdClients, TrustsNothingThatAClientHasWrittenIntoTheHeader) {
  StartWithExtent();
  TestClient client = Client();
  const auto attached = client.Attach(Blob(), 1);
  const Mapping mapping(attached.file.get(), attached.answer);
  ASSERT_TRUE(mapping);
  std::memset(static_cast<void*>(&mapping.view().header()), 0xff, nam::kPageBytes);
  EXPECT_EQ(client.FetchAdd(attached.answer.attachment, 4096 - 8, 3), 0);
  EXPECT_EQ(client.Lock(attached.answer.attachment, 1, LockMode::kExclusive), true);
  EXPECT_TRUE(client.Detach(attached.answer.attachment).ok());
  EXPECT_TRUE(client.Attach(Blob(), 2).status.ok());
}

TEST_F(NamdClients, TakesAsManyClientsAsAnExtentHasOwnersAndNoMore) {
  StartWithExtent();
  const std::string blob = Blob(NamRights::kRead | NamRights::kWrite);
  std::vector<TestClient> clients;
  for (std::uint64_t id = 1; id <= nam::kMaxOwners; ++id) {
    if (id % kMaxAttachmentsOfAConnection == 1) clients.push_back(Client());
    ASSERT_EQ(clients.back().Attach(blob, id).answer.owner, id);
  }
  TestClient other = Client();
  const auto more = other.Attach(blob, 5000);
  EXPECT_EQ(more.status.code(), Code::kResourceExhausted);
  EXPECT_THAT(more.status.message(), HasSubstr("1024"));
  clients.front().Close();
  EXPECT_TRUE(Eventually(kLimit, [&] { return other.Attach(blob, 5000).status.ok(); }));
}

TEST_F(NamdClients, RefusesWhatIsOutOfRangeAndTouchesNothing) {
  StartWithExtent();
  TestClient client = Client();
  const auto attached = client.Attach(Blob(), 1);
  const std::uint64_t id = attached.answer.attachment;
  for (const std::uint64_t offset : {std::uint64_t{4089}, std::uint64_t{4096}, std::uint64_t{1} << 40,
                                     ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    EXPECT_FALSE(client.FetchAdd(id, offset, 1).has_value());
    EXPECT_EQ(client.failure.code(), Code::kOutOfRange) << offset;
  }
  EXPECT_FALSE(client.Lock(id, 2, LockMode::kShared).has_value());
  EXPECT_EQ(client.failure.code(), Code::kOutOfRange);
  EXPECT_FALSE(client.Lock(id ^ 1, 0, LockMode::kShared).has_value());
  EXPECT_EQ(client.failure.code(), Code::kFailedPrecondition);
  EXPECT_FALSE(Client().Detach(id).ok()) << "another connection's";
  const Mapping mapping(attached.file.get(), attached.answer);
  for (int i = 0; i < 8192; ++i) ASSERT_EQ(mapping.view().data()[i], std::byte{0}) << i;
}

TEST_F(NamdClients, AnswersMalformedMessagesAndCutsMalformedFramesOff) {
  StartWithExtent();
  TestClient client = Client();
  for (const std::uint16_t type :
       {wire::NamAttach::kType, wire::NamDetach::kType, wire::NamLock::kType, wire::NamAtomic::kType}) {
    EXPECT_EQ(StatusOf(client.CallRaw(type, "xyz")).code(), Code::kInvalidArgument) << type;
    EXPECT_FALSE(StatusOf(client.CallRaw(type, std::string(1000, '\xff'))).ok()) << type;
  }
  EXPECT_EQ(StatusOf(client.CallRaw(0x0842, "")).code(), Code::kUnimplemented);
  EXPECT_EQ(StatusOf(client.CallRaw(0x0925, "")).code(), Code::kUnimplemented) << "the controller's alone";
  client.socket.SendRaw(std::string(64, '\xff'));  // announces 4 GiB
  EXPECT_FALSE(client.socket.Receive(kLimit).has_value());
  EXPECT_TRUE(client.socket.closed());
  EXPECT_TRUE(Client().Attach(Blob(), 1).status.ok());
}

TEST_F(NamdClients, RelaysRequestsWithWhatTheKernelSaysOfTheirSender) {
  StartWithExtent();
  TestClient client = Client();
  client.socket.SendRaw(wire::Pack(0x0702, 99, "open"));
  const auto request = controller_->Await<wire::NamFromLocal>();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->uid, ::geteuid());
  EXPECT_EQ(request->gid, ::getegid());
  EXPECT_EQ(request->pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(request->type, 0x0702);
  EXPECT_EQ(request->id, 99u);
  EXPECT_EQ(request->payload, "open");
  std::vector<gid_t> groups(1024);
  groups.resize(static_cast<std::size_t>(::getgroups(1024, groups.data())));
  EXPECT_EQ(request->groups.size(), groups.size());
  controller_->Send(wire::NamToLocal{request->connection, 0x0721, 99, "granted"});
  const auto reply = client.socket.Receive(kLimit);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->type, 0x0721);
  EXPECT_EQ(reply->id, 99u);
  EXPECT_EQ(reply->payload, "granted");
  client.Close();
  const auto gone = controller_->Await<wire::NamLocalGone>();
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(gone->connection, request->connection);
}

TEST_F(NamdClients, FailsRelayedRequestsWhenTheControllerIsLost) {
  StartWithExtent();
  TestClient client = Client();
  client.socket.SendRaw(wire::Pack(0x0702, 1, "open"));
  const auto asked = controller_->Await<wire::NamFromLocal>();
  ASSERT_TRUE(asked.has_value());
  controller_->Hangup();
  EXPECT_EQ(StatusOf(client.socket.Receive(kLimit)).code(), Code::kUnavailable);
  EXPECT_EQ(StatusOf(client.CallRaw(0x0702, "open")).code(), Code::kUnavailable) << "and while it is away";
  client.Close();
  ASSERT_TRUE(controller_->Connect());
  const auto gone = controller_->Await<wire::NamLocalGone>();
  ASSERT_TRUE(gone.has_value()) << "its end is told as soon as somebody listens";
  EXPECT_EQ(gone->connection, asked->connection);
}

TEST_F(NamdClients, IsIdleWhenNobodyAsks) {
  StartWithExtent();
  const auto switches = [this] {
    const auto status = ReadFile("/proc/" + std::to_string(namd_.pid) + "/status", std::size_t{1} << 16);
    constexpr std::string_view kField = "\nvoluntary_ctxt_switches:";
    const std::size_t at = status.ok() ? status->find(kField) : std::string::npos;
    return at == std::string::npos ? 0 : std::strtoull(status->c_str() + at + kField.size(), nullptr, 10);
  };
  // Half a second of quiet, once what came before is over.
  EXPECT_TRUE(Eventually(kLimit, [&] {
    const auto before = switches();
    return before != 0 && !Eventually(Millis(500), [&] { return switches() != before; });
  })) << "it wakes up";
}

}  // namespace
}  // namespace msa::namd::test
