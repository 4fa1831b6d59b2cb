#include "output/job_texts.h"

#include <algorithm>
#include <map>
#include <set>

#include "msa/job/job_variables.h"
#include "msa/job/records.h"
#include "msa/topology/host_list.h"

#include "output/batch_texts.h"
#include "output/slurm_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

Document TimeField(std::int64_t unix_ms) { return unix_ms == 0 ? Document() : Document(UtcTime(unix_ms)); }

// The nodes that job.nodes counts.
std::vector<std::string> NodesOf(const JobInfo& job) {
  std::vector<std::string> out;
  for (const AllocationInfo& allocation : job.allocations)
    if ((allocation.held || wire::IsFinal(job.state)) &&
        std::find(out.begin(), out.end(), allocation.node) == out.end())
      out.push_back(allocation.node);
  return out;
}

std::string Elapsed(const JobInfo& job, std::int64_t now_ms) {
  if (job.started_at_ms == 0) return "";
  const std::int64_t end = job.ended_at_ms != 0 ? job.ended_at_ms : now_ms;
  return ShowDuration(Millis(end - job.started_at_ms));
}

Cell TimeCell(std::int64_t unix_ms) { return {unix_ms == 0 ? "" : ShowTime(unix_ms), UtcTime(unix_ms)}; }

// In csv: seconds.
// The time alone where it is today's.
std::string TimeOrDay(std::int64_t unix_ms, std::int64_t now_ms) {
  const std::string at = ShowTime(unix_ms);
  return at.substr(0, 10) == ShowTime(now_ms).substr(0, 10) ? at.substr(11) : at;
}

Cell ElapsedCell(const JobInfo& job, std::int64_t now_ms) {
  if (job.started_at_ms == 0) return std::string();
  const std::int64_t end = job.ended_at_ms != 0 ? job.ended_at_ms : now_ms;
  return {Elapsed(job, now_ms), fmt::format("{:.3f}", static_cast<double>(end - job.started_at_ms) / 1000)};
}

std::string Join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

// Why it waits and until when, or how it ended.
std::string Reason(const JobInfo& job) {
  if (wire::IsFinal(job.state) && !job.exit_message.empty()) return job.exit_message;
  return job.reason;
}

Document::Object JobFields(const JobInfo& job) {
  Document::Object out = {{"id", job.id.value},
                          {"name", job.name},
                          {"user", job.user},
                          {"uid", job.uid},
                          {"state", StateName(job.state)},
                          {"reason", Reason(job)},
                          {"modules", Document::ListOf(job.modules)},
                          {"nodes", job.nodes},
                          {"node_list", Document::ListOf(NodesOf(job))},
                          {"head_node", job.head_node},
                          {"tasks", job.tasks},
                          {"tasks_failed", job.tasks_failed},
                          {"interactive", job.interactive},
                          {"mode", ModeName(job.mode)},
                          {"submitted_at", TimeField(job.submitted_at_ms)},
                          {"expected_start", TimeField(job.expected_start_ms)},
                          {"started_at", TimeField(job.started_at_ms)},
                          {"ended_at", TimeField(job.ended_at_ms)},
                          {"time_limit_seconds", job.time_limit_s},
                          {"exit_code", wire::IsFinal(job.state) ? Document(job.exit_code) : Document()},
                          {"exit_message", job.exit_message},
                          {"incarnation", job.incarnation.value},
                          {"stdout_path", job.stdout_path},
                          {"stderr_path", job.stderr_path}};
  if (job.slurm) out.emplace_back("slurm", SlurmDocument(*job.slurm));
  return out;
}

Document NamRegionsDocument(const JobSpec& spec) {
  Document::Array out;
  for (const wire::NamRegionBinding& binding : spec.nam_regions)
    out.emplace_back(Document::Object{{"region", binding.region},
                                      {"rights", Has(binding.rights, NamRights::kWrite) ? "rw" : "ro"}});
  return Document(std::move(out));
}

