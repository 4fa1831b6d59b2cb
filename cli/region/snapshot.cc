#include "region/snapshot.h"

#include <algorithm>
#include <set>
#include <vector>

#include "output/text.h"

namespace msa::cli {
namespace {

Status Interrupted(std::string_view what) { return Error(Code::kCancelled, "{} was interrupted", what); }

// "20261121T101503Z"
std::string Compact(std::int64_t now_ms) {
  std::string out = UtcTime(now_ms).substr(0, 19);
  std::erase_if(out, [](char c) { return c == '-' || c == ':'; });
  return out + "Z";
}

Result<std::string> ChooseTag(const SnapshotStore& store, const std::string& asked, const std::string& region,
                              std::int64_t now_ms) {
  if (asked.empty()) {
    const std::string stem = region + "-" + Compact(now_ms);
    std::string tag = stem;
    for (int i = 2; store.Has(tag); ++i) tag = fmt::format("{}-{}", stem, i);
    return tag;
  }
  if (!IsTag(asked))
    return Error(
        Code::kInvalidArgument,
        "'{}' cannot name a snapshot; expected at most {} letters, digits, '.', '_' and '-', the first "
        "one a letter or a digit",
        asked, kMaxTag);
  if (store.Has(asked))
    return Error(Code::kAlreadyExists, "snapshot '{}' is there already in '{}'; give it another name", asked,
                 store.dir());
  return asked;
}

// Frees the lock when it goes, if it was taken.
class SegmentHold {
 public:
  SegmentHold(RegionIo& region, std::uint32_t segment) : region_(region), segment_(segment) {}
  ~SegmentHold() {
    // The lease's end frees it, too.
    if (held_) (void)region_.Free(segment_).ok();
  }
  SegmentHold(const SegmentHold&) = delete;
  SegmentHold& operator=(const SegmentHold&) = delete;
  Status Take(RegionIo::Lock lock) {
    MSA_RETURN_IF_ERROR(region_.Take(segment_, lock));
    held_ = true;
    return Status::Ok();
  }

 private:
  RegionIo& region_;
  const std::uint32_t segment_;
  bool held_ = false;
};

// Tries again where a lock was lost, with a restarted daemon say.
Status RepeatIfLost(const std::function<Status()>& step) {
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    Status status = step();
    if (status.code() != Code::kAborted || i == kTries) return status;
  }
}

class Taking {
 public:
  Taking(RegionIo& region, SnapshotStore& store, const SnapshotOptions& options, Progress& progress)
      : region_(region), store_(store), options_(options), progress_(progress), buffer_(kBlockBytes) {}

  Result<SnapshotCounts> Run() {
    const wire::NamRegionInfo& info = region_.info();
    MSA_ASSIGN_OR_RETURN(manifest_.tag, ChooseTag(store_, options_.tag, info.name, options_.now_ms));
    manifest_.region = info.name;
    manifest_.uuid = info.uuid;
    manifest_.generation = info.generation;
    manifest_.created_ms = options_.now_ms;
    manifest_.mode = info.mode;
    manifest_.placement = info.placement;
    manifest_.acl = info.acl;
    progress_.Begin("snapshot " + info.name, info.bytes.value);
    for (std::uint32_t i = 0; i < info.segments.size(); ++i)
      MSA_RETURN_IF_ERROR(RepeatIfLost([&] { return TakeSegment(i, info.segments[i]); }));
    progress_.Clear();
    MSA_RETURN_IF_ERROR(store_.Commit(manifest_));
    counts_.tag = manifest_.tag;
    counts_.bytes = done_;
    return counts_;
  }

 private:
  Status TakeSegment(std::uint32_t index, const wire::NamSegmentInfo& info) {
    const std::uint64_t before = done_;
    const Status status = ReadSegment(index, info);
    if (!status.ok()) done_ = before;
    return status;
  }

  Status ReadSegment(std::uint32_t index, const wire::NamSegmentInfo& info) {
    SegmentHold hold(region_, index);
    if (options_.locking == Locking::kShared) {
      const Status taken = hold.Take(RegionIo::Lock::kShared);
      if (!taken.ok())
        return taken.WithContext(fmt::format("shared lock of segment {} (--no-lock reads without)", index));
    }
    manifest_.segments.resize(index);
    auto& segment = manifest_.segments.emplace_back();
    segment.bytes = info.bytes.value;
    segment.disp_unit = info.disp_unit;
    for (std::uint64_t i = 0; i < BlocksOf(segment.bytes); ++i) {
      if (options_.stop && options_.stop()) return Interrupted("the snapshot");
      const auto bytes = std::span(buffer_).first(BytesOfBlock(segment.bytes, i));
      MSA_RETURN_IF_ERROR(region_.Read(index, i * kBlockBytes, bytes));
      const Checksum checksum = ChecksumOf(std::span<const std::byte>(bytes));
      MSA_ASSIGN_OR_RETURN(const auto stored, store_.PutBlock(checksum, bytes));
      segment.blocks.push_back(checksum);
      Note(stored, bytes.size());
    }
    return Status::Ok();
  }

