#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include "msa/support/eventually.h"

namespace msa::support {

// A new directory of this user alone. Its destructor removes it with all it holds, and fails the test if it
// cannot: so it stands before whatever writes into it, as a fixture's first member.
class ScratchDirectory {
 public:
  // In TMPDIR or else /tmp, which is short enough for the paths of sockets. Throws
  // std::filesystem::filesystem_error, with which the test ends: it could do nothing without its directory.
  explicit ScratchDirectory(const std::filesystem::path& parent = std::filesystem::temp_directory_path())
      : path_((parent / "msa-t-XXXXXX").string()) {  // the X are mkdtemp's: it puts a name of its own there
    if (::mkdtemp(path_.data()) == nullptr)
      throw std::filesystem::filesystem_error("mkdtemp", path_, {errno, std::generic_category()});
  }
  ~ScratchDirectory() {
    // Another process of the test may still write into it, or remove something itself.
    std::error_code error;
    EXPECT_TRUE(Eventually(std::chrono::seconds(30), "no directory " + path_, [&] {
      std::filesystem::remove_all(path_, error);
      return !error;
    })) << error.message();
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const noexcept { return path_; }
  // The path of what has this name in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file in it and returns its path.
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    const std::string path = *this / name;
    EXPECT_TRUE(std::ofstream(path, std::ios::binary) << text << std::flush) << path;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0) << path;
    return path;
  }

 private:
  std::string path_;
};

}  // namespace msa::support
