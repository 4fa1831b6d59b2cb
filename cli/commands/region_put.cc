#include "commands/region_calls.h"
#include "region/interrupt.h"
#include "region/still_there.h"
#include "region/transfer_sides.h"

namespace msa::cli {

Result<int> RegionPut(const Args& args) {
  Invocation call(
      {"msactl region put", "[OPTIONS] FILE REGION",
       "Write a file, or standard input (-), into a region: NAME[/SEGMENT][@OFFSET]. Without a segment "
       "the\nsegments are filled one after another. What arrived is read again and compared. An interrupted "
       "one leaves\nFILE.msa-part, from which --resume goes on."});
  MoveOptions move;
  CopyOptions copy;
  AddMoveOptions(call.options(), &move);
  AddCopyOptions(call.options(), &copy);
  call.options().Epilogue(
      "examples:\n"
      "  msactl region put input.bin fields\n"
      "  msactl region put --resume --checksum input.bin fields\n"
      "  zcat table.gz | msactl region put - table/1@4096");
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 2, .max = 2, .what = "a file and a region"}));
  if (!go) return 0;
  const std::string& file = call.operands()[0];
  MSA_ASSIGN_OR_RETURN(const RegionPath path, ParseRegionPath(call.operands()[1]));
  const InterruptGuard guard;
  MSA_ASSIGN_OR_RETURN(const auto source, FileSide::OpenSource(file));
  if (copy.resume && !source->can_seek())
    return Error(Code::kInvalidArgument, "--resume needs a file that can be read again, not {}",
                 source->name());
  MSA_ASSIGN_OR_RETURN(const auto system, RunningRegions::Connect(call, move));
  const NamRights rights = copy.no_verify ? NamRights::kWrite : NamRights::kRead | NamRights::kWrite;
  MSA_ASSIGN_OR_RETURN(const auto region, system->Open(path.region, rights));
  MSA_ASSIGN_OR_RETURN(const RegionRange range, RangeOf(path, source->size(), region->info()));
  RegionSide target(*region, range);
  TransferOptions options;
  options.length = range.length;
  options.until_end = !source->size();
  if (source->can_seek()) options.state_path = PartPath(file);
  options.resume = copy.resume;
  options.verify = !copy.no_verify;
  options.what = "put " + file;
  options.stop = [] { return InterruptGuard::signal() != 0; };
  Progress progress(move.writer());
  Result<TransferResult> result = RunTransfer(*source, target, options, progress);
  if (result.ok() && !result->interrupted)
    if (Status there = CheckStillThere(*system, region->info()); !there.ok()) result = std::move(there);
  return EndCopy(result, copy, {.name = call.operands()[1], .state_path = options.state_path});
}

}  // namespace msa::cli
