#include "service.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/nam/atomics.h"
#include "msa/nam/locks.h"

#include "service_fixture.h"

namespace msa::namd {
namespace {

using test::FromFabric;
using test::FromSocket;
using test::kServed;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Access = nam::FabricServer::Access;

class ServiceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    const Status status = world_.service->CheckInvariants();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  wire::NamAtomic Add(std::uint64_t attachment, std::int64_t operand) {
    wire::NamAtomic atomic{.attachment = attachment, .op = 2, .type = 6, .fetch = true, .count = 1};
    atomic.operand.assign(reinterpret_cast<const char*>(&operand), sizeof operand);
    return atomic;
  }
  test::ServiceWorld world_;
};

TEST_F(ServiceTest, RegistersTheDataAloneForTheFabric) {
  const auto attached = world_.Attach(FromFabric(), 1, 7);
  ASSERT_TRUE(attached.ok()) << attached.status().message();
  const auto keys = world_.fabric.keys();
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys.begin()->first, attached->fabric_key);
  EXPECT_EQ(keys.begin()->second.base, world_.service->FileOf(kServed)->data());
  EXPECT_EQ(keys.begin()->second.bytes, Bytes(8192));
  EXPECT_EQ(keys.begin()->second.access, Access::kReadWrite);
  EXPECT_EQ(attached->fabric_provider, "double");
  EXPECT_FALSE(attached->mapped);
}

TEST_F(ServiceTest, RegistersForReadingWhatMayOnlyBeRead) {
  ASSERT_TRUE(world_.Attach(FromFabric(), 1, 7, NamRights::kRead).ok());
  EXPECT_EQ(world_.fabric.keys().begin()->second.access, Access::kRead);
}

TEST_F(ServiceTest, TakesTheKeyBackWithTheAttachment) {
  const auto attached = world_.Attach(FromFabric(), 1, 7);
  EXPECT_EQ(world_.Ask(FromFabric(), wire::NamDetach{attached->attachment}).type, wire::NamDone::kType);
  EXPECT_THAT(world_.fabric.keys(), IsEmpty());
}

TEST_F(ServiceTest, TakesTheKeysOfARevokedLeaseAndOfAGoneClientBack) {
  ASSERT_TRUE(world_.Attach(FromFabric(), 1, 7).ok());
  ASSERT_TRUE(world_.Attach(FromSocket(1), 1, 8).ok());
  ASSERT_TRUE(world_.Attach(FromFabric(), 2, 9).ok());
  EXPECT_EQ(world_.fabric.keys().size(), 3u);
  world_.service->Revoke({.leases = {LeaseId(1)}});
  EXPECT_EQ(world_.fabric.keys().size(), 1u);
  world_.service->Revoke({.clients = {NamClientId(9)}});
  EXPECT_THAT(world_.fabric.keys(), IsEmpty());
}

TEST_F(ServiceTest, TellsWhoMapsThatItsLeaseHasEnded) {
  const auto mapped = world_.Attach(FromSocket(5), 1, 7);
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(world_.Attach(FromFabric(), 1, 8).ok());
  world_.service->Revoke({.leases = {LeaseId(2)}});
  EXPECT_THAT(world_.ended, IsEmpty());
  world_.service->Revoke({.leases = {LeaseId(1)}});
  EXPECT_THAT(world_.ended, ElementsAre(std::pair(std::uint64_t{5}, mapped->attachment)));
}

TEST_F(ServiceTest, EndsWhatAProcessOfThisHostHasOverTheFabricWithItsConnection) {
  const auto lock = [&](std::uint64_t attachment) {
    const auto frame = world_.Ask(FromFabric(), wire::NamLock{attachment, 0, 2});
    const auto locked = wire::Decode<wire::NamLocked>(frame.payload);
    return frame.type == wire::NamLocked::kType && locked.ok() && locked->taken;
  };
  ASSERT_TRUE(world_.service->ClientHello(FromSocket(3), NamClientId(7)));
  Service::Peer stranger = FromSocket(4);
  stranger.caller.uid = 1001;
  EXPECT_FALSE(world_.service->ClientHello(stranger, NamClientId(7))) << "another user's";
  const auto mine = world_.Attach(FromFabric(), 1, 7);
  const auto other = world_.Attach(FromFabric(), 1, 8);
  EXPECT_TRUE(lock(mine->attachment));
  EXPECT_FALSE(lock(other->attachment));
  world_.service->ConnectionClosed(4);
  EXPECT_TRUE(lock(mine->attachment));
  ASSERT_TRUE(world_.service->ClientHello(FromSocket(6), NamClientId(7))) << "it has connected again";
  world_.service->ConnectionClosed(3);
  EXPECT_TRUE(lock(mine->attachment));
  world_.service->ConnectionClosed(6);
  EXPECT_TRUE(lock(other->attachment));
  EXPECT_FALSE(lock(mine->attachment));
  EXPECT_EQ(world_.fabric.keys().size(), 1u);
}

