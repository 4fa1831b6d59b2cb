// The real msa-namd: how extents are made, kept, found again and removed.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "msa/adapters/process/files.h"

#include "namd_fixture.h"

namespace msa::namd::test {
namespace {

using State = wire::NamExtentState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Namd = NamdTest;

Code CodeOf(const std::optional<wire::NamExtentDone>& done) {
  return done ? static_cast<Code>(done->code) : Code::kUnavailable;
}

TEST_F(Namd, TellsInItsHelloWhatItHas) {
  StartNamd();
  const auto hello = controller_->AwaitHello();
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->capacity, Bytes(64 << 20));
  EXPECT_EQ(hello->backing, backing_);
  EXPECT_EQ(hello->socket, Socket());
  EXPECT_EQ(hello->system, 0u);
  EXPECT_EQ(hello->pid, static_cast<std::uint32_t>(namd_.pid));
  EXPECT_THAT(hello->extents, IsEmpty());
  EXPECT_EQ(hello->fabric_provider, "");
}

TEST_F(Namd, DiesOfAFaultAtOnceWhateverHandlersItsLibrariesBring) {
  for (const int signal : {SIGABRT, SIGSEGV}) {
    StartNamd();
    const int status = StopNamd(signal);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << "wait status " << status;
  }
}

TEST_F(Namd, MakesAZeroedFileThatIsAllocatedAndOfItsOwnerAlone) {
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  ASSERT_EQ(CodeOf(controller_->Allocate(kExtent, {100, 1 << 20})), Code::kOk);
  struct stat st {};
  ASSERT_EQ(::stat(FileOf(kExtent, Stage::kPending).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  const std::uint64_t header = nam::HeaderBytes(2);
  EXPECT_EQ(static_cast<std::uint64_t>(st.st_size), nam::RoundUp(header + 128 + (1 << 20), nam::kPageBytes));
  EXPECT_GE(st.st_blocks * 512, st.st_size);
  const auto text = ReadFile(FileOf(kExtent, Stage::kPending), std::size_t{4} << 20);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find_first_not_of('\0', header), std::string::npos);
}

TEST_F(Namd, RenamesTheFileAtTheCommitAndReportsItAfterARestart) {
  StartWithExtent();
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kExtent, Stage::kCommitted)));
  Restart();
  const auto hello = controller_->AwaitHello();
  ASSERT_TRUE(hello.has_value());
  ASSERT_EQ(hello->extents.size(), 1u);
  EXPECT_EQ(hello->extents[0].state, State::kCommitted);
  EXPECT_EQ(hello->extents[0].bytes, Bytes(8192));
  EXPECT_EQ(hello->system, controller_->system);
}

