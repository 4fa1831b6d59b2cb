#include "commands/print.h"
#include "commands/region_calls.h"
#include "region/region_values.h"

namespace msa::cli {

Result<int> RegionRm(const Args& args) {
  Invocation call(
      {"msactl region rm", "[OPTIONS] REGION...",
       "Remove regions with what they hold. One that is in use is refused with who uses it, unless --force "
       "is given."});
  bool force = false;
  call.options().Flag(
      0, "force",
      "also one in use: new access ends at once; its bytes stay charged until the last process "
      "that has it mapped lets go",
      &force);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1000, .what = "names of regions"}));
  if (!go) return 0;
  for (const std::string& word : call.operands()) MSA_RETURN_IF_ERROR(ParseRegionName(word).status());
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  const std::size_t all = call.operands().size();
  std::size_t failed = 0;
  Status first;
  for (const std::string& word : call.operands()) {
    const Status bound = CheckJobMayChange(*client, word);
    const Status removed = bound.ok() ? client->Remove({word, force}) : bound;
    if (removed.ok()) continue;
    if (failed++ == 0) first = removed;
    if (all > 1) PrintError(removed);
  }
  if (failed == 0) return 0;
  if (all == 1) return first;
  return failed == all ? ExitCodeOf(first.code()) : kPartialExitCode;
}

}  // namespace msa::cli
