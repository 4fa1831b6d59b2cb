#include "commands/region_calls.h"
#include "output/region_texts.h"
#include "region/region_values.h"

namespace msa::cli {

Result<int> RegionList(const Args& args) {
  Invocation call(
      {"msactl region list", "[OPTIONS]",
       "List regions of network attached memory: one's own, and those on which one has a right."});
  call.WithFormat();
  wire::NamList request;
  call.options().Text('u', "user", "USER", "regions of one user, by name or uid", &request.user);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 0}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  MSA_ASSIGN_OR_RETURN(const auto regions, client->List(request));
  if (regions.empty() && !request.user.empty()) MSA_RETURN_IF_ERROR(UserId(request.user).status());
  MSA_RETURN_IF_ERROR(call.Show(RegionListing(regions)));
  return 0;
}

}  // namespace msa::cli