  void Note(SnapshotStore::Stored stored, std::size_t bytes) {
    const bool written = stored == SnapshotStore::Stored::kWritten;
    ++(written ? counts_.blocks_written : counts_.blocks_reused);
    if (written) counts_.bytes_written += bytes;
    progress_.Advance(done_ += bytes);
  }

  RegionIo& region_;
  SnapshotStore& store_;
  const SnapshotOptions& options_;
  Progress& progress_;
  std::vector<std::byte> buffer_;
  SnapshotManifest manifest_;
  SnapshotCounts counts_;
  std::uint64_t done_ = 0;
};

// Writes the verified snapshot.
Status WriteBlocks(const SnapshotManifest& manifest, const SnapshotStore& store, RegionIo& region,
                   const RestoreOptions& options, Progress& progress) {
  std::vector<std::byte> buffer(kBlockBytes);
  std::uint64_t done = 0;
  progress.Begin("restore " + region.info().name, manifest.bytes());
  const auto write_segment = [&](std::uint32_t index) -> Status {
    const auto& segment = manifest.segments[index];
    // Those who keep to locks see no half of a segment.
    SegmentHold hold(region, index);
    MSA_RETURN_IF_ERROR(hold.Take(RegionIo::Lock::kExclusive)
                            .WithContext(fmt::format("exclusive lock of segment {}", index)));
    for (std::uint64_t i = 0; i < segment.blocks.size(); ++i) {
      if (options.stop && options.stop()) return Interrupted("restore");
      const auto bytes = std::span(buffer).first(BytesOfBlock(segment.bytes, i));
      MSA_RETURN_IF_ERROR(store.ReadBlock(segment.blocks[i], bytes));
      MSA_RETURN_IF_ERROR(region.Write(index, i * kBlockBytes, bytes));
      progress.Advance(done + i * kBlockBytes + bytes.size());
    }
    done += segment.bytes;
    return Status::Ok();
  };
  for (std::uint32_t i = 0; i < manifest.segments.size(); ++i)
    MSA_RETURN_IF_ERROR(RepeatIfLost([&] { return write_segment(i); }));
  progress.Clear();
  return Status::Ok();
}

std::vector<wire::NamSegmentSpec> SegmentsOf(const SnapshotManifest& manifest) {
  std::vector<wire::NamSegmentSpec> out;
  for (const auto& segment : manifest.segments) out.push_back({Bytes(segment.bytes), segment.disp_unit});
  return out;
}

Status Overwrite(const SnapshotManifest& manifest, const SnapshotStore& store, RegionSystem& system,
                 const wire::NamRegionInfo& there, const RestoreOptions& options, Progress& progress) {
  MSA_RETURN_IF_ERROR(CheckSameLayout(there, SegmentsOf(manifest))
                          .WithContext(fmt::format("snapshot '{}' does not fit", manifest.tag)));
  MSA_ASSIGN_OR_RETURN(const auto region, system.Open(there.name, NamRights::kRead | NamRights::kWrite));
  const Status written = WriteBlocks(manifest, store, *region, options, progress);
  return written.WithContext(
      fmt::format("region '{}' may be overwritten in part; restore it again", there.name));
}

struct Rights {
  std::uint32_t mode = 0;
  std::vector<wire::NamAclEntry> acl;
  std::optional<std::uint32_t> gid;  // unset: the caller's
};

Status MakeAnew(const SnapshotManifest& manifest, const SnapshotStore& store, RegionSystem& system,
                const std::string& name, const Rights& rights, const RestoreOptions& options,
                Progress& progress) {
  wire::NamCreate create;
  create.name = name;
  create.mode = 0600;
  create.placement = manifest.placement;
  create.segments = SegmentsOf(manifest);
  MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo made, system.Create(create));
  Status status;
  {
    auto region = system.Open(made.name, NamRights::kRead | NamRights::kWrite);
    status = region.ok() ? WriteBlocks(manifest, store, **region, options, progress) : region.status();
  }
  const bool other_group = rights.gid && *rights.gid != made.gid;
  if (status.ok() && (rights.mode != create.mode || !rights.acl.empty() || other_group)) {
    wire::NamSetAccess access;
    access.region = made.name;
    access.mode = rights.mode;
    access.set = rights.acl;
    if (other_group) access.gid = rights.gid;
    status = system.SetAccess(access);
  }
  if (status.ok()) return status;
  wire::NamRemove remove;
  remove.region = ToText(made.uuid);
  remove.force = true;
  const Status removed = system.Remove(remove);
  if (removed.ok()) return status.WithContext(fmt::format("region '{}' was not restored", name));
  return status.WithContext(
      fmt::format("region '{}' was restored in part and could not be removed ({}); "
                  "remove it by 'msactl region rm --force {}'",
                  name, removed.message(), name));
}