TEST_F(Namd, AnswersARepeatedAllocationWithSuccess) {
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  ASSERT_EQ(CodeOf(controller_->Allocate(kExtent, {4096})), Code::kOk);
  struct stat before {};
  ASSERT_EQ(::stat(FileOf(kExtent, Stage::kPending).c_str(), &before), 0);
  EXPECT_EQ(CodeOf(controller_->Allocate(kExtent, {4096})), Code::kOk);
  struct stat after {};
  ASSERT_EQ(::stat(FileOf(kExtent, Stage::kPending).c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(Namd, RefusesSegmentsThatAreMalformed) {
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  const auto code = [&](auto change) {
    wire::NamExtentAllocate allocate;
    allocate.uuid = kExtent.uuid;
    allocate.generation = kExtent.generation;
    allocate.segments = FakeController::Places({64, 64});
    change(allocate);
    return CodeOf(controller_->Allocate(allocate));
  };
  EXPECT_EQ(code([](auto& a) { a.segments[1].slot = 7; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& a) { a.segments[1].slot = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& a) { a.segments[1].offset = 65; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& a) { a.segments[1].bytes = Bytes(~std::uint64_t{0}); }), Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& a) { a.segments[1].bytes = Bytes(std::uint64_t{1} << 62); }),
            Code::kResourceExhausted);
  EXPECT_EQ(code([](auto& a) { a.segments.clear(); }), Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& a) { a.uuid = {}; }), Code::kInvalidArgument);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(Namd, KeepsASegmentsBytesWhenItIsCopiedIntoALargerOne) {
  StartWithExtent();
  {
    TestClient client = Client();
    const auto attached = client.Attach(Blob(), 1);
    ASSERT_TRUE(attached.status.ok()) << attached.status.message();
    const Mapping mapping(attached.file.get(), attached.answer);
    std::memset(mapping.view().data(), 'a', 4096);
    std::memset(mapping.view().data() + 4096, 'b', 4096);
  }
  wire::NamExtentAllocate larger;
  larger.uuid = kExtent.uuid;
  larger.generation = Generation(2);
  larger.copy_from = Generation(1);
  larger.old_segments = controller_->expected[kExtent].segments;
  larger.segments = FakeController::Places({6000, 100});
  ASSERT_EQ(CodeOf(controller_->Allocate(larger)), Code::kOk);
  const auto text = ReadFile(FileOf({kExtent.uuid, Generation(2)}, Stage::kPending), std::size_t{4} << 20);
  ASSERT_TRUE(text.ok());
  const std::string data = text->substr(nam::HeaderBytes(2));
  EXPECT_EQ(data.substr(0, 4096), std::string(4096, 'a'));
  EXPECT_EQ(data.substr(4096, 1904 + 16), std::string(1904 + 16, '\0'));
  EXPECT_EQ(data.substr(6016, 100), std::string(100, 'b'));
  EXPECT_EQ(data.find_first_not_of('\0', 6116), std::string::npos);
}

TEST_F(Namd, RefusesWhatItsFileSystemDoesNotHoldAndLeavesNothingBehind) {
  // As root, in CI, deploy/test fails on a skip.
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  const std::string small = dir_ + "/small";
  ASSERT_EQ(::mkdir(small.c_str(), 0700), 0);
  ASSERT_EQ(::mount("msa-test", small.c_str(), "tmpfs", 0, "size=1M,mode=0700"), 0) << std::strerror(errno);
  backing_ = small;
  StartNamd({.options = {"--backing", small}});
  const auto hello = controller_->AwaitHello();
  EXPECT_EQ(hello.value_or(wire::NamdHello()).capacity, Bytes(1 << 20)) << "not the topology's 64 MiB";
  controller_->Welcome();
  const auto done = controller_->Allocate(kExtent, {2 << 20});
  EXPECT_EQ(CodeOf(done), Code::kResourceExhausted);
  EXPECT_THAT(done.value_or(wire::NamExtentDone()).message, HasSubstr("bytes free"));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(CodeOf(controller_->Allocate(kExtent, {512 << 10})), Code::kOk) << "the memory is free again";
  EXPECT_EQ(StopNamd(SIGTERM), 0);
  EXPECT_EQ(::umount(small.c_str()), 0) << std::strerror(errno);
}

TEST_F(Namd, RefusesAFileBeyondItsLimitAndLivesOn) {
  StartNamd({.file_size_limit = 1 << 20});
  ASSERT_TRUE(controller_->Connect());
  EXPECT_EQ(CodeOf(controller_->Allocate(kExtent, {4 << 20})), Code::kResourceExhausted);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(CodeOf(controller_->Allocate(kExtent, {4096})), Code::kOk);
}

TEST_F(Namd, FreesAnExtentThatNobodyMaps) {
  StartWithExtent();
  EXPECT_EQ(CodeOf(controller_->AwaitDone(controller_->Free(kExtent))), Code::kOk);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(CodeOf(controller_->AwaitDone(controller_->Free(kExtent))), Code::kOk) << "again";
}

