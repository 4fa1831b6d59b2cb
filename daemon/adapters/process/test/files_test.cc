#include "msa/adapters/process/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/lock_file.h"

#include "loop_support.h"

namespace msa {
namespace {

using test::ScratchDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Files, MakesADirectoryWithItsParentsAndIsContentIfItIsThere) {
  const ScratchDirectory dir;
  ASSERT_TRUE(MakeDirectory(dir / "a/b/c", 0700).ok());
  ASSERT_TRUE(MakeDirectory(dir / "a/b/c", 0700).ok());
  struct stat st {};
  ASSERT_EQ(::stat((dir / "a/b/c").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700U);
}

TEST(Files, RefusesAFileOrALinkWhereADirectoryShouldBe) {
  const ScratchDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir / "f", "x").ok());
  EXPECT_EQ(MakeDirectory(dir / "f").code(), Code::kAlreadyExists);
  ASSERT_EQ(::symlink("/tmp", (dir / "l").c_str()), 0);
  EXPECT_EQ(MakeDirectory(dir / "l").code(), Code::kAlreadyExists);
}

TEST(Files, TakesADirectoryOfOnesOwnAsItIsAndChangesNoOther) {
  const ScratchDirectory dir;
  const auto mode_of = [&](const char* name) {
    struct stat st {};
    EXPECT_EQ(::stat((dir / name).c_str(), &st), 0);
    return st.st_mode & 07777;
  };
  ASSERT_TRUE(TakeDirectory(dir / "new").ok());
  EXPECT_EQ(mode_of("new"), 0700U);
  ASSERT_TRUE(TakeDirectory(dir / "shared", 0755).ok());
  EXPECT_EQ(mode_of("shared"), 0755U);
  ASSERT_EQ(::chmod((dir / "new").c_str(), 0500), 0);
  EXPECT_TRUE(TakeDirectory(dir / "new", 0755).ok());
  EXPECT_EQ(mode_of("new"), 0500U) << "it was changed";
  // A user's must be closed to others; root's must only not be writable by them.
  const mode_t wrong = ::geteuid() == 0 ? 0775 : 0755;
  ASSERT_EQ(::chmod((dir / "new").c_str(), wrong), 0);
  const Status open = TakeDirectory(dir / "new");
  EXPECT_EQ(open.code(), Code::kInvalidArgument);
  EXPECT_THAT(open.message(), HasSubstr("run 'chmod 7"));
  EXPECT_EQ(mode_of("new"), wrong) << "it was changed";
  ASSERT_TRUE(WriteFileAtomically(dir / "f", "x").ok());
  EXPECT_EQ(TakeDirectory(dir / "f").code(), Code::kAlreadyExists);
  const std::string others = ::geteuid() == 0 ? dir / "new" : "/";
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(others.c_str(), 65534, 65534), 0);
  }
  const Status foreign = TakeDirectory(others);
  EXPECT_EQ(foreign.code(), Code::kPermissionDenied);
  EXPECT_THAT(foreign.message(), HasSubstr("choose another"));
}

TEST(Files, RemovesATreeWithoutFollowingLinks) {
  const ScratchDirectory dir;
  ASSERT_TRUE(MakeDirectory(dir / "keep").ok());
  ASSERT_TRUE(WriteFileAtomically(dir / "keep/file", "x").ok());
  ASSERT_TRUE(MakeDirectory(dir / "gone/deep").ok());
  ASSERT_EQ(::symlink((dir / "keep").c_str(), (dir / "gone/deep/link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(dir / "gone").ok());
  EXPECT_TRUE(RemoveTree(dir / "gone").ok());
  const auto names = ListDirectory(dir.path());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("keep"));
  EXPECT_TRUE(ReadFile(dir / "keep/file", 10).ok());
}

TEST(Files, RefusesToReadMoreThanTheLimitAndNamesBoth) {
  const ScratchDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir / "f", std::string(11, 'x')).ok());
  EXPECT_TRUE(ReadFile(dir / "f", 11).ok());
  const Status large = ReadFile(dir / "f", 10).status();
  EXPECT_EQ(large.code(), Code::kResourceExhausted);
  EXPECT_THAT(large.message(), HasSubstr("has 11 bytes, the limit is 10"));
  EXPECT_EQ(ReadFile(dir / "none", 10).status().code(), Code::kNotFound);
}

TEST(Files, ReadsTheLastLinesWhole) {
  const ScratchDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir / "log", "first line\nsecond\nthird\n").ok());
  EXPECT_EQ(ReadTail(dir / "log", 15), "second\nthird\n");
  EXPECT_EQ(ReadTail(dir / "log", 1000), "first line\nsecond\nthird\n");
  EXPECT_EQ(ReadTail(dir / "none", 10), "");
}

TEST(Files, ReplacesAFileInOneStepAndLeavesNothingBeside) {
  const ScratchDirectory dir;
  EXPECT_EQ(WriteFileAtomically(dir / "missing/f", "x").code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(dir / "f", "old").ok());
  ASSERT_TRUE(WriteFileAtomically(dir / "f", "new").ok());
  const auto names = ListDirectory(dir.path());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("f"));
}

TEST(LockFile, IsHeldByOneProcessAtATimeWhoseNumberItNames) {
  const ScratchDirectory dir;
  {
    const auto first = LockFile::Acquire(dir / "lock", "node daemon cn0");
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(LockHolder(dir / "lock"), ::getpid());
    const Status second = LockFile::Acquire(dir / "lock", "node daemon cn0").status();
    EXPECT_EQ(second.code(), Code::kAlreadyExists);
    EXPECT_EQ(second.message(), "node daemon cn0 is running already with pid " + std::to_string(::getpid()) +
                                    " (lock file '" + (dir / "lock") + "')");
  }
  EXPECT_EQ(LockHolder(dir / "lock"), 0);
  EXPECT_TRUE(LockFile::Acquire(dir / "lock", "node daemon cn0").ok());
}

// As LockHolder does, and a holder before it has written its number.
TEST(LockFile, WaitsForWhoHoldsItWithoutAName) {
  const ScratchDirectory dir;
  const int asker = ::open((dir / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(asker, 0);
  ASSERT_EQ(::flock(asker, LOCK_SH), 0);
  auto acquired =
      std::async(std::launch::async, [&] { return LockFile::Acquire(dir / "lock", "x").status(); });
  EXPECT_EQ(acquired.wait_for(Millis(100)), std::future_status::timeout);
  ::close(asker);
  EXPECT_TRUE(acquired.get().ok());
}

TEST(LockFile, IsNotInheritedByChildren) {
  const ScratchDirectory dir;
  SpawnSpec spec;
  spec.argv = {"/bin/sleep", "1000"};
  Result<ProcessHandle> child = Status(Code::kUnknown, "not started");
  {
    const auto lock = LockFile::Acquire(dir / "lock", "x");
    ASSERT_TRUE(lock.ok());
    child = Spawn(spec);
    ASSERT_TRUE(child.ok());
  }
  EXPECT_TRUE(LockFile::Acquire(dir / "lock", "x").ok());
  SignalProcess(*child, SIGKILL);
  EXPECT_TRUE(test::Eventually(Millis(30'000), [&] { return ReapChild(child->pid).has_value(); }));
}

}  // namespace
}  // namespace msa