// Its memory is lost and cannot be written: it is removed and made anew, with the rights that it had.
Status Replace(const SnapshotManifest& manifest, const SnapshotStore& store, RegionSystem& system,
               const wire::NamRegionInfo& there, const RestoreOptions& options, Progress& progress) {
  MSA_RETURN_IF_ERROR(CheckSameLayout(there, SegmentsOf(manifest))
                          .WithContext(fmt::format("snapshot '{}' does not fit", manifest.tag)));
  wire::NamRemove remove;
  remove.region = ToText(there.uuid);
  MSA_RETURN_IF_ERROR(system.Remove(remove).WithContext("a damaged region is made anew"));
  return MakeAnew(manifest, store, system, there.name, {there.mode, there.acl, there.gid}, options, progress);
}

}  // namespace

Result<SnapshotCounts> TakeSnapshot(RegionIo& region, SnapshotStore& store, const SnapshotOptions& options,
                                    Progress& progress) {
  return Taking(region, store, options, progress).Run();
}

Status VerifySnapshot(const SnapshotManifest& manifest, const SnapshotStore& store,
                      const std::function<bool()>& stop, Progress& progress) {
  std::vector<std::byte> buffer(kBlockBytes);
  std::set<std::pair<Checksum, std::uint64_t>> known;
  std::uint64_t done = 0;
  std::uint64_t bad = 0;
  Status first;
  progress.Begin("verify " + manifest.tag, manifest.bytes());
  for (std::size_t s = 0; s < manifest.segments.size(); ++s) {
    const auto& segment = manifest.segments[s];
    for (std::uint64_t i = 0; i < segment.blocks.size(); ++i) {
      if (stop && stop()) return Interrupted("verifying the snapshot");
      const auto bytes = std::span(buffer).first(BytesOfBlock(segment.bytes, i));
      progress.Advance(done += bytes.size());
      // The same block with the same length, zeros say, was looked at before.
      if (!known.emplace(segment.blocks[i], bytes.size()).second) continue;
      const Status read = store.ReadBlock(segment.blocks[i], bytes);
      if (read.ok()) continue;
      if (bad++ == 0) first = read.WithContext(fmt::format("segment {}, offset {}", s, i * kBlockBytes));
    }
  }
  progress.Clear();
  if (bad == 0) return Status::Ok();
  return Error(first.code() == Code::kNotFound ? Code::kDataLoss : first.code(),
               "snapshot '{}' is damaged, {} cannot be used: {}; restore an older one, see 'msactl region "
               "snapshot --list {}'",
               manifest.tag, Count(bad, "block"), first.message(), store.dir());
}

Result<std::string> RestoreSnapshot(const SnapshotManifest& manifest, const SnapshotStore& store,
                                    RegionSystem& system, const RestoreOptions& options, Progress& progress) {
  const std::string name = options.name.empty() ? manifest.region : options.name;
  const auto there = system.Find(name);
  if (!there.ok() && there.status().code() != Code::kNotFound) return there.status();
  if (there.ok() && !options.overwrite)
    return Error(Code::kAlreadyExists,
                 "region '{}' is there; restore under another name, or overwrite it with --force", name);
  MSA_RETURN_IF_ERROR(VerifySnapshot(manifest, store, options.stop, progress));
  if (there.ok()) {
    const auto write = there->state == wire::NamRegionState::kDamaged ? Replace : Overwrite;
    MSA_RETURN_IF_ERROR(write(manifest, store, system, *there, options, progress));
  } else {
    MSA_RETURN_IF_ERROR(MakeAnew(manifest, store, system, name, {manifest.mode, manifest.acl, std::nullopt},
                                 options, progress));
  }
  return name;
}

}  // namespace msa::cli
