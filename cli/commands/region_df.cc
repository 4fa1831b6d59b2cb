#include "commands/print.h"
#include "commands/region_calls.h"
#include "output/region_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

Result<Listing> ListingBy(const wire::NamUsage& usage, const std::string& by) {
  if (by == "node") return NodeUsageListing(usage);
  if (by == "user") return UserUsageListing(usage);
  if (by == "job") return JobUsageListing(usage);
  return Error(Code::kInvalidArgument, "--by: '{}' is none; expected node, user or job", by);
}

}  // namespace

Result<int> RegionDf(const Args& args) {
  Invocation call(
      {"msactl region df", "[OPTIONS]",
       "Show how much network attached memory there is, and what regions of users and jobs take of it. "
       "Other\nusers' shares are shown to root and the operator alone."});
  call.WithFormat();
  std::string by;
  call.options().Text(0, "by", "node|user|job", "one of the three lists alone (csv and name: nodes)", &by);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 0}));
  if (!go) return 0;
  if (!by.empty()) MSA_RETURN_IF_ERROR(ListingBy({}, by).status());
  MSA_ASSIGN_OR_RETURN(const auto client, ConnectRegions(call));
  MSA_ASSIGN_OR_RETURN(const wire::NamUsage usage, client->Usage());
  const Format format = call.format().format;
  if (by.empty() && (format == Format::kCsv || format == Format::kName)) by = "node";
  if (!by.empty()) {
    MSA_ASSIGN_OR_RETURN(const Listing listing, ListingBy(usage, by));
    MSA_RETURN_IF_ERROR(call.Show(listing));
    return 0;
  }
  if (!call.people()) {
    const Document all = UsageDocument(usage);
    MSA_RETURN_IF_ERROR(Print(format == Format::kJson ? all.ToJson() : all.ToYaml()));
    return 0;
  }
  std::string text = Render(NodeUsageListing(usage), call.format());
  if (usage.reserved.value > 0)
    text += fmt::format("reserved for running jobs: {}\n", ShowBytes(usage.reserved.value));
  text += "\n" + Render(UserUsageListing(usage), call.format()) + "\n" +
          Render(JobUsageListing(usage), call.format());
  MSA_RETURN_IF_ERROR(Print(text));
  return 0;
}

}  // namespace msa::cli
