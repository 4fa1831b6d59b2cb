#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// Prints files and what is appended to them. With several, "==> name <==" stands before a piece of another
// file.
class FileFollower {
 public:
  explicit FileFollower(const std::vector<std::string>& paths);
  // Starts each file `lines` lines before its end.
  void SkipToLast(std::size_t lines);
  // What has come since the last call. Files that are not there (yet) are passed over.
  Status PrintNew();
  bool any_found() const noexcept { return any_found_; }

 private:
  struct File {
    std::string path;
    std::uint64_t offset = 0;
  };
  Status PrintNewOf(std::size_t index);
  std::vector<File> files_;
  std::size_t last_printed_ = SIZE_MAX;
  bool any_found_ = false;
};

// A moment's wait between two looks: 200 ms.
void PauseToFollow();

}  // namespace msa::cli
