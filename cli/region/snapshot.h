#pragma once
// Snapshots of regions: taken, verified, restored.

#include <cstdint>
#include <functional>
#include <string>

#include "region/progress.h"
#include "region/region_system.h"
#include "region/snapshot_store.h"

namespace msa::cli {

enum class Locking { kShared, kNone };

struct SnapshotOptions {
  std::string tag = {};  // empty: the region's name and the time
  Locking locking = Locking::kShared;
  std::int64_t now_ms = 0;
  std::function<bool()> stop = {};
};

struct SnapshotCounts {
  std::string tag;
  std::uint64_t bytes = 0;
  std::uint64_t blocks_written = 0;
  std::uint64_t blocks_reused = 0;
  std::uint64_t bytes_written = 0;
};

// Blocks that the store has already are not written again. Each segment is read under a shared lock. An error
// leaves blocks, which the next snapshot uses, and no snapshot. kAlreadyExists: the tag; kCancelled: `stop`;
// errors of both sides.
Result<SnapshotCounts> TakeSnapshot(RegionIo& region, SnapshotStore& store, const SnapshotOptions& options,
                                    Progress& progress);

// Reads every block. kDataLoss, kNotFound: the first that is missing or damaged, with its segment and offset
// and how many there are.
Status VerifySnapshot(const SnapshotManifest& manifest, const SnapshotStore& store,
                      const std::function<bool()>& stop, Progress& progress);

struct RestoreOptions {
  std::string name = {};   // empty: the region's former one
  bool overwrite = false;  // a region of the same layout that is there
  std::function<bool()> stop = {};
};

// Verifies the whole snapshot, then makes a region that is its owner's alone, writes it, checking every block
// again, and gives it the rights of the snapshot last. An error leaves no new region; one that was to be
// overwritten is as it was unless the text says otherwise. kAlreadyExists: the name, without `overwrite`;
// kFailedPrecondition: another layout; kDataLoss, kNotFound: as VerifySnapshot. The region's name.
Result<std::string> RestoreSnapshot(const SnapshotManifest& manifest, const SnapshotStore& store,
                                    RegionSystem& system, const RestoreOptions& options, Progress& progress);

}  // namespace msa::cli