TEST_F(Namd, FreesAMappedExtentWhenItsLastHolderLetsGo) {
  StartWithExtent();
  TestClient client = Client();
  TestClient late = Client();
  const std::string blob = Blob();
  ASSERT_TRUE(client.Attach(blob, 1).status.ok());
  const std::uint64_t request = controller_->Free(kExtent);
  EXPECT_TRUE(
      Eventually(kLimit, [&] { return late.Attach(blob, 2).status.code() == Code::kFailedPrecondition; }));
  EXPECT_TRUE(Exists(FileOf(kExtent, Stage::kCommitted)));
  late.Close();
  client.Close();
  EXPECT_EQ(CodeOf(controller_->AwaitDone(request)), Code::kOk);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(Namd, FreesPendingExtentsThatTheControllerDoesNotExpect) {
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  ASSERT_EQ(CodeOf(controller_->Allocate(kExtent, {4096})), Code::kOk);
  ASSERT_EQ(CodeOf(controller_->Allocate(kOther, {4096})), Code::kOk);
  controller_->expected.erase(kExtent);
  controller_->Hangup();
  ASSERT_TRUE(controller_->Connect());
  EXPECT_TRUE(Eventually(kLimit, [&] { return Files().size() == 1; }));
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kOther, Stage::kPending)));
}

TEST_F(Namd, KeepsCommittedExtentsThatTheControllerDoesNotKnow) {
  StartWithExtent();
  controller_->expected.clear();
  Restart();
  ASSERT_TRUE(controller_->Connect());
  EXPECT_TRUE(Eventually(kLimit, [&] { return Log().find("belongs to no region") != std::string::npos; }));
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kExtent, Stage::kCommitted)));
}

TEST_F(Namd, ReportsAnExtentThatIsMissingAsDamaged) {
  StartWithExtent();
  StopNamd(SIGTERM);
  ASSERT_EQ(::unlink(FileOf(kExtent, Stage::kCommitted).c_str()), 0);
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  const auto damaged = controller_->Await<wire::NamExtentDamaged>();
  ASSERT_TRUE(damaged.has_value());
  EXPECT_EQ(damaged->uuid, kExtent.uuid);
}

TEST_F(Namd, ReportsATruncatedFileAsDamagedAndLeavesForeignFilesAlone) {
  StartWithExtent();
  StopNamd(SIGTERM);
  ASSERT_EQ(::truncate(FileOf(kExtent, Stage::kCommitted).c_str(), 4096), 0);
  std::ofstream(backing_ + "/thesis.tex") << "mine";
  std::ofstream(backing_ + "/" + ExtentFileName(kOther, Stage::kCommitted) + "~") << "mine";
  StartNamd();
  const auto hello = controller_->AwaitHello();
  ASSERT_TRUE(hello && hello->extents.size() == 1);
  EXPECT_EQ(hello->extents[0].state, State::kDamaged);
  controller_->Welcome();
  EXPECT_TRUE(controller_->Await<wire::NamExtentDamaged>().has_value());
  EXPECT_EQ(Client().Attach(Blob(), 1).status.code(), Code::kDataLoss);
  EXPECT_EQ(Files().size(), 3u);
  EXPECT_THAT(Log(), HasSubstr("thesis.tex"));
}

TEST_F(Namd, LooksAtItsDirectoryWhenItIsAsked) {
  StartWithExtent();
  const auto scan = [&] {
    controller_->Send(wire::NamScan{77});
    auto scanned = controller_->Await<wire::NamScanned>();
    EXPECT_TRUE(scanned.has_value());
    if (scanned) {
      EXPECT_EQ(scanned->request, 77u);
      EXPECT_EQ(scanned->failure, "");
    }
    return scanned.value_or(wire::NamScanned{});
  };
  const wire::NamScanned clean = scan();
  EXPECT_TRUE(clean.extents.empty() && clean.foreign.empty());

  std::ofstream(backing_ + "/thesis.tex") << "mine";
  std::ofstream(FileOf(kOther, Stage::kCommitted)) << "no extent at all";
  ASSERT_EQ(::truncate(FileOf(kExtent, Stage::kCommitted).c_str(), 1 << 20), 0);
  const wire::NamScanned odd = scan();
  EXPECT_THAT(odd.foreign, ElementsAre("thesis.tex"));
  EXPECT_EQ(odd.foreign_count, 1u);
  ASSERT_EQ(odd.extents.size(), 2u);
  for (const wire::NamExtentReport& report : odd.extents) {
    const bool stray = report.uuid == kOther.uuid;
    EXPECT_EQ(report.state, stray ? State::kDamaged : State::kCommitted);
    EXPECT_EQ(report.bytes, Bytes(stray ? 16 : 1 << 20));
  }
  EXPECT_TRUE(Client().Attach(Blob(), 1).status.ok()) << "one that has grown serves on";
  // It is known from now on, and freed as any other.
  EXPECT_EQ(scan().extents.size(), 1u);
  const auto done = controller_->AwaitDone(controller_->Free(kOther));
  EXPECT_TRUE(done && done->code == 0);
  EXPECT_FALSE(Exists(FileOf(kOther, Stage::kCommitted)));
}

