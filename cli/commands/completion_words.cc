#include "msa/adapters/process/files.h"
#include "msa/job/records.h"

#include "backend/slurm_nodes.h"
#include "client/region_client.h"
#include "client/system_client.h"
#include "commands/cluster_directory.h"
#include "commands/command.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/slurm_queries.h"
#include "completion/complete.h"
#include "local/local_paths.h"
#include "output/grant_texts.h"
#include "output/job_texts.h"
#include "output/region_texts.h"
#include "output/slurm_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

// Somebody waits with a finger on the key: rather nothing than late.
constexpr Millis kPatience{1000};
constexpr std::uint32_t kEndedJobs = 50;

std::vector<Candidate> Modules(SystemClient& client) {
  std::vector<Candidate> out;
  if (const auto modules = client.ListModules(); modules.ok())
    for (const ModuleInfo& m : *modules)
      out.push_back({m.name, fmt::format("{}, {} of {} up, {} free", m.kind, m.nodes_up,
                                         Count(m.nodes, "node"), Count(m.cores_free, "core"))});
  return out;
}

std::vector<Candidate> Nodes(SystemClient& client) {
  std::vector<Candidate> out;
  if (const auto nodes = client.ListNodes("", {}); nodes.ok())
    for (const NodeInfo& n : *nodes)
      out.push_back({n.name, fmt::format("{}, {}, {} of {} used", n.module, StateWord(n), n.cores_used,
                                         Count(n.cores, "core"))});
  return out;
}

std::vector<Candidate> Jobs(SystemClient& client, bool ended) {
  std::vector<Candidate> out;
  if (const auto jobs = client.ListJobs({.ended = ended, .limit = ended ? kEndedJobs : 0}); jobs.ok())
    for (const JobInfo& job : *jobs)
      out.push_back(
          {fmt::format("{}", job.id), fmt::format("{}, {}", Printable(job.name), StateName(job.state))});
  return out;
}

std::vector<Candidate> Grants(SystemClient& client) {
  std::vector<Candidate> out;
  if (const auto grants = client.ListGrants({}); grants.ok())
    for (const GrantInfo& grant : *grants)
      if (grant.id != 0)
        out.push_back(
            {fmt::format("{}", grant.id),
             fmt::format("job {}, {}, {}", grant.job, Count(grant.slots, "slot"), GrantWord(grant))});
  return out;
}

std::vector<Candidate> Regions(const Endpoint& endpoint) {
  std::vector<Candidate> out;
  const auto client = RegionClient::TryConnect(endpoint, kPatience);
  if (!client.ok()) return out;
  if (const auto regions = (*client)->List({}); regions.ok())
    for (const wire::NamRegionInfo& region : *regions)
      out.push_back({region.name, fmt::format("{}, {}, {}", ShowBytes(region.bytes.value), region.user_name,
                                              RegionStateName(region.state))});
  return out;
}

std::vector<Candidate> Daemons(const std::string& dir) {
  constexpr std::string_view kSuffix = ".log";
  std::vector<Candidate> out;
  const auto files = ListDirectory(LocalPaths(WhichDirectory(dir).path).log_directory());
  if (!files.ok()) return out;
  for (const std::string& file : *files)
    if (file.ends_with(kSuffix)) out.push_back({file.substr(0, file.size() - kSuffix.size()), ""});
  return out;
}

// Slurm is not to speak into the line that is being typed, and msa's controller is not asked beside it.
constexpr Asking kQuietly{.errors = Errors::kKept, .patience = kPatience};

std::vector<Candidate> SlurmJobs(const BackendChoice& choice, bool ended) {
  std::vector<Candidate> out;
  const auto says = AskForJobs(choice, {.ended = ended, .user = "", .asking = kQuietly});
  if (!says.ok() || says->exit_code != 0) return out;
  for (const JobInfo& job : FoldJobs(says->value, Companions::kFolded))
    if (!ShownJobId(job).ends_with(']') && (ended || !wire::IsFinal(job.state)))
      out.push_back({ShownJobId(job), fmt::format("{}, {}", Printable(job.name), StateName(job.state))});
  return out;
}

std::vector<Candidate> SlurmPlaces(const BackendChoice& choice, Wanted::What what) {
  std::vector<Candidate> out;
  const auto says = AskForNodes(choice, kQuietly);
  if (!says.ok() || says->exit_code != 0) return out;
  const auto known = ReadSlurmNodes(says->value, {}, {});
  if (!known.ok()) return out;
  if (what == Wanted::What::kModules) {
    for (const ModuleInfo& m : known->modules)
      out.push_back({m.name, fmt::format("{} of {} up, {} free", m.nodes_up, Count(m.nodes, "node"),
                                         Count(m.cores_free, "core"))});
    return out;
  }
  for (const NodeInfo& n : known->nodes)
    out.push_back({n.name, fmt::format("{}, {}, {} of {} used", n.module, n.slurm->state, n.cores_used,
                                       Count(n.cores, "core"))});
  return out;
}

bool IsSlurms(Wanted::What what) {
  using What = Wanted::What;
  return what == What::kModules || what == What::kNodes || what == What::kJobs || what == What::kLiveJobs;
}

std::vector<Candidate> AskSystem(const Wanted& wanted) {
  if (wanted.what == Wanted::What::kDaemons) return Daemons(wanted.dir);
  const Result<BackendChoice> choice = ChoiceFor(wanted.backend, wanted.dir);
  if (choice.ok() && choice->slurm() && IsSlurms(wanted.what)) {
    const bool places = wanted.what == Wanted::What::kModules || wanted.what == Wanted::What::kNodes;
    return places ? SlurmPlaces(*choice, wanted.what)
                  : SlurmJobs(*choice, wanted.what == Wanted::What::kJobs);
  }
  const Result<Endpoint> endpoint = FindEndpoint(wanted.dir);
  if (!endpoint.ok()) return {};
  if (wanted.what == Wanted::What::kRegions) return Regions(*endpoint);
  const auto client = SystemClient::TryConnect(*endpoint, kPatience);
  if (!client.ok()) return {};
  if (wanted.what == Wanted::What::kModules) return Modules(**client);
  if (wanted.what == Wanted::What::kNodes) return Nodes(**client);
  if (wanted.what == Wanted::What::kGrants) return Grants(**client);
  return Jobs(**client, wanted.what == Wanted::What::kJobs);
}

std::string_view Directive(Also also) {
  switch (also) {
    case Also::kFiles:
      return ":files\n";
    case Also::kDirectories:
      return ":directories\n";
    case Also::kCommands:
      return ":commands\n";
    case Also::kNothing:
      break;
  }
  return "";
}

}  // namespace

// Asked by the shells' scripts, hidden from the help: 'msactl completion words -- WORDS...', the last of
// which is being typed. A line for each candidate, "word<TAB>explanation"; ":files", ":directories" or
// ":commands" asks the shell for its own.
Result<int> CompletionWords(const Args& args) {
  if (args.empty() || args[0] != "--")
    return Status(Code::kInvalidArgument,
                  "msactl completion words expects -- and the words of a command line");
  const Completion completion = Complete(Args(args.begin() + 1, args.end()), &AskSystem);
  std::string out;
  for (const Candidate& candidate : completion.candidates) {
    out += candidate.text;
    if (!candidate.help.empty()) out += "\t" + candidate.help;
    out += "\n";
  }
  MSA_RETURN_IF_ERROR(Print(out + std::string(Directive(completion.also))));
  return 0;
}

}  // namespace msa::cli
