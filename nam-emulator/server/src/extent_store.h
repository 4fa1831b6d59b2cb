#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/status.h"
#include "msa/namd/extent_name.h"

#include "extent_file.h"

namespace msa::namd {

// The directory of a namd's extents: /dev/shm, hugetlbfs or a disk. What in it is not an extent's file is
// never touched. Any thread, but one at a time for one extent or fact.
class ExtentStore {
 public:
  // A directory as TakeDirectory has it, held against any other namd. Errors as of TakeDirectory;
  // kAlreadyExists: another NAM daemon uses it.
  static Result<std::unique_ptr<ExtentStore>> Open(const std::string& directory);

  struct Found {
    ExtentKey key;
    Stage stage = Stage::kPending;
    std::shared_ptr<ExtentFile> file;  // null: broken
    std::string fault;
    std::uint64_t bytes = 0;  // of a broken file
  };
  struct Listing {
    std::vector<Found> extents;
    std::vector<std::string> foreign;  // names of what is no extent of namd
  };
  Result<Listing> Scan() const;
  // As Scan, by names alone: nothing is opened, so `file` and `fault` are not told.
  Result<Listing> Survey() const;

  // As ExtentFile::Create, pending. What a broken attempt has left is replaced.
  Result<std::shared_ptr<ExtentFile>> Create(const ExtentKey& key, ExtentShape shape) const;
  // From here on it survives whatever its directory's file system survives. Idempotent.
  Status Commit(const ExtentKey& key, const ExtentFile& file) const;
  // Whatever its stage; nothing there is success.
  Status Remove(const ExtentKey& key) const;

  // Small facts about the directory, as symbolic links to their value: that works on hugetlbfs too, where
  // write(2) does not, and replaces the old value in one step.
  std::optional<std::uint64_t> Fact(const std::string& name) const;
  Status SetFact(const std::string& name, std::uint64_t value) const;

  // What the file system has left for extents beyond `used`; `most` if it does not say.
  std::uint64_t Room(std::uint64_t most) const;
  const std::string& directory() const { return directory_; }
  // tmpfs or hugetlbfs: nothing of it waits for a disk.
  bool in_memory() const { return in_memory_; }

 private:
  ExtentStore(std::string directory, UniqueFd fd, std::size_t page, bool in_memory)
      : directory_(std::move(directory)), fd_(std::move(fd)), page_(page), in_memory_(in_memory) {}
  std::string PathOf(const ExtentKey& key, Stage stage) const {
    return directory_ + "/" + ExtentFileName(key, stage);
  }

  std::string directory_;
  UniqueFd fd_;       // the directory, locked
  std::size_t page_;  // of what is mapped from it
  bool in_memory_;
};

inline constexpr const char* kSystemFact = "system";
inline constexpr const char* kPortFact = "port";

}  // namespace msa::namd
