#include <unistd.h>

#include "commands/region_calls.h"
#include "region/interrupt.h"
#include "region/region_values.h"
#include "region/transfer_sides.h"

namespace msa::cli {

Result<int> RegionGet(const Args& args) {
  Invocation call(
      {"msactl region get", "[OPTIONS] REGION FILE",
       "Write what a region holds to a file, or to standard output (-). REGION is NAME[/SEGMENT][@OFFSET]; "
       "without\na segment the segments follow one another. What was written is read again and compared. An "
       "interrupted\none leaves FILE.msa-part, from which --resume goes on."});
  MoveOptions move;
  CopyOptions copy;
  std::optional<std::uint64_t> length;
  AddMoveOptions(call.options(), &move);
  AddCopyOptions(call.options(), &copy);
  call.options()
      .Add({.letter = 'l',
            .name = "length",
            .takes = Takes::kValue,
            .value_name = "BYTES",
            .help = "so much of it; K, M, G or T may follow (default: to its end)",
            .set = [&length](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(length, ParseByteCount(value));
              return Status::Ok();
            }})
      .Epilogue(
          "examples:\n"
          "  msactl region get fields result.bin\n"
          "  msactl region get table/1@4096 - --length 1M | xxd");
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 2, .max = 2, .what = "a region and a file"}));
  if (!go) return 0;
  const std::string& file = call.operands()[1];
  MSA_ASSIGN_OR_RETURN(const RegionPath path, ParseRegionPath(call.operands()[0]));
  if (copy.resume && file == "-")
    return Status(Code::kInvalidArgument, "--resume needs a file, not standard output");
  const InterruptGuard guard;
  MSA_ASSIGN_OR_RETURN(const auto system, RunningRegions::Connect(call, move));
  MSA_ASSIGN_OR_RETURN(const auto region, system->Open(path.region, NamRights::kRead));
  MSA_ASSIGN_OR_RETURN(const RegionRange range, RangeOf(path, length, region->info()));
  const std::string state_path = PartPath(file);
  const bool goes_on = copy.resume && !state_path.empty() && ::access(state_path.c_str(), F_OK) == 0;
  MSA_ASSIGN_OR_RETURN(const auto target,
                       FileSide::OpenTarget(file, goes_on ? FileSide::Old::kKeep : FileSide::Old::kDrop));
  RegionSide source(*region, range);
  TransferOptions options;
  options.length = range.length;
  if (target->can_seek()) options.state_path = state_path;
  options.resume = copy.resume;
  options.verify = !copy.no_verify;
  options.what = "get " + region->info().name;
  options.stop = [] { return InterruptGuard::signal() != 0; };
  Progress progress(move.writer());
  return EndCopy(RunTransfer(source, *target, options, progress), copy,
                 {.name = call.operands()[0],
                  .state_path = options.state_path,
                  .data = file == "-" ? CopyEnd::Data::kStandardOutput : CopyEnd::Data::kElsewhere});
}

}  // namespace msa::cli
