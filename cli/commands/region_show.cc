#include "commands/region_calls.h"
#include "output/region_texts.h"
#include "region/region_values.h"

namespace msa::cli {

Result<int> RegionShow(const Args& args) {
  Invocation call(
      {"msactl region show", "[OPTIONS] REGION",
       "Show all of one region, by name, port name or uuid: its segments, where they lie, and who is "
       "attached."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a region"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const std::string name, ParseRegionName(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo region, FindRegion(*client, name));
  MSA_RETURN_IF_ERROR(call.Show(RegionDetails(region)));
  return 0;
}

}  // namespace msa::cli
