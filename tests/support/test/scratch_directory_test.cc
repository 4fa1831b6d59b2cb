#include "msa/support/scratch_directory.h"

#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "msa/support/process.h"

namespace msa::support {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

TEST(ScratchDirectory, EachIsNewAndOfItsUserAlone) {
  const ScratchDirectory one;
  const ScratchDirectory other;
  EXPECT_NE(one.path(), other.path());
  struct stat info {};
  ASSERT_EQ(::stat(one.path().c_str(), &info), 0);
  EXPECT_TRUE(S_ISDIR(info.st_mode));
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(fs::is_empty(one.path()));
}

TEST(ScratchDirectory, IsMadeWhereItIsWanted) {
  const ScratchDirectory parent;
  const ScratchDirectory child(parent.path());
  EXPECT_EQ(fs::path(child.path()).parent_path(), parent.path());
  EXPECT_THROW(ScratchDirectory(parent / "nothing"), fs::filesystem_error);
}

TEST(ScratchDirectory, WritesFilesOfAMode) {
  const ScratchDirectory scratch;
  const std::string path = scratch.Write("file", std::string("a\0b", 3), 0750);
  EXPECT_EQ(path, scratch / "file");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), std::string("a\0b", 3));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
}

TEST(ScratchDirectory, IsGoneAfterwardsWithAllItHeld) {
  std::optional<ScratchDirectory> scratch(std::in_place);
  const ScratchDirectory elsewhere;
  const std::string kept = elsewhere.Write("kept", "");
  fs::create_directories(*scratch / "a/b");
  scratch->Write("a/b/file", "");
  fs::create_symlink(elsewhere.path(), *scratch / "link");
  const std::string path = scratch->path();
  scratch.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(kept)) << "a link was followed";
}

TEST(ScratchDirectory, IsGoneAlthoughAnotherProcessStillWritesIntoIt) {
  std::optional<ScratchDirectory> scratch(std::in_place);
  Process writer({.argv = {"/bin/sh", "-c", "i=0; while [ $i -lt 5000 ]; do : > $0/$i; i=$((i + 1)); done",
                           scratch->path()}});
  ASSERT_TRUE(Eventually(30s, "the process writes", [&] { return fs::exists(*scratch / "9"); }));
  const std::string path = scratch->path();
  scratch.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(writer.Wait().timed_out);
}

}  // namespace
}  // namespace msa::support