Document SpecDocument(const JobSpec& spec) {
  Document::Array components;
  for (const Component& component : spec.components) {
    const ComponentRequest& ask = component.resources;
    components.emplace_back(Document::Object{{"module", ask.module},
                                             {"min_nodes", ask.min_nodes},
                                             {"max_nodes", ask.max_nodes},
                                             {"ntasks", ask.ntasks},
                                             {"ntasks_per_node", ask.ntasks_per_node},
                                             {"cpus_per_task", ask.cpus_per_task},
                                             {"memory_bytes", ask.memory.value},
                                             {"gpus_per_node", ask.gpus_per_node},
                                             {"nodelist", Document::ListOf(ask.nodelist)},
                                             {"exclude", Document::ListOf(ask.exclude)},
                                             {"exclusive", ask.exclusive},
                                             {"argv", Document::ListOf(component.argv)}});
  }
  return Document::Object{
      {"components", Document(std::move(components))},
      {"working_directory", spec.cwd},
      {"output", spec.stdio.out},
      {"error", spec.stdio.err},
      {"input", spec.stdio.in},
      {"bind", !spec.no_bind},
      {"mpi_library", !spec.no_mpi_library},
      {"on_child_failure", spec.on_child_failure == wire::OnChildFailure::kKill ? "kill" : "event"},
      {"oversubscribe", spec.oversubscribe},
      {"script_arguments", Document::ListOf(spec.script_args)},
      {"dependencies", DependenciesDocument(spec)},
      {"dependency_any", spec.dependency_any},
      {"kill_on_invalid_dependency", spec.kill_on_invalid_dep},
      {"begin_at", TimeField(spec.begin_at_ms)},
      {"nam_bytes", spec.nam.value},
      {"nam_regions", NamRegionsDocument(spec)},
      {"gateways", spec.gateways}};
}

using Lines = std::vector<std::pair<std::string, std::string>>;

// Network attached memory and gateways; of a job whose specification is known.
void AddSystemShares(const JobInfo& job, Lines* lines) {
  const JobSpec& spec = *job.spec;
  if (spec.nam.value > 0) lines->emplace_back("nam", ShowBytes(spec.nam.value));
  for (const wire::NamRegionBinding& binding : spec.nam_regions)
    lines->emplace_back("nam regions", NamRegionsText({binding}));
  if (spec.gateways > 0)
    lines->emplace_back("gateways",
                        job.gateways.empty() ? fmt::format("{} asked", spec.gateways) : Join(job.gateways));
}

// Namespaces as a tree: each below the one that spawned it.
void AddNamespaces(const JobInfo& job, const std::string& parent, const std::string& indent, Lines* lines,
                   std::set<std::string>* seen) {
  for (const NamespaceInfo& space : job.namespaces) {
    if (space.parent != parent || !seen->insert(space.name).second) continue;
    const std::string state = !space.ended           ? "running"
                              : space.exit_code == 0 ? "ended"
                                                     : fmt::format("ended with code {}", space.exit_code);
    const std::string grant =
        space.grants.empty()
            ? ""
            : fmt::format(", grant{} {}", space.grants.size() == 1 ? "" : "s", fmt::join(space.grants, ","));
    lines->emplace_back("namespaces",
                        fmt::format("{}{}  {}  {} on {}  {}{}", indent, space.name, space.command,
                                    Count(space.size, "task"), CompressHostList(space.nodes), state, grant));
    AddNamespaces(job, space.name, indent + "  ", lines, seen);
  }
}

void AddComponents(const JobSpec& spec, Lines* lines) {
  for (std::size_t i = 0; i < spec.components.size(); ++i) {
    const Component& component = spec.components[i];
    const ComponentRequest& ask = component.resources;
    const std::string nodes = ask.max_nodes > ask.min_nodes
                                  ? fmt::format("{}-{} nodes", ask.min_nodes, ask.max_nodes)
                                  : Count(ask.min_nodes, "node");
    lines->emplace_back(fmt::format("component {}", i),
                        fmt::format("{}  {}  {}  {}", ask.module, nodes, Count(ask.ntasks, "task"),
                                    ShellWords(component.argv)));
  }
}

std::string OutputOf(const JobInfo& job) {
  if (!job.stdout_path.empty() || !job.interactive) return job.stdout_path.empty() ? "-" : job.stdout_path;
  return job.slurm ? "to its srun or salloc" : "to its msactl run";
}

// Repeated labels are shown once.
void BlankRepeats(Lines* lines) {
  std::string last;
  for (auto& [label, text] : *lines) {
    if (label == last) {
      label.clear();
    } else {
      last = label;
    }
  }
}

}  // namespace

std::string Ranges(std::vector<std::uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!out.empty()) out += ',';
    out += end - i == 1 ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return out;
}