TEST_F(ServiceTest, FreesLocksOfAProcessThatEndedWhileNamdWasAwayThoughItCameOverTheFabric) {
  const pid_t child = ::fork();
  if (child == 0) ::pause();
  Service::Peer process = FromSocket(3);
  process.pid = child;
  ASSERT_TRUE(world_.Attach(FromFabric(), 1, 7).ok());
  ASSERT_TRUE(world_.service->ClientHello(process, NamClientId(7))) << "it may come behind the attachment";
  ASSERT_TRUE(world_.Attach(FromFabric(), 2, 8).ok());
  auto& lock = world_.service->FileOf(kServed)->lock(0);
  ASSERT_TRUE(nam::TryLock(lock, nam::LockMode::kExclusive, 1, 2));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  world_.TakeUp();
  EXPECT_TRUE(nam::TryLock(lock, nam::LockMode::kExclusive, 2, 2));
}

TEST_F(ServiceTest, CutsWhatAHolderHasAddedToAFile) {
  const auto file = world_.service->FileOf(kServed);
  const auto size = [&] {
    struct stat st {};
    EXPECT_EQ(::fstat(file->fd(), &st), 0);
    return static_cast<std::uint64_t>(st.st_size);
  };
  const std::uint64_t before = size();
  file->data()[8191] = std::byte{7};
  world_.service->TrimFiles();
  EXPECT_EQ(size(), before);
  ASSERT_EQ(::ftruncate(file->fd(), static_cast<off_t>(before) + (16 << 20)), 0);
  world_.service->TrimFiles();
  EXPECT_EQ(size(), before);
  EXPECT_EQ(file->data()[8191], std::byte{7});
  ASSERT_EQ(::ftruncate(file->fd(), static_cast<off_t>(before) - 4096), 0);
  world_.service->TrimFiles();
  EXPECT_EQ(size(), before - 4096) << "what is damaged stays so";
}

TEST_F(ServiceTest, EndsFabricAccessAtOnceWhenAnExtentIsFreed) {
  ASSERT_TRUE(world_.Attach(FromFabric(), 1, 7).ok());
  ASSERT_TRUE(world_.Attach(FromSocket(1), 2, 8).ok());
  world_.service->Free(kServed);
  EXPECT_THAT(world_.fabric.keys(), IsEmpty());
  EXPECT_THAT(world_.removable, IsEmpty()) << "somebody maps it";
  world_.service->ConnectionClosed(1);
  EXPECT_THAT(world_.removable, ElementsAre(kServed));
}

TEST_F(ServiceTest, LeavesNoAttachmentWhenTheFabricHasNoKey) {
  world_.fabric.fails = true;
  EXPECT_EQ(world_.Attach(FromFabric(), 1, 7).status().code(), Code::kResourceExhausted);
  world_.fabric.fails = false;
  EXPECT_EQ(world_.Attach(FromFabric(), 2, 8)->owner, 1u);
}

TEST_F(ServiceTest, ServesWithoutAFabricAndSaysSo) {
  world_.service->SetFabric(nullptr);
  EXPECT_EQ(world_.Attach(FromSocket(1), 1, 7)->fabric_provider, "");
}

