#include <unistd.h>

#include "commands/region_calls.h"
#include "region/interrupt.h"
#include "region/region_values.h"
#include "region/still_there.h"
#include "region/transfer_sides.h"

namespace msa::cli {
namespace {

enum class Existing { kRefuse, kOverwrite };

struct Target {
  std::unique_ptr<RegionIo> io;
  RegionUuid made;  // if it was made here
};

// It was made for a copy that failed for good: nobody has anything of it.
Status Unmake(RegionSystem& system, RegionUuid made, const Status& why) {
  wire::NamRemove remove;
  remove.region = ToText(made);
  remove.force = true;
  const Status removed = system.Remove(remove);
  if (removed.ok()) return why;
  return Status(why.code(),
                fmt::format("{}; the region that was made for it could not be removed ({}): remove it "
                            "by 'msactl region rm --force {}'",
                            why.message(), removed.message(), remove.region));
}

// The region to write to: made like `source`, or one of the same layout that is there.
Result<Target> OpenTarget(RegionSystem& system, const wire::NamRegionInfo& source, const std::string& name,
                          Existing existing) {
  const auto there = system.Find(name);
  if (!there.ok() && there.status().code() != Code::kNotFound) return there.status();
  if (there.ok()) {
    if (there->uuid == source.uuid)
      return Error(Code::kInvalidArgument, "'{}' is the source itself; name another region", name);
    if (existing == Existing::kRefuse)
      return Error(Code::kAlreadyExists, "region '{}' is there; overwrite it with --force", name);
    MSA_RETURN_IF_ERROR(CheckSameLayout(*there, SegmentsOf(source))
                            .WithContext(fmt::format("region '{}' does not fit", source.name)));
  }
  Target target;
  if (!there.ok()) {
    wire::NamCreate create;
    MSA_ASSIGN_OR_RETURN(create.name, ParseNewRegionName(name));
    create.mode = source.mode;
    create.placement = source.placement;
    create.segments = SegmentsOf(source);
    MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo made, system.Create(create));
    target.made = made.uuid;
  }
  auto opened = system.Open(name, NamRights::kRead | NamRights::kWrite);
  if (!opened.ok())
    return target.made.valid() ? Unmake(system, target.made, opened.status()) : opened.status();
  target.io = *std::move(opened);
  return target;
}

}  // namespace

Result<int> RegionCopy(const Args& args) {
  Invocation call(
      {"msactl region copy", "[OPTIONS] REGION NAME",
       "Copy a region. The new one gets the same segments, placement and mode, and belongs to the "
       "caller. What was\nwritten is read again and compared. An interrupted one leaves NAME.msa-part in the "
       "working directory, from\nwhich --resume goes on."});
  MoveOptions move;
  CopyOptions copy;
  bool force = false;
  AddMoveOptions(call.options(), &move);
  AddCopyOptions(call.options(), &copy);
  call.options()
      .Flag(0, "force", "overwrite a region of the same layout that is there", &force)
      .Epilogue("example:\n  msactl region copy fields fields-before");
  MSA_ASSIGN_OR_RETURN(const bool go,
                       call.Parse(args, {.min = 2, .max = 2, .what = "a region and a new name"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const std::string from, ParseRegionName(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const std::string to, ParseRegionName(call.operands()[1]));
  const InterruptGuard guard;
  MSA_ASSIGN_OR_RETURN(const auto system, RunningRegions::Connect(call, move));
  MSA_ASSIGN_OR_RETURN(const auto source_io, system->Open(from, NamRights::kRead));
  TransferOptions options;
  options.state_path = PartPath(to);
  options.resume = copy.resume;
  const bool goes_on =
      copy.resume && !options.state_path.empty() && ::access(options.state_path.c_str(), F_OK) == 0;
  MSA_ASSIGN_OR_RETURN(auto made, OpenTarget(*system, source_io->info(), to,
                                             force || goes_on ? Existing::kOverwrite : Existing::kRefuse));
  MSA_ASSIGN_OR_RETURN(const RegionRange range, RangeOf({.region = from}, std::nullopt, source_io->info()));
  RegionSide source(*source_io, range);
  RegionSide target(*made.io, range);
  options.length = range.length;
  options.verify = !copy.no_verify;
  options.what = "copy " + source_io->info().name;
  options.stop = [] { return InterruptGuard::signal() != 0; };
  Progress progress(move.writer());
  Result<TransferResult> result = RunTransfer(source, target, options, progress);
  // What can be resumed stays.
  const bool resumable = !options.state_path.empty() && ::access(options.state_path.c_str(), F_OK) == 0;
  if (!result.ok() && made.made.valid() && !resumable) {
    made.io.reset();
    result = Unmake(*system, made.made, result.status());
  }
  if (result.ok() && !result->interrupted)
    if (Status there = CheckStillThere(*system, made.io->info()); !there.ok()) result = std::move(there);
  return EndCopy(result, copy, {.name = to, .state_path = resumable ? options.state_path : ""});
}

}  // namespace msa::cli
