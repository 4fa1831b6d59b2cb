#include <set>

#include "commands/region_calls.h"
#include "output/region_texts.h"
#include "region/region_values.h"

namespace msa::cli {
namespace {

// All sizes of a resized region. kInvalidArgument: a segment that it has not.
Result<std::vector<Bytes>> NewSizes(const wire::NamRegionInfo& region, const std::optional<Bytes>& total,
                                    const std::vector<SegmentSize>& sizes) {
  std::vector<Bytes> out;
  if (total) {
    for (const auto& segment : EqualSegments(*total, static_cast<std::uint32_t>(region.segments.size())))
      out.push_back(segment.bytes);
    return out;
  }
  for (const auto& segment : region.segments) out.push_back(segment.bytes);
  std::set<std::uint32_t> given;
  for (const SegmentSize& size : sizes) {
    if (!given.insert(size.segment).second)
      return Error(Code::kInvalidArgument, "--segment {} is given twice; give each segment one size",
                   size.segment);
    if (size.segment >= out.size())
      return Error(Code::kInvalidArgument, "--segment {}: region '{}' has segments 0 to {}", size.segment,
                   region.name, out.size() - 1);
    out[size.segment] = size.bytes;
  }
  return out;
}

}  // namespace

Result<int> RegionResize(const Args& args) {
  Invocation call(
      {"msactl region resize", "[OPTIONS] REGION",
       "Change the sizes of a region that nobody is attached to. What old and new segments have in common "
       "is kept,\nwhat is new is zero."});
  call.WithFormat(Shows::kOne);
  std::optional<Bytes> total;
  std::vector<SegmentSize> sizes;
  call.options()
      .Add({.letter = 's',
            .name = "size",
            .takes = Takes::kValue,
            .value_name = "SIZE",
            .help = "of all segments together, in equal parts: MiB, or with K, M, G or T; with B: bytes",
            .set = [&total](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(total, ParseRegionSize(value));
              return Status::Ok();
            }})
      .Add({.name = "segment",
            .takes = Takes::kValue,
            .value_name = "I=SIZE",
            .help = "of segment I, counted from 0; as often as needed, others stay",
            .set = [&sizes](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(const SegmentSize size, ParseSegmentSize(value));
              sizes.push_back(size);
              return Status::Ok();
            }})
      .Epilogue("example:\n  msactl region resize fields --segment 0=2G");
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a region"}));
  if (!go) return 0;
  if (total.has_value() == !sizes.empty())
    return Status(Code::kInvalidArgument,
                  "msactl region resize needs either --size SIZE or --segment I=SIZE");
  MSA_ASSIGN_OR_RETURN(const std::string name, ParseRegionName(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo region, FindRegion(*client, name));
  MSA_RETURN_IF_ERROR(CheckJobMayChange(region));
  wire::NamResize request;
  request.region = ToText(region.uuid);
  MSA_ASSIGN_OR_RETURN(request.segments, NewSizes(region, total, sizes));
  MSA_RETURN_IF_ERROR(client->Resize(request));
  MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo now, FindRegion(*client, request.region));
  MSA_RETURN_IF_ERROR(call.Show(RegionDetails(now)));
  return 0;
}

}  // namespace msa::cli