TEST_F(Namd, FindsAFileThatWasRemovedOrMovedOrCutWhenItIsAsked) {
  const auto file = FileOf(kExtent, Stage::kCommitted);
  const std::vector<std::function<int()>> wrongs = {
      [&] { return ::unlink(file.c_str()); },
      [&] { return ::rename(file.c_str(), (dir_ + "/away").c_str()); },
      [&] { return ::truncate(file.c_str(), 4096); }};
  StartWithExtent();
  for (std::size_t i = 0; i < wrongs.size(); ++i) {
    ASSERT_TRUE(Eventually(kLimit, [&] { return Exists(file); }));  // a commit has no answer
    ASSERT_EQ(wrongs[i](), 0);
    controller_->Send(wire::NamScan{i});
    // The damage first: whoever reads the answer knows of it.
    const auto damaged = controller_->Await<wire::NamExtentDamaged>();
    ASSERT_TRUE(damaged.has_value()) << i;
    EXPECT_EQ(damaged->uuid, kExtent.uuid);
    EXPECT_TRUE(controller_->Await<wire::NamScanned>().has_value());
    EXPECT_EQ(Client().Attach(Blob(), 1).status.code(), Code::kDataLoss);
    if (i + 1 == wrongs.size()) break;
    const auto done = controller_->AwaitDone(controller_->Free(kExtent));
    ASSERT_TRUE(done.has_value()) << i;
    ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096, 4096}));
  }
}

TEST_F(Namd, EndsBeforeItServesAnotherSystem) {
  StartWithExtent();
  controller_->Hangup();
  ASSERT_TRUE(controller_->AwaitHello().has_value());
  controller_->system ^= 1;
  controller_->Welcome();
  EXPECT_TRUE(NamdEnds());
  EXPECT_THAT(Log(), HasSubstr("another --backing"));
  EXPECT_THAT(Files(), ElementsAre(ExtentFileName(kExtent, Stage::kCommitted)));
}

TEST_F(Namd, EndsWhenTheControllerRefusesIt) {
  StartNamd();
  ASSERT_TRUE(controller_->AwaitHello().has_value());
  controller_->Send(wire::NamdQuit{"directory of another system"});
  EXPECT_TRUE(NamdEnds());
  EXPECT_THAT(Log(), HasSubstr("directory of another system"));
}

TEST_F(Namd, LetsNoSecondOneUseItsNodeOrItsBacking) {
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  ProcessHandle first = std::move(namd_);
  StartNamd();
  EXPECT_TRUE(NamdEnds());
  EXPECT_THAT(Log(), HasSubstr("is running already"));
  namd_ = std::move(first);
}

TEST_F(Namd, SaysHelloAgainWheneverItsLinkWasClosed) {
  StartWithExtent();
  for (int i = 0; i < 3; ++i) {
    controller_->Hangup();
    const auto hello = controller_->AwaitHello();
    ASSERT_TRUE(hello.has_value());
    EXPECT_EQ(hello->extents.size(), 1u);
    controller_->Welcome();
  }
}

}  // namespace
}  // namespace msa::namd::test
