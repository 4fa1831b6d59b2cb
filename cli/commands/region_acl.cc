#include "commands/region_calls.h"
#include "output/region_texts.h"
#include "region/region_values.h"

namespace msa::cli {
namespace {

void AddOptions(OptionParser& parser, wire::NamSetAccess* request) {
  parser
      .Add({.name = "set",
            .takes = Takes::kValue,
            .value_name = "WHO:RIGHTS",
            .help = "give user:NAME or group:NAME rights: r (read), w (write), m (map the memory into its "
                    "processes on the NAM node); takes the place of an earlier entry",
            .set = [request](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(const wire::NamAclEntry entry, ParseAclEntry(value));
              request->set.push_back(entry);
              return Status::Ok();
            }})
      .Add({.name = "remove",
            .takes = Takes::kValue,
            .value_name = "WHO",
            .help = "take the entry of user:NAME or group:NAME away",
            .set = [request](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(const wire::NamAclEntry entry, ParseAclRemoval(value));
              request->set.push_back(entry);
              return Status::Ok();
            }})
      .Flag(0, "clear", "take all entries away first", &request->clear)
      .Add({.name = "mode",
            .takes = Takes::kValue,
            .value_name = "MODE",
            .help = "rights of owner, group and others, octal, as of a file",
            .set = [request](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(request->mode, ParseRegionMode(value));
              return Status::Ok();
            }})
      .Add({.name = "group",
            .takes = Takes::kValue,
            .value_name = "GROUP",
            .help = "its group: one of the caller's own, by name or gid",
            .set = [request](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(request->gid, GroupId(value));
              return Status::Ok();
            }})
      .Epilogue(
          "Leases that the new rights no longer cover end at once.\n"
          "\n"
          "examples:\n"
          "  msactl region acl fields --set user:alice:rw --set group:staff:r\n"
          "  msactl region acl fields --remove user:alice --mode 0640 --group staff");
}

}  // namespace

Result<int> RegionAcl(const Args& args) {
  Invocation call({"msactl region acl", "[OPTIONS] REGION",
                   "Show who may use a region, or change it. Owner and root change it."});
  call.WithFormat(Shows::kOne);
  wire::NamSetAccess request;
  AddOptions(call.options(), &request);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a region"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(request.region, ParseRegionName(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  if (request.mode || request.gid || request.clear || !request.set.empty()) {
    MSA_RETURN_IF_ERROR(CheckJobMayChange(*client, request.region));
    MSA_RETURN_IF_ERROR(client->SetAccess(request));
  }
  MSA_ASSIGN_OR_RETURN(const wire::NamRegionInfo region, FindRegion(*client, request.region));
  MSA_RETURN_IF_ERROR(call.Show(AccessDetails(region)));
  return 0;
}

}  // namespace msa::cli
