#pragma once
// A directory of snapshots:
//   snapshots/TAG.manifest   written last, in one step
//   blocks/ab/abc...         named by their checksum; shared by all snapshots
//   lock                     held by whoever writes
//   tmp/                     what is not whole yet; emptied by the next one who writes

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msa/adapters/process/lock_file.h"
#include "msa/base/status.h"

#include "region/snapshot_manifest.h"

namespace msa::cli {

// One thread.
class SnapshotStore {
 public:
  // kNotFound: no such directory, or no snapshots in it.
  static Result<SnapshotStore> OpenToRead(const std::string& dir);
  // Makes the directory. kAlreadyExists: somebody else is writing to it; kPermissionDenied;
  // kResourceExhausted.
  static Result<SnapshotStore> OpenToWrite(const std::string& dir);

  const std::string& dir() const noexcept { return dir_; }

  struct Entry {
    std::string tag;
    Status status;              // of a manifest that is damaged
    SnapshotManifest manifest;  // if status is ok
  };
  // The oldest one first, damaged ones last.
  Result<std::vector<Entry>> List() const;
  // kNotFound, with those that are there; as ParseManifest. `tag` empty: the newest one; kInvalidArgument if
  // the directory holds those of several regions.
  Result<SnapshotManifest> Load(const std::string& tag) const;
  bool Has(const std::string& tag) const;

  enum class Stored { kWritten, kReused };
  // A block that is there is compared, and written anew if it is damaged. kInternal: it has the checksum of
  // another one.
  Result<Stored> PutBlock(Checksum checksum, std::span<const std::byte> bytes);
  // kNotFound: missing; kDataLoss: another length or checksum.
  Status ReadBlock(Checksum checksum, std::span<std::byte> to) const;
  // All blocks before it are on the disk before the manifest is.
  Status Commit(const SnapshotManifest& manifest);

 private:
  explicit SnapshotStore(std::string dir) : dir_(std::move(dir)) {}
  std::string BlockPath(Checksum checksum) const;
  std::string ManifestPath(const std::string& tag) const;
  Status WriteTemporary(const std::string& path, std::span<const std::byte> bytes, bool sync) const;

  std::string dir_;
  std::optional<LockFile> lock_;
};

// "DIR" or "DIR:TAG". A directory whose name holds a ':' is itself. Looks at the disk.
struct SnapshotPath {
  std::string dir;
  std::string tag;  // may be empty
};
// kInvalidArgument: what stands behind the last ':' of no directory cannot be a tag.
Result<SnapshotPath> ParseSnapshotPath(const std::string& text);

}  // namespace msa::cli