TEST_F(ServiceTest, LocksAndCountsTheSameOverBothWays) {
  const auto mine = world_.Attach(FromSocket(1), 1, 7);
  const auto theirs = world_.Attach(FromFabric(), 2, 8);
  const auto lock = [&](const Service::Peer& peer, std::uint64_t attachment, nam::LockMode mode) {
    const auto frame = world_.Ask(peer, wire::NamLock{attachment, 0, static_cast<std::uint8_t>(mode)});
    return wire::Decode<wire::NamLocked>(frame.payload)->taken;
  };
  EXPECT_TRUE(lock(FromFabric(), theirs->attachment, nam::LockMode::kExclusive));
  EXPECT_FALSE(lock(FromSocket(1), mine->attachment, nam::LockMode::kShared));
  EXPECT_EQ(world_.Ask(FromSocket(1), Add(mine->attachment, 1)).type, wire::NamFailed::kType);
  EXPECT_EQ(world_.Ask(FromFabric(), Add(theirs->attachment, 1)).type, wire::NamAtomicDone::kType);
  EXPECT_TRUE(lock(FromFabric(), theirs->attachment, nam::LockMode::kNone));
  EXPECT_TRUE(lock(FromSocket(1), mine->attachment, nam::LockMode::kShared));
  EXPECT_EQ(world_.Ask(FromSocket(1), Add(mine->attachment, 1)).type, wire::NamAtomicDone::kType);
  EXPECT_TRUE(lock(FromSocket(1), mine->attachment, nam::LockMode::kNone));
  EXPECT_TRUE(lock(FromFabric(), theirs->attachment, nam::LockMode::kExclusive)) << "the atomic left no lock";
}

TEST_F(ServiceTest, DoesNotWaitForAnElementLockThatNobodyFrees) {
  const auto attached = world_.Attach(FromFabric(), 1, 7);
  world_.service->FileOf(kServed)->lock(0).elements = 999;
  wire::NamAtomic atomic{.attachment = attached->attachment, .op = 2, .type = 10, .count = 1};
  atomic.operand = std::string(16, '\0');
  const auto frame = world_.Ask(FromFabric(), atomic);
  ASSERT_EQ(frame.type, wire::NamFailed::kType);
  EXPECT_EQ(wire::Decode<wire::NamFailed>(frame.payload)->code,
            static_cast<std::uint8_t>(Code::kDeadlineExceeded));
}

TEST_F(ServiceTest, FreesLocksOfOwnersThatNobodyHoldsWhenItTakesExtentsUp) {
  ASSERT_TRUE(world_.Attach(FromSocket(1), 1, 7).ok());
  const auto file = world_.service->FileOf(kServed);
  nam::SegmentLock& lock = file->lock(1);
  // Of owners whose notes were gone before their locks were: number 1 is held.
  lock.exclusive = 9;
  lock.elements = 10;
  lock.shared[0] = 0b1001;
  lock.shared[nam::kOwnerWords - 1] = 1;
  world_.TakeUp();
  EXPECT_EQ(lock.exclusive, 0u);
  EXPECT_EQ(lock.elements, 0u);
  EXPECT_EQ(lock.shared[0], 0b0001u) << "what a living owner holds stays";
  EXPECT_EQ(lock.shared[nam::kOwnerWords - 1], 0u);
}

// The fabric's thread and the loop's at once; run under the thread sanitizer.
TEST_F(ServiceTest, ServesBothThreadsWhileLeasesEnd) {
  std::atomic<bool> over = false;
  std::thread fabric([&] {
    for (std::uint64_t client = 1; client < 400; ++client) {
      const auto attached = world_.Attach(FromFabric(), 100 + client % 8, client);
      if (!attached.ok()) continue;
      world_.Ask(FromFabric(), wire::NamLock{attached->attachment, 0, 2});
      world_.Ask(FromFabric(), Add(attached->attachment, 1));
      if (client % 2 == 0) world_.Ask(FromFabric(), wire::NamDetach{attached->attachment});
    }
    over = true;
  });
  for (std::uint64_t round = 0; !over; ++round) {
    (void)world_.Attach(FromSocket(round), 50, 10'000 + round);
    world_.service->Revoke({.clients = {NamClientId(round % 400)}});
    world_.service->ConnectionClosed(round);
    if (round % 16 == 0) world_.Welcome();
  }
  fabric.join();
  std::vector<NamClientId> all;
  for (std::uint64_t client = 0; client < 400; ++client) all.push_back(NamClientId(client));
  world_.service->Revoke({.clients = all});
  EXPECT_THAT(world_.fabric.keys(), IsEmpty());
  EXPECT_EQ(world_.service->FileOf(kServed)->lock(0).exclusive.load(), 0u) << "no dead owner holds a lock";
}

}  // namespace
}  // namespace msa::namd