Document AllocationDocument(const AllocationInfo& allocation) {
  return Document::Object{{"node", allocation.node},
                          {"module", allocation.module},
                          {"component", allocation.component},
                          {"cores", Document::ListOf(allocation.cores)},
                          {"tasks", allocation.tasks},
                          {"grant", allocation.grant},
                          {"held", allocation.held}};
}

Document NamespaceDocument(const NamespaceInfo& space) {
  return Document::Object{{"name", space.name},
                          {"parent", space.parent},
                          {"size", space.size},
                          {"nodes", Document::ListOf(space.nodes)},
                          {"command", space.command},
                          {"ended", space.ended},
                          {"exit_code", space.ended ? Document(space.exit_code) : Document()},
                          {"grant", space.grants.empty() ? 0 : space.grants.back()},
                          {"grants", Document::ListOf(space.grants)}};
}

std::string StateWord(const NodeInfo& node) {
  std::string state = node.state == NodeState::kUp     ? "UP"
                      : node.state == NodeState::kDown ? "DOWN"
                                                       : "UNKNOWN";
  if (node.drained) state += node.jobs.empty() ? "+DRAINED" : "+DRAINING";
  if (node.clock_off) state += "+CLOCK";
  return state;
}

Listing JobListing(const std::vector<JobInfo>& jobs, std::int64_t now_ms) {
  Listing out;
  out.kind = "JobList";
  out.empty_text = "no jobs";
  out.columns = {{"JOB", false, true},
                 {"NAME"},
                 {"USER"},
                 {"STATE"},
                 {"MODULES"},
                 {"NODES", false, true},
                 {"TASKS", false, true},
                 {"TIME", false, true},
                 {"NODELIST"},
                 {"SUBMITTED", true},
                 {"EXPECTED START", true},
                 {"LIMIT", true},
                 {"EXIT", true, true},
                 {"REASON"}};
  for (const JobInfo& job : jobs) {
    const bool ended = wire::IsFinal(job.state);
    std::string reason = Reason(job);
    if (job.state == JobState::kPending && job.expected_start_ms != 0)
      reason += fmt::format("{}expected at {}", reason.empty() ? "" : "; ",
                            TimeOrDay(job.expected_start_ms, now_ms));
    if (job.slurm) reason = SlurmNote(job, reason);
    out.rows.push_back(
        {ShownJobId(job),
         {ShownJobId(job), job.name, job.user, std::string(StateName(job.state)), Join(job.modules),
          fmt::format("{}", job.nodes), fmt::format("{}", job.tasks), ElapsedCell(job, now_ms),
          CompressHostList(NodesOf(job)), TimeCell(job.submitted_at_ms), TimeCell(job.expected_start_ms),
          Cell(ShowTimeLimit(job.time_limit_s), fmt::format("{}", job.time_limit_s)),
          ended ? fmt::format("{}", job.exit_code) : "", reason},
         Document(JobFields(job))});
  }
  return out;
}

bool CarriesOutput(const wire::StdioSpec& stdio) {
  const bool to_file = !stdio.out.empty() && stdio.out != "none";
  return stdio.out.empty() || (stdio.err.empty() && !to_file);
}

std::string MissingOutputText(const JobInfo& job, const Status& why) {
  const bool written = !job.interactive || !job.stdout_path.empty();
  const std::string rest = !written ? "it was kept nowhere else"
                                    : fmt::format("'msactl job logs {}' has what was written", job.id);
  return fmt::format("the last of the output of job {} may be missing: {}; {}", job.id,
                     why.ok() ? "its node daemon did not answer in time" : why.message(), rest);
}

