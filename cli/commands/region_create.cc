#include "commands/node_names.h"
#include "commands/region_calls.h"
#include "options/values.h"
#include "output/region_texts.h"
#include "region/region_values.h"

namespace msa::cli {
namespace {

struct Draft {
  wire::NamCreate request;
  std::optional<Bytes> size;
  std::uint32_t segments = 1;
  bool segments_given = false;
  std::string nodes;
};

void AddOptions(OptionParser& parser, Draft* draft) {
  parser
      .Add({.letter = 's',
            .name = "size",
            .takes = Takes::kValue,
            .value_name = "SIZE",
            .help = "of all segments together: MiB, or with K, M, G or T; with B: bytes",
            .set = [draft](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(draft->size, ParseRegionSize(value));
              return Status::Ok();
            }})
      .Add({.letter = 'n',
            .name = "segments",
            .takes = Takes::kValue,
            .value_name = "N",
            .help = "so many equal segments, the last one with the remainder (default: 1)",
            .set = [draft](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(const std::uint64_t n, ParseNumber(value, {1, wire::kMaxNamSegments}));
              draft->segments = static_cast<std::uint32_t>(n);
              draft->segments_given = true;
              return Status::Ok();
            }})
      .Add({.name = "segment",
            .takes = Takes::kValue,
            .value_name = "SIZE[:DISP_UNIT]",
            .help =
                "one segment, as often as there are to be; DISP_UNIT is MPI's displacement unit (default: 1)",
            .set = [draft](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(const wire::NamSegmentSpec segment, ParseSegment(value));
              draft->request.segments.push_back(segment);
              return Status::Ok();
            }})
      .Add({.name = "mode",
            .takes = Takes::kValue,
            .value_name = "MODE",
            .help = "who may read and write it, octal, as of a file (default: 0600)",
            .set = [draft](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(draft->request.mode, ParseRegionMode(value));
              return Status::Ok();
            }})
      .Add({.name = "placement",
            .takes = Takes::kValue,
            .value_name = "pack|spread",
            .help = "segments on as few NAM nodes as hold them, or on all (default: pack)",
            .set = [draft](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(draft->request.placement, ParsePlacement(value));
              return Status::Ok();
            }})
      .Epilogue(
          "examples:\n"
          "  msactl region create fields --size 1G --segments 4 --mode 0640\n"
          "  msactl region create table --segment 512M:8 --segment 64K:4 --placement spread");
}

void AddNodeOption(OptionParser& parser, Draft* draft) {
  parser.Add({.letter = 'w',
              .name = "node",
              .takes = Takes::kValue,
              .value_name = "NODES",
              .help = "only on these NAM nodes",
              .set = [draft](std::string_view value) -> Status {
                if (value.empty())
                  return Status(
                      Code::kInvalidArgument,
                      "names no node; expected NAM nodes, as nam0 or nam[0-3]; see 'msactl region df'");
                draft->nodes = value;
                return Status::Ok();
              }});
}

Status Finish(Draft* draft) {
  const bool listed = !draft->request.segments.empty();
  if (listed && (draft->size || draft->segments_given))
    return Status(Code::kInvalidArgument,
                  "--segment does not go with --size and --segments; give one or the other");
  if (!listed && !draft->size)
    return Status(Code::kInvalidArgument,
                  "a region needs a size: --size SIZE, or --segment SIZE for each segment");
  if (!listed) draft->request.segments = EqualSegments(*draft->size, draft->segments);
  if (draft->nodes.empty()) return Status::Ok();
  auto nodes = ExpandNodeNames({draft->nodes});
  if (!nodes.ok()) return nodes.status().WithContext("--node");
  draft->request.nodes = *std::move(nodes);
  return Status::Ok();
}

}  // namespace

Result<int> RegionCreate(const Args& args) {
  Invocation call(
      {"msactl region create", "[OPTIONS] NAME",
       "Create a persistent region of network attached memory. It is zero everywhere, and stays until "
       "'msactl\nregion rm'."});
  call.WithFormat(Shows::kOne);
  Draft draft;
  AddOptions(call.options(), &draft);
  AddNodeOption(call.options(), &draft);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a name"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(draft.request.name, ParseNewRegionName(call.operands()[0]));
  MSA_RETURN_IF_ERROR(Finish(&draft));
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo region, CreateRegion(*client, std::move(draft.request)));
  MSA_RETURN_IF_ERROR(call.Show(RegionDetails(region)));
  return 0;
}

}  // namespace msa::cli
