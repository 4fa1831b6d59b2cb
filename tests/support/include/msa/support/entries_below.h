#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace msa::support {

// What lies in `directory` and below it, while others may make and remove there: what has gone when its turn
// comes is left out. (std::filesystem::recursive_directory_iterator throws then, or ends.)
inline std::vector<std::filesystem::directory_entry> EntriesBelow(const std::filesystem::path& directory) {
  std::vector<std::filesystem::directory_entry> entries;
  std::vector<std::filesystem::path> folders = {directory};
  while (!folders.empty()) {
    std::error_code error;
    std::filesystem::directory_iterator entry(folders.back(), error);
    folders.pop_back();
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      entries.push_back(*entry);
      std::error_code gone;
      if (!entry->is_symlink(gone) && entry->is_directory(gone)) folders.push_back(entry->path());
    }
  }
  return entries;
}

}  // namespace msa::support
