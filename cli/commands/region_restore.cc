#include "commands/print.h"
#include "commands/region_calls.h"
#include "output/text.h"
#include "region/interrupt.h"
#include "region/region_values.h"
#include "region/snapshot.h"

namespace msa::cli {

Result<int> RegionRestore(const Args& args) {
  Invocation call(
      {"msactl region restore", "[OPTIONS] DIR [NAME]",
       "Make a region of a snapshot: DIR, or DIR:TAG. Without TAG it is the newest one, without NAME the "
       "region gets\nits former name. The whole snapshot is checked before anything is made; a torn or "
       "damaged one is refused."});
  MoveOptions move;
  RestoreOptions options;
  AddMoveOptions(call.options(), &move);
  call.options()
      .Flag(0, "force",
            "overwrite a region of the same layout that is there; it keeps its rights. A damaged one is made "
            "anew, with a new port name",
            &options.overwrite)
      .Epilogue(
          "examples:\n"
          "  msactl region restore /backup/nam\n"
          "  msactl region restore /backup/nam:before-run fields-again");
  MSA_ASSIGN_OR_RETURN(const bool go,
                       call.Parse(args, {.min = 1, .max = 2, .what = "a directory of snapshots"}));
  if (!go) return 0;
  if (call.operands().size() == 2) {
    MSA_ASSIGN_OR_RETURN(options.name, ParseNewRegionName(call.operands()[1]));
  }
  MSA_ASSIGN_OR_RETURN(const SnapshotPath path, ParseSnapshotPath(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const SnapshotStore store, SnapshotStore::OpenToRead(path.dir));
  MSA_ASSIGN_OR_RETURN(const SnapshotManifest manifest, store.Load(path.tag));
  const InterruptGuard guard;
  options.stop = [] { return InterruptGuard::signal() != 0; };
  MSA_ASSIGN_OR_RETURN(const auto system, RunningRegions::Connect(call, move));
  Progress progress(move.writer());
  const auto name = RestoreSnapshot(manifest, store, *system, options, progress);
  if (!name.ok()) return CodeOrInterrupted(name.status());
  MSA_RETURN_IF_ERROR(Print(fmt::format("region '{}' holds snapshot '{}' ({})\n", *name, manifest.tag,
                                        ShowBytes(manifest.bytes()))));
  return 0;
}

}  // namespace msa::cli