Details JobDetails(const JobInfo& job, std::int64_t now_ms) {
  Details out{.kind = "Job", .name = fmt::format("{}", job.id), .lines = {}, .fields = JobFields(job)};
  Lines& lines = out.lines;
  lines = {{"job", ShownJobId(job)},
           {"name", job.name},
           {"user", fmt::format("{} ({})", job.user, job.uid)},
           {"state", std::string(StateName(job.state))}};
  if (job.mode != wire::JobMode::kStep) lines.emplace_back("mode", std::string(ModeName(job.mode)));
  if (!Reason(job).empty()) lines.emplace_back("reason", Reason(job));
  if (wire::IsFinal(job.state)) lines.emplace_back("exit code", fmt::format("{}", job.exit_code));
  lines.emplace_back("submitted", ShowTime(job.submitted_at_ms));
  if (job.state == JobState::kPending && job.expected_start_ms != 0)
    lines.emplace_back("expected start", ShowTime(job.expected_start_ms));
  if (job.started_at_ms != 0) lines.emplace_back("started", ShowTime(job.started_at_ms));
  if (job.ended_at_ms != 0) lines.emplace_back("ended", ShowTime(job.ended_at_ms));
  if (job.started_at_ms != 0) lines.emplace_back("time", Elapsed(job, now_ms));
  lines.emplace_back("time limit", ShowTimeLimit(job.time_limit_s));
  if (job.spec) AddWaits(*job.spec, &lines);
  if (job.slurm) AddSlurmHead(*job.slurm, &lines);
  lines.emplace_back("tasks", job.tasks_failed == 0
                                  ? fmt::format("{}", job.tasks)
                                  : fmt::format("{}, {} failed", job.tasks, job.tasks_failed));
  if (job.spec) {
    AddComponents(*job.spec, &lines);
    AddSystemShares(job, &lines);
    lines.emplace_back("directory", job.spec->cwd);
    out.fields.emplace_back("spec", SpecDocument(*job.spec));
  }
  if (job.slurm) AddSlurmParts(*job.slurm, &lines);
  lines.emplace_back("output", OutputOf(job));
  if (!job.stderr_path.empty() && job.stderr_path != job.stdout_path)
    lines.emplace_back("errors", job.stderr_path);
  lines.emplace_back("node count", fmt::format("{}", job.nodes));
  Document::Array allocations;
  for (const AllocationInfo& allocation : job.allocations) {
    // What runs on lent cores stands with the namespaces.
    std::string use =
        allocation.grant == 0 ? Count(allocation.tasks, "task") : fmt::format("grant {}", allocation.grant);
    if (!allocation.held && !wire::IsFinal(job.state))
      use += allocation.grant == 0 ? "  lost" : ", given back";
    lines.emplace_back("nodes", fmt::format("{} ({})  cores {}  {}", allocation.node, allocation.module,
                                            Ranges(allocation.cores), use));
    allocations.push_back(AllocationDocument(allocation));
  }
  out.fields.emplace_back("gateways", Document::ListOf(job.gateways));
  if (!job.head_node.empty()) lines.emplace_back("head", job.head_node);
  std::set<std::string> seen;
  AddNamespaces(job, "", "", &lines, &seen);
  Document::Array namespaces;
  for (const NamespaceInfo& space : job.namespaces) {
    namespaces.push_back(NamespaceDocument(space));
    // A parent of another job, or one that is not kept: at the top.
    if (seen.count(space.name) == 0) AddNamespaces(job, space.parent, "", &lines, &seen);
  }
  BlankRepeats(&lines);
  out.fields.emplace_back("allocations", Document(std::move(allocations)));
  out.fields.emplace_back("namespaces", Document(std::move(namespaces)));
  return out;
}

Listing HistoryListing(const std::vector<JobInfo>& jobs) {
  Listing out;
  out.kind = "JobHistory";
  out.empty_text = "no jobs have ended";
  out.columns = {{"JOB", false, true},
                 {"NAME"},
                 {"USER"},
                 {"STATE"},
                 {"EXIT", false, true},
                 {"MODULES"},
                 {"NODES", false, true},
                 {"SUBMITTED"},
                 {"STARTED"},
                 {"ENDED"},
                 {"TIME", false, true},
                 {"MODE", true},
                 {"TASKS", true, true},
                 {"NODELIST", true},
                 {"REASON", true}};
  for (const JobInfo& job : jobs)
    out.rows.push_back(
        {ShownJobId(job),
         {ShownJobId(job), job.name, job.user, std::string(StateName(job.state)),
          fmt::format("{}", job.exit_code), Join(job.modules), fmt::format("{}", job.nodes),
          TimeCell(job.submitted_at_ms), TimeCell(job.started_at_ms), TimeCell(job.ended_at_ms),
          ElapsedCell(job, job.ended_at_ms), std::string(ModeName(job.mode)), fmt::format("{}", job.tasks),
          CompressHostList(NodesOf(job)), Reason(job)},
         Document(JobFields(job))});
  return out;
}

}  // namespace msa::cli
