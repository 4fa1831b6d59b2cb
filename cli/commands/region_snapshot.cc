#include "msa/base/clock.h"

#include "commands/region_calls.h"
#include "output/region_texts.h"
#include "output/text.h"
#include "region/interrupt.h"
#include "region/region_values.h"
#include "region/snapshot.h"

namespace msa::cli {
namespace {

Details CountsDetails(const std::string& region, const SnapshotCounts& counts) {
  return {.kind = "Snapshot",
          .name = counts.tag,
          .lines = {{"snapshot", counts.tag},
                    {"region", fmt::format("{}, {}", region, ShowBytes(counts.bytes))},
                    {"written", fmt::format("{}, {}", Count(counts.blocks_written, "block"),
                                            ShowBytes(counts.bytes_written))},
                    {"reused", Count(counts.blocks_reused, "block")}},
          .fields = {{"tag", counts.tag},
                     {"region", region},
                     {"bytes", counts.bytes},
                     {"blocks_written", counts.blocks_written},
                     {"bytes_written", counts.bytes_written},
                     {"blocks_reused", counts.blocks_reused}}};
}

Result<int> ListSnapshots(const Invocation& call) {
  if (call.operands().size() != 1)
    return Status(Code::kInvalidArgument, "msactl region snapshot --list needs a directory alone");
  MSA_ASSIGN_OR_RETURN(const SnapshotStore store, SnapshotStore::OpenToRead(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto entries, store.List());
  MSA_RETURN_IF_ERROR(call.Show(SnapshotListing(entries)));
  return 0;
}

}  // namespace

Result<int> RegionSnapshot(const Args& args) {
  Invocation call(
      {"msactl region snapshot", "[OPTIONS] REGION DIR",
       "Save what a region holds in a directory, or list what is saved there. Blocks of 1 MiB that the "
       "directory\nholds already are not written again, those of other regions and earlier snapshots "
       "among them. Each segment\nis read under a shared lock."});
  call.WithFormat();
  MoveOptions move;
  SnapshotOptions options;
  bool no_lock = false;
  bool list = false;
  AddMoveOptions(call.options(), &move);
  call.options()
      .Text(0, "name", "TAG", "name of the snapshot (default: the region's name and the time)", &options.tag)
      .Flag(0, "no-lock", "read without a lock: those who write meanwhile may tear it", &no_lock)
      .Flag(0, "list", "list the snapshots in DIR, the only operand then", &list)
      .Epilogue(
          "examples:\n"
          "  msactl region snapshot fields /backup/nam --name before-run\n"
          "  msactl region snapshot --list /backup/nam");
  MSA_ASSIGN_OR_RETURN(const bool go,
                       call.Parse(args, {.min = 1, .max = 2, .what = "a region and a directory"}));
  if (!go) return 0;
  if (list) return ListSnapshots(call);
  if (call.operands().size() != 2)
    return Status(Code::kInvalidArgument, "msactl region snapshot needs a region and a directory");
  if (call.format().format == Format::kCsv)
    return Status(Code::kInvalidArgument,
                  "--format: csv is for --list; expected table, wide, json, yaml or name");
  MSA_ASSIGN_OR_RETURN(const std::string name, ParseRegionName(call.operands()[0]));
  const InterruptGuard guard;
  MSA_ASSIGN_OR_RETURN(const auto system, RunningRegions::Connect(call, move));
  MSA_ASSIGN_OR_RETURN(const auto region, system->Open(name, NamRights::kRead));
  MSA_ASSIGN_OR_RETURN(SnapshotStore store, SnapshotStore::OpenToWrite(call.operands()[1]));
  options.locking = no_lock ? Locking::kNone : Locking::kShared;
  options.now_ms = ToUnixMillis(Now());
  options.stop = [] { return InterruptGuard::signal() != 0; };
  Progress progress(move.writer());
  const auto counts = TakeSnapshot(*region, store, options, progress);
  if (!counts.ok()) return CodeOrInterrupted(counts.status());
  MSA_RETURN_IF_ERROR(call.Show(CountsDetails(region->info().name, *counts)));
  return 0;
}

}  // namespace msa::cli
