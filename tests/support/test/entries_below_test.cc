#include "msa/support/entries_below.h"

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

namespace msa::support {
namespace {

namespace fs = std::filesystem;

std::set<std::string> Names(const fs::path& directory) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : EntriesBelow(directory)) names.insert(entry.path().filename());
  return names;
}

TEST(EntriesBelow, AreThoseOfAllDepthsAndNotBehindLinks) {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "a/b");
  scratch.Write("a/b/file", "");
  fs::create_directory_symlink(scratch.path(), scratch / "a/link");
  EXPECT_EQ(Names(scratch.path()), (std::set<std::string>{"a", "b", "file", "link"}));
  EXPECT_EQ(Names(scratch / "nothing"), std::set<std::string>{});
}

TEST(EntriesBelow, AreListedWhileOthersGo) {
  const ScratchDirectory scratch;
  for (const char* stays : {"0", "x", "zz"}) fs::create_directory(scratch / stays);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      for (int i = 0; i < 20; ++i) fs::create_directory(scratch / ("x/" + std::to_string(i)));
      for (int i = 0; i < 20; ++i) fs::remove(scratch / ("x/" + std::to_string(i)));
    }
  });
  std::set<std::string> missed;
  for (int i = 0; i < 5000; ++i) {
    const std::set<std::string> names = Names(scratch.path());
    for (const char* stays : {"0", "x", "zz"})
      if (!names.contains(stays)) missed.insert(stays);
  }
  stop = true;
  other.join();
  EXPECT_EQ(missed, std::set<std::string>{});
}

}  // namespace
}  // namespace msa::support
