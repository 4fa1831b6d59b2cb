#pragma once

#include <filesystem>
#include <fstream>

#include "msa/support/scratch_directory.h"

#include "fake_regions.h"
#include "region/snapshot.h"

namespace msa::cli::region_test {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A system and a directory for snapshots.
class SnapshotWorld {
  const support::ScratchDirectory scratch_;

 public:
  Result<SnapshotCounts> Take(const std::string& region, SnapshotOptions options = {}) {
    MSA_ASSIGN_OR_RETURN(SnapshotStore store, SnapshotStore::OpenToWrite(dir));
    FakeIo io = system.Io(region);
    if (options.now_ms == 0) options.now_ms = now_ms += 1000;
    Progress quiet;
    return TakeSnapshot(io, store, options, quiet);
  }
  Result<std::string> Restore(const std::string& tag, RestoreOptions options = {}) {
    MSA_ASSIGN_OR_RETURN(const SnapshotStore store, SnapshotStore::OpenToRead(dir));
    MSA_ASSIGN_OR_RETURN(const SnapshotManifest manifest, store.Load(tag));
    Progress quiet;
    return RestoreSnapshot(manifest, store, system, options, quiet);
  }
  // Files of blocks, sorted.
  std::vector<std::string> Blocks() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir + "/blocks"))
      if (entry.is_regular_file()) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string ManifestOf(const std::string& tag) const { return dir + "/snapshots/" + tag + ".manifest"; }

  FakeSystem system;
  std::string dir = scratch_ / "store";
  std::int64_t now_ms = 1795255200000;
};

inline std::string FileText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace msa::cli::region_test
