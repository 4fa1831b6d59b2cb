#include <algorithm>

#include "commands/region_calls.h"
#include "output/region_texts.h"

namespace msa::cli {

Result<int> RegionFsck(const Args& args) {
  Invocation call(
      {"msactl region fsck", "[OPTIONS]",
       "Compare the regions that the controller knows with the memory that NAM nodes hold for them. Exit "
       "status 1 if\nfindings are left, 9 if a NAM node could not be asked."});
  call.WithFormat();
  wire::NamCheckAsk request;
  call.options().Flag(
      0, "repair",
      "free memory that belongs to no region, and mark regions whose memory is gone as damaged; root "
      "and the operator",
      &request.repair);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 0}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  MSA_ASSIGN_OR_RETURN(const wire::NamCheckResult result, client->Check(request));
  MSA_RETURN_IF_ERROR(call.Show(CheckListing(result)));
  if (std::any_of(result.findings.begin(), result.findings.end(), [](const auto& f) { return !f.repaired; }))
    return 1;
  return result.away.empty() ? 0 : kPartialExitCode;
}

}  // namespace msa::cli
