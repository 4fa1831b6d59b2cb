#include "output/grant_texts.h"

#include <algorithm>

#include <fmt/format.h>

#include "msa/topology/host_list.h"

#include "output/job_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

Document TimeField(std::int64_t unix_ms) { return unix_ms == 0 ? Document() : Document(UtcTime(unix_ms)); }

Cell TimeCell(std::int64_t unix_ms) { return {unix_ms == 0 ? "" : ShowTime(unix_ms), UtcTime(unix_ms)}; }

void AddOnce(std::vector<std::string>& list, const std::string& word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

std::vector<std::string> NodesOf(const GrantInfo& grant) {
  std::vector<std::string> out;
  for (const AllocationInfo& share : grant.allocations) AddOnce(out, share.node);
  return out;
}

// Where its nodes are, else where they were asked for.
std::string ModulesOf(const GrantInfo& grant) {
  std::vector<std::string> out;
  for (const AllocationInfo& share : grant.allocations) AddOnce(out, share.module);
  return out.empty() ? grant.module : fmt::format("{}", fmt::join(out, ","));
}

Document::Object GrantFields(const GrantInfo& grant) {
  Document::Array shares;
  for (const AllocationInfo& share : grant.allocations) shares.push_back(AllocationDocument(share));
  return {{"id", grant.id == 0 ? Document() : Document(grant.id)},
          {"job", grant.job.value},
          {"request", grant.request},
          {"user", grant.user},
          {"state", GrantWord(grant)},
          {"slots", grant.slots},
          {"module", grant.module},
          {"node_list", Document::ListOf(NodesOf(grant))},
          {"allocations", Document(std::move(shares))},
          {"asked_at", TimeField(grant.asked_at_ms)},
          {"since", TimeField(grant.since_ms)},
          {"until", TimeField(grant.until_ms)},
          {"namespaces", Document::ListOf(grant.namespaces)},
          {"reason", grant.reason},
          {"slurm_job", grant.slurm_job.value == 0 ? Document() : Document(grant.slurm_job.value)}};
}

std::vector<std::string> ModulesOf(const JobInfo& job, const NamespaceInfo& space) {
  std::vector<std::string> out;
  for (const AllocationInfo& share : job.allocations)
    if (std::find(space.nodes.begin(), space.nodes.end(), share.node) != space.nodes.end())
      AddOnce(out, share.module);
  return out;
}

Listing::Row SpawnRow(const JobInfo& job, const NamespaceInfo& space) {
  const std::string id = fmt::format("{}", job.id);
  const std::string state = space.ended ? "ENDED" : "RUNNING";
  const std::vector<std::string> modules = ModulesOf(job, space);
  return {space.name,
          {id, space.name, space.parent, fmt::format("{}", space.size), CompressHostList(space.nodes),
           fmt::format("{}", fmt::join(modules, ",")), fmt::format("{}", fmt::join(space.grants, ",")), state,
           space.ended ? fmt::format("{}", space.exit_code) : "", space.command},
          Document::Object{{"job", job.id.value},
                           {"name", space.name},
                           {"parent", space.parent},
                           {"size", space.size},
                           {"nodes", Document::ListOf(space.nodes)},
                           {"modules", Document::ListOf(modules)},
                           {"grants", Document::ListOf(space.grants)},
                           {"command", space.command},
                           {"state", state},
                           {"exit_code", space.ended ? Document(space.exit_code) : Document()}}};
}

}  // namespace

std::string_view GrantWord(const GrantInfo& grant) {
  switch (grant.state) {
    case GrantState::kWaiting:
      return "WAITING";
    case GrantState::kReleased:
      return "RELEASED";
    case GrantState::kHeld:
      break;
  }
  return grant.reason.empty() ? "HELD" : "RELEASING";
}

Listing GrantListing(const std::vector<GrantInfo>& grants) {
  Listing out;
  out.kind = "GrantList";
  out.empty_text = "no grants";
  out.columns = {{"GRANT", false, true}, {"JOB", false, true}, {"USER"},     {"STATE"},
                 {"SLOTS", false, true}, {"MODULE"},           {"NODELIST"}, {"NAMESPACES"},
                 {"ASKED", true},        {"SINCE", true},      {"UNTIL"},    {"REASON"}};
  for (const GrantInfo& grant : grants) {
    const std::string id = grant.id == 0 ? "" : fmt::format("{}", grant.id);
    out.rows.push_back({id,
                        {id, fmt::format("{}", grant.job), grant.user, std::string(GrantWord(grant)),
                         fmt::format("{}", grant.slots), ModulesOf(grant), CompressHostList(NodesOf(grant)),
                         fmt::format("{}", fmt::join(grant.namespaces, ",")), TimeCell(grant.asked_at_ms),
                         TimeCell(grant.since_ms), TimeCell(grant.until_ms), grant.reason},
                        Document(GrantFields(grant))});
  }
  return out;
}

Details GrantDetails(const GrantInfo& grant) {
  Details out{
      .kind = "Grant", .name = fmt::format("{}", grant.id), .lines = {}, .fields = GrantFields(grant)};
  out.lines = {{"grant", fmt::format("{}", grant.id)},
               {"job", fmt::format("{} of {}", grant.job, grant.user)},
               {"state", std::string(GrantWord(grant))}};
  if (!grant.reason.empty()) out.lines.emplace_back("reason", grant.reason);
  if (grant.slurm_job.value != 0) out.lines.emplace_back("in Slurm", fmt::format("job {}", grant.slurm_job));
  out.lines.emplace_back("slots", grant.module.empty()
                                      ? fmt::format("{}", grant.slots)
                                      : fmt::format("{}, asked in module {}", grant.slots, grant.module));
  for (std::size_t i = 0; i < grant.allocations.size(); ++i) {
    const AllocationInfo& share = grant.allocations[i];
    out.lines.emplace_back(i == 0 ? "nodes" : "",
                           fmt::format("{} ({})  cores {}{}", share.node, share.module, Ranges(share.cores),
                                       share.held || grant.state == GrantState::kReleased ? "" : "  lost"));
  }
  out.lines.emplace_back("asked", ShowTime(grant.asked_at_ms));
  out.lines.emplace_back("lent since", ShowTime(grant.since_ms));
  out.lines.emplace_back("until", grant.until_ms == 0 ? "its last namespace or the job ends"
                                                      : ShowTime(grant.until_ms) + " at the latest");
  for (std::size_t i = 0; i < grant.namespaces.size(); ++i)
    out.lines.emplace_back(i == 0 ? "namespaces" : "", grant.namespaces[i]);
  return out;
}

Listing SpawnListing(const std::vector<JobInfo>& jobs, SpawnsShown shown) {
  Listing out;
  out.kind = "SpawnList";
  out.empty_text = "no spawned processes";
  out.columns = {{"JOB", false, true}, {"NAMESPACE"}, {"PARENT"}, {"TASKS", false, true}, {"NODELIST"},
                 {"MODULES"},          {"GRANT"},     {"STATE"},  {"EXIT", false, true},  {"COMMAND"}};
  for (const JobInfo& job : jobs)
    for (const NamespaceInfo& space : job.namespaces)
      if (!space.parent.empty() && (shown == SpawnsShown::kAll || !space.ended))
        out.rows.push_back(SpawnRow(job, space));
  return out;
}

}  // namespace msa::cli
