#include "head.h"

#include <signal.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "msa/job/job_variables.h"
#include "msa/job/port_name.h"
#include "msa/pmix/open_mpi_env.h"

namespace msa::jobd {

std::vector<std::string> JobVariablesOf(const wire::LaunchJob& launch) {
  JobVariables job;
  job.name = launch.job_name;
  job.submit_dir = pmix::GetVariable(launch.step.env, "PWD").value_or("");
  if (!job.submit_dir.starts_with('/')) job.submit_dir = launch.step.cwd;
  job.nam_regions = pmix::GetVariable(launch.step.env, kNamRegionsVariable).value_or("");
  job.gateways = pmix::GetVariable(launch.step.env, kGatewaysVariable).value_or("");
  job.nnodes = static_cast<std::uint32_t>(launch.members.size());
  std::map<std::uint32_t, std::string> names;
  for (const wire::Member& member : launch.members) names[member.index] = member.node;
  for (const wire::PlacedComponent& placed : launch.components) {
    JobVariables::Component& component = job.components.emplace_back();
    component.module = placed.module;
    component.ntasks = placed.ntasks;
    for (const wire::ComponentShare& share : placed.shares) component.nodes.push_back(names[share.member]);
  }
  std::vector<std::string> lines = JobVariableLines(job);
  // Of a job of Slurm nobody told: SLURM_SUBMIT_DIR has it.
  if (launch.slurms)
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("MSA_SUBMIT_DIR="); });
  return lines;
}

NamespaceRegister RegisterOfStep(const wire::LaunchJob& launch) {
  NamespaceRegister reg;
  reg.spec = launch.step;
  std::erase_if(reg.spec.env, IsJobVariable);  // of an outer job
  if (launch.mode != wire::JobMode::kStep)
    for (std::string& line : JobVariablesOf(launch)) reg.spec.env.push_back(std::move(line));
  else
    for (const std::string_view name : {kNamRegionsVariable, kGatewaysVariable})
      if (const auto value = pmix::GetVariable(launch.step.env, name))
        reg.spec.env.push_back(fmt::format("{}={}", name, *value));
  std::map<std::uint32_t, std::uint32_t> node_of;  // member -> index into nodes
  std::map<std::uint32_t, std::string> names;
  for (const wire::Member& member : launch.members) {
    names[member.index] = member.node;
    reg.universe += static_cast<std::uint32_t>(member.cores.size());
  }
  for (const std::uint32_t member : launch.step.rank_member) {
    const auto [it, is_new] = node_of.try_emplace(member, static_cast<std::uint32_t>(reg.nodes.size()));
    if (is_new) reg.nodes.push_back(names[member]);
    reg.rank_node.push_back(it->second);
  }
  return reg;
}

Head::Head(wire::LaunchJob launch, HeadOutlet& outlet, HeadOptions options)
    : launch_(std::move(launch)),
      outlet_(outlet),
      options_(options),
      epoch_(launch_.epoch),
      main_(launch_.mode == wire::JobMode::kStep ? launch_.step.step : wire::kBatchStep) {
  for (const wire::Member& member : launch_.members) members_[member.index] = member;
  told_members_ = launch_.members;
  slots_.SetMembers(launch_.members);
}

Head::~Head() = default;

Result<std::unique_ptr<StdioHub>> Head::MakeHub(StepId id, const wire::StepSpec& spec, bool interactive) {
  // Of the launch: the membership may have lost this node by now.
  const auto self =
      std::find_if(launch_.members.begin(), launch_.members.end(),
                   [&](const wire::Member& member) { return member.index == launch_.self_index; });
  const std::string node = self == launch_.members.end() ? std::string() : self->node;
  auto plan =
      PlanStdio(spec.stdio, spec.cwd,
                {launch_.job, id, Rank(0), launch_.self_index, node, launch_.user_name, launch_.job_name});
  StdioHubOptions options{interactive, plan.ok() ? *plan : StdioPlan{}, spec.stdio.append};
  StdioHub::Outlet outlet;
  outlet.to_session = [this](std::uint64_t session, std::uint16_t type, std::string payload) {
    outlet_.ToSession(session, type, std::move(payload));
  };
  outlet.end_session = [this](std::uint64_t session) { outlet_.EndSession(session); };
  outlet.credit = [this, id](std::uint32_t member, std::uint64_t bytes) {
    Tell(member, OutputCredit{bytes, id});
  };
  outlet.on_file_error = [this, id](const Status& error) {
    Fail(id,
         fmt::format("the {} is ended because its output is lost: {}; free space there or choose another "
                     "file with -o",
                     id == main_ ? "job" : "step", error.message()),
         1);
  };
  if (launch_.slurms) outlet.on_notice = [this, id](const std::string& text) { SayToSlurm(id, text); };
  auto hub = std::make_unique<StdioHub>(std::move(options), std::move(outlet));
  if (!plan.ok()) return plan.status();
  return hub;
}

void Head::Start() {
  const bool is_alloc = launch_.mode == wire::JobMode::kAlloc;
  Step& main = steps_[main_];
  main.id = main_;
  main.nspace = launch_.step.nspace;
  wire::StepSpec spec = launch_.step;
  if (is_alloc) spec.stdio = {};  // nothing of its own is written
  const bool interactive = launch_.interactive && launch_.mode == wire::JobMode::kStep;
  auto hub = MakeHub(main_, spec, interactive);
  Status opened = hub.status();
  if (!hub.ok()) {
    spec.stdio = {};
    hub = MakeHub(main_, spec, interactive);
  }
  main.hub = std::move(*hub);
  tasks_total_ = static_cast<std::uint32_t>(launch_.step.rank_member.size());
  resend_timer_ = outlet_.After(options_.resend, [this] { Resend(); });
  if (is_alloc) {
    started_at_ms_ = ToUnixMillis(outlet_.WallTime());
    return TellController(wire::JobStarted{started_at_ms_});
  }
  if (opened.ok()) opened = main.hub->OpenFiles();
  NamespaceRegister reg = RegisterOfStep(launch_);
  auto cores = StepCores(reg);
  AddNamespace(std::move(reg), std::move(cores));
  if (!opened.ok()) Fail(main_, opened.message(), 125);
}

Head::Namespace* Head::Find(const std::string& nspace) {
  const auto it = namespaces_.find(nspace);
  return it == namespaces_.end() ? nullptr : &it->second;
}

// The controller placed the step; where tasks outnumber cores (its --oversubscribe) the surplus holds no
// slot.
std::vector<std::vector<std::uint16_t>> Head::StepCores(const NamespaceRegister& reg) {
  std::vector<std::vector<std::uint16_t>> cores;
  if (reg.spec.step == wire::kBatchStep) return std::vector<std::vector<std::uint16_t>>(1);
  for (const wire::App& app : reg.spec.apps)
    for (std::uint32_t i = 0; i < app.ntasks && cores.size() < reg.spec.rank_member.size(); ++i)
      cores.push_back(
          slots_.Take(reg.spec.rank_member[cores.size()], std::max<std::uint32_t>(app.cpus_per_task, 1)));
  cores.resize(reg.spec.rank_member.size());
  return cores;
}

std::string Head::LabelOf(const Namespace& ns) {
  if (ns.reg.spec.step == wire::kBatchStep) return std::string(StepResult::kScript);
  return ns.reg.spawn == 0 ? std::string() : fmt::format(" of spawn {}", ns.reg.spawn);
}

StdioHub& Head::HubOfAsker(const std::string& nspace) {
  Namespace* ns = Find(nspace);
  return ns == nullptr ? *Main().hub : HubOf(*ns);
}

// reg.nodes and reg.rank_node of its rank_member.
void Head::NumberNodes(NamespaceRegister& reg) const {
  std::map<std::uint32_t, std::uint32_t> node_of;
  for (const std::uint32_t member : reg.spec.rank_member) {
    const auto [it, is_new] = node_of.try_emplace(member, static_cast<std::uint32_t>(reg.nodes.size()));
    if (is_new) reg.nodes.push_back(members_.at(member).node);
    reg.rank_node.push_back(it->second);
  }
}

void Head::AddNamespace(NamespaceRegister reg, std::vector<std::vector<std::uint16_t>> cores) {
  const std::string nspace = reg.spec.nspace;
  Namespace& ns = namespaces_[nspace];
  ns.reg = std::move(reg);
  ns.rank_cores = std::move(cores);
  ns.grants = GrantsOf(ns);
  ns.tasks.resize(ns.reg.spec.rank_member.size(), TaskPhase::kNone);
  foreign_.own_ports.insert(PortOwnerOf(nspace));
  ns.result = StepResult(LabelOf(ns));
  for (const auto& [index, member] : members_) ns.awaiting_ready.insert(index);
  // The members of the launch have the description of the job's own step from the controller.
  if (nspace != launch_.step.nspace || launch_.mode == wire::JobMode::kAlloc) TellAll(ns.reg);
}

std::string Head::Name(const Namespace& ns) const {
  if (ns.reg.spec.step == wire::kBatchStep) return "the batch script";
  return ns.reg.spawn == 0 ? fmt::format("step {}", ns.reg.spec.step) : fmt::format("spawn {}", ns.reg.spawn);
}

std::string Head::CommandOf(const Namespace& ns) const {
  return ns.reg.spec.apps.empty() || ns.reg.spec.apps[0].argv.empty() ? std::string()
                                                                      : ns.reg.spec.apps[0].argv[0];
}

std::string Head::ProgramOfRank(const Namespace& ns, std::uint32_t rank) const {
  std::uint32_t first = 0;
  for (const wire::App& app : ns.reg.spec.apps) {
    if (rank < first + app.ntasks) return app.argv.empty() ? std::string() : app.argv[0];
    first += app.ntasks;
  }
  return CommandOf(ns);
}

// ------------------------------------------------------------------------------------------ start

bool Head::IsForHead(std::uint16_t type) {
  switch (type) {
    case NamespaceReady::kType:
    case TasksStarted::kType:
    case TaskEnded::kType:
    case TaskOutput::kType:
    case InputTaken::kType:
    case StorePublish::kType:
    case StoreLookup::kType:
    case StoreUnpublish::kType:
    case SpawnRequest::kType:
    case PlanRequest::kType:
    case PlanDrop::kType:
    case AbortRequest::kType:
    case NamespacesLinked::kType:
    case NamespaceConnected::kType:
    case TaskNotice::kType:
    case ForeignReady::kType:
    case ForeignCollective::kType:
    case ForeignModex::kType:
    case ForeignModexReply::kType:
    case SlurmJoined::kType:
    case SlurmLost::kType:
    case SrunEnded::kType:
      return true;
    default:
      return false;
  }
}

void Head::OnMember(std::uint32_t from, const wire::Frame& frame) {
  if (!members_.contains(from) || left_) return;
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    outlet_.Log(fmt::format("message of member {}: {}", from, decoded.status().message()));
  };
  switch (frame.type) {
    case NamespaceReady::kType:
      return with(NamespaceReady{}, [&](auto m) { OnReady(from, m); });
    case TasksStarted::kType:
      return with(TasksStarted{}, [&](auto m) { OnStarted(from, m); });
    case TaskEnded::kType:
      return with(TaskEnded{}, [&](auto m) { OnTaskEnded(from, m); });
    case TaskOutput::kType:
      return with(TaskOutput{}, [&](auto m) {
        if (Namespace* ns = Find(m.nspace)) HubOf(*ns).OnOutput(from, ns->reg.spawn, std::move(m));
      });
    case InputTaken::kType:
      return with(InputTaken{}, [&](auto m) { OnInputTaken(m); });
    case StorePublish::kType:
      return with(StorePublish{}, [&](auto m) { OnPublish({from, frame.id}, std::move(m)); });
    case StoreLookup::kType:
      return with(StoreLookup{}, [&](auto m) { OnLookup({from, frame.id}, std::move(m)); });
    case StoreUnpublish::kType:
      return with(StoreUnpublish{}, [&](auto m) { OnUnpublish({from, frame.id}, m); });
    case SpawnRequest::kType:
      return with(SpawnRequest{}, [&](auto m) { OnSpawn(from, frame.id, std::move(m)); });
    case PlanRequest::kType:
      return with(PlanRequest{}, [&](auto m) { OnPlan(from, frame.id, std::move(m)); });
    case PlanDrop::kType:
      return with(PlanDrop{}, [&](auto m) { OnPlanDrop(from, m); });
    case AbortRequest::kType:
      return with(AbortRequest{}, [&](auto m) { OnAbort(m); });
    case NamespacesLinked::kType:
      return with(NamespacesLinked{}, [&](auto m) { OnLinked(m); });
    case NamespaceConnected::kType:
      return with(NamespaceConnected{}, [&](auto m) { OnConnected(from, m); });
    case TaskNotice::kType:
      return with(TaskNotice{}, [&](auto m) { OnNotice(from, m); });
    case ForeignReady::kType:
      return with(ForeignReady{}, [&](auto m) { OnForeignReady(from, m); });
    case ForeignCollective::kType:
      return with(ForeignCollective{}, [&](auto m) { OnCollective(from, frame.id, std::move(m)); });
    case ForeignModex::kType:
      return with(ForeignModex{}, [&](auto m) { OnModexOut(from, frame.id, m); });
    case ForeignModexReply::kType:
      return with(ForeignModexReply{}, [&](auto m) { OnModexServed(frame.id, m); });
    case SlurmJoined::kType:
      return with(SlurmJoined{}, [&](auto m) { OnSlurmJoined(from, m); });
    case SlurmLost::kType:
      return with(SlurmLost{}, [&](auto m) { OnSlurmLost(m); });
    case SrunEnded::kType:
      return with(SrunEnded{}, [&](auto m) { OnSrunEnded(m); });
    default:
      outlet_.Log(
          fmt::format("member {} sent a message of type {:#06x} to the head; ignored", from, frame.type));
  }
}

void Head::OnConnected(std::uint32_t from, const NamespaceConnected& message) {
  Namespace* ns = Find(message.nspace);
  if (ns == nullptr) return;
  const bool first = !std::exchange(ns->any_connected, true);
  if (message.pmix || message.pmi1)
    ns->in_mpi[from] = message;
  else
    ns->in_mpi.erase(from);
  WatchMixture(*ns);
  // From now on parent and child are one in MPI's eyes. A child that dies before fails the spawn alone.
  if (first && ns->reg.spawn != 0) OnLinked({{ns->reg.parent, message.nspace}, true});
  // It turns out only now that the others wait for that one.
  if (const auto early = std::exchange(ns->early_end, std::nullopt); early && !ns->ending)
    JudgeTaskEnd(*ns, *early);
}

void Head::OnNotice(std::uint32_t from, const TaskNotice& message) {
  constexpr std::size_t kMost = 16;  // of a namespace: what a broken program says differently each time
  Namespace* ns = Find(message.nspace);
  if (ns == nullptr || ns->ending || ns->notices.size() >= kMost) return;
  if (!ns->notices.insert(message.text).second) return;
  if (message.of_node) {
    if (warned_keys_.insert(message.text).second)
      HubOf(*ns).Notice(fmt::format("{}: {}: {}", members_.at(from).node, Name(*ns), message.text));
    return;
  }
  HubOf(*ns).Notice(
      fmt::format("{}: task {} of {}: {}", members_.at(from).node, message.rank, Name(*ns), message.text));
}

void Head::OnReady(std::uint32_t from, const NamespaceReady& message) {
  Namespace* ns = Find(message.nspace);
  if (ns == nullptr || ns->awaiting_ready.erase(from) == 0) return;
  if (!message.error.empty()) {
    ns->failed_to_start = true;
    EndNamespace(message.nspace,
                 fmt::format("node {} cannot host {}: {}", members_.at(from).node, Name(*ns), message.error),
                 EndKind::kFailure);
    return;
  }
  StartIfReady(*ns);
}

void Head::StartIfReady(Namespace& ns) {
  if (ns.phase != Phase::kRegistering || !ns.awaiting_ready.empty()) return;
  if (ns.ending) return CheckEnded(ns.reg.spec.nspace);
  ns.phase = Phase::kStarting;
  if (launch_.slurms && ns.reg.spawn != 0) NumberParts(ns);
  std::map<std::uint32_t, NamespaceStart> starts;
  for (std::uint32_t rank = 0; rank < ns.tasks.size(); ++rank) {
    const std::uint32_t member = ns.reg.spec.rank_member[rank];
    const auto known = members_.find(member);
    if (known == members_.end()) continue;
    NamespaceStart& start = starts[member];
    start.nspace = ns.reg.spec.nspace;
    const bool bind = ns.reg.spec.bind && !known->second.oversubscribed;
    start.tasks.push_back({Rank(rank), bind ? ns.rank_cores[rank] : std::vector<std::uint16_t>(), 0, 0});
    if (!ns.rank_part.empty())
      std::tie(start.tasks.back().part, start.tasks.back().number) = ns.rank_part[rank];
    if (rank == 0)
      start.want_stdin = ns.reg.spawn == 0 && HubOf(ns).interactive() && ns.reg.spec.stdio.in.empty();
    ns.tasks[rank] = TaskPhase::kAsked;
    ++ns.alive;
  }
  for (const auto& [member, start] : starts) ns.awaiting_started.insert(member);
  for (const auto& [member, start] : starts) Tell(member, start);
  if (!ns.parts.empty()) StartSruns(ns);
}

void Head::OnStarted(std::uint32_t from, const TasksStarted& message) {
  Namespace* ns = Find(message.nspace);
  if (ns == nullptr || ns->awaiting_started.erase(from) == 0) return;
  for (const TaskFailure& failure : message.failures) {
    const std::uint32_t rank = failure.rank.value;
    if (rank >= ns->tasks.size() || ns->tasks[rank] != TaskPhase::kAsked) continue;
    // One line is enough where every task fails in the same way.
    if (ns->failure.empty()) {
      ns->failure = fmt::format("{}: {}", members_.at(from).node, failure.message);
      HubOf(*ns).Notice(ns->failure);
    }
    ns->failed_to_start = true;
    ns->result.Force(failure.exit_code);
    ++tasks_failed_;
    EndedTask(*ns, rank);
  }
  for (const Rank skipped : message.skipped) {
    if (skipped.value >= ns->tasks.size() || ns->tasks[skipped.value] != TaskPhase::kAsked) continue;
    if (ns->failed_to_start) ++tasks_failed_;
    EndedTask(*ns, skipped.value);
  }
  if (ns->awaiting_started.empty()) {
    AllStarted(*ns);
  } else if (ns->failed_to_start) {  // the other members, and the sruns, need not go on starting
    StopSruns(*ns);
    EndNamespace(message.nspace, {}, EndKind::kQuiet);
  }
  CheckEnded(message.nspace);
}

void Head::AllStarted(Namespace& ns) {
  const std::string nspace = ns.reg.spec.nspace;
  ns.phase = Phase::kRunning;
  if (ns.failed_to_start) {
    AnswerSpawn(ns, pmix::kPmixErrJobFailedToStart);
    return EndNamespace(nspace, {}, EndKind::kQuiet);
  }
  if (ns.ending) {  // asked for while the start was under way
    AnswerSpawn(ns, pmix::kPmixErrJobFailedToStart);
    return AskToLeave(ns);
  }
  const Namespace* parent = ns.reg.spawn == 0 ? nullptr : Find(ns.reg.parent);
  if (ns.reg.spawn != 0 && (parent == nullptr || parent->ending)) {
    AnswerSpawn(ns, pmix::kPmixErrJobFailedToStart);
    return EndNamespace(nspace, {}, EndKind::kQuiet);  // nobody is left to talk to
  }
  AnswerSpawn(ns, pmix::kPmixSuccess);
  ReportBegin(ns);
  if (ns.reg.spawn != 0) return;
  Step& step = StepOf(ns);
  if (IsMain(step)) {
    started_at_ms_ = ToUnixMillis(outlet_.WallTime());
    TellController(wire::JobStarted{started_at_ms_});
  }
  ForwardInput(step);
}

// ------------------------------------------------------------------------------------------ ends of tasks

void Head::EndedTask(Namespace& ns, std::uint32_t rank) {
  ns.tasks[rank] = TaskPhase::kEnded;
  --ns.alive;
  GiveSlots(ns.reg.spec.rank_member[rank], ns.rank_cores[rank]);
  ns.rank_cores[rank].clear();
}

void Head::OnTaskEnded(std::uint32_t from, const TaskEnded& message) {
  Namespace* ns = Find(message.nspace);
  const std::uint32_t rank = message.end.rank.value;
  if (ns == nullptr || rank >= ns->tasks.size() || ns->tasks[rank] != TaskPhase::kAsked ||
      ns->reg.spec.rank_member[rank] != from)
    return;
  EndedTask(*ns, rank);
  ns->result.Add(message.end, ns->ending && !cancelled_ ? Counted::kNo : Counted::kYes);
  Apply(store_.ProcEnded({message.nspace, rank}), std::nullopt);
  if (message.singleton) {
    ns->singletons.push_back(rank);
    ns->mpi_library = message.mpi_library;
  }
  if (!ns->ending) JudgeTaskEnd(*ns, message);
  if (Namespace* still = Find(message.nspace); still != nullptr && still->result.has_lines()) {
    if (still->alive == 0)
      FlushLines(*still);
    else if (still->line_timer == TimerId{})
      still->line_timer = outlet_.After(options_.line_delay, [this, nspace = message.nspace] {
        if (Namespace* later = Find(nspace)) FlushLines(*later);
      });
  }
  CheckEnded(message.nspace);
}

// Does this end of a task end the others?
void Head::JudgeTaskEnd(Namespace& ns, const TaskEnded& message) {
  const wire::KillPolicy policy = ns.reg.spec.kill_policy;
  if (policy == wire::KillPolicy::kNever) return;
  const bool bad = CodeOf(message.end) != 0;
  const bool left_mpi = message.connected && !message.finalized;
  // The others wait for it in MPI_Init, for ever.
  const bool never_came = bad && !message.connected && (ns.any_connected || ns.reg.spawn != 0);
  std::string why;
  if (left_mpi)
    why = "ended without MPI_Finalize";
  else if (never_came)
    why = "ended before MPI_Init";
  else if (policy == wire::KillPolicy::kAlways && bad)
    why = "failed";
  if (why.empty()) {
    if (bad && !ns.early_end) ns.early_end = message;
    return;
  }
  ns.abnormal = true;
  const std::string nspace = ns.reg.spec.nspace;
  FlushLines(ns);
  std::string others;
  if (ns.alive == 1) others = "; the other task of it is ended";
  if (ns.alive > 1) others = fmt::format("; the other {} tasks of it are ended", ns.alive);
  if (left_mpi && !bad) ns.result.Force(1);
  ns.leave_code = ns.result.code();
  EndNamespace(
      nspace,
      fmt::format("{}: task {} of {} {}{}", message.end.node, message.end.rank, Name(ns), why, others),
      EndKind::kFailure);
}

void Head::FlushLines(Namespace& ns) {
  outlet_.Cancel(ns.line_timer);
  ns.line_timer = {};
  for (const std::string& line : ns.result.TakeLines()) {
    if (ns.failure.empty()) ns.failure = line;
    // How a script ended is its author's affair, as with sbatch: no line in his output. How a task of Slurm
    // did srun says.
    if (ns.reg.spec.step != wire::kBatchStep && !launch_.slurms) HubOf(ns).Notice(line);
  }
}

void Head::ReportBegin(Namespace& ns) {
  if (!launch_.slurms || ns.reg.spawn != 0 || ns.reg.spec.step == wire::kBatchStep) return Report(ns, false);
  ns.report_timer = outlet_.After(options_.report_delay, [this, nspace = ns.reg.spec.nspace] {
    Namespace* running = Find(nspace);
    if (running != nullptr && running->phase == Phase::kRunning) Report(*running, false);
  });
}

void Head::Report(const Namespace& ns, bool ended) {
  wire::NamespaceReport report;
  report.nspace = ns.reg.spec.nspace;
  report.parent = ns.reg.parent;
  report.size = static_cast<std::uint32_t>(ns.tasks.size());
  report.nodes = ns.reg.nodes;
  report.command = CommandOf(ns);
  report.ended = ended;
  report.exit_code = ended ? ns.result.code() : 0;
  report.grants = ns.grants;
  if (!ns.grants.empty()) report.grant = ns.grants.back();
  TellController(report);
}

// Ends the namespace once nothing of it runs and nobody is about to start any of it.
void Head::CheckEnded(const std::string& nspace) {
  Namespace* ns = Find(nspace);
  if (ns == nullptr || ns->alive > 0 || !ns->awaiting_started.empty()) return;
  const bool never_started = ns->phase == Phase::kRegistering;
  if (never_started && !ns->ending) return;
  Settle(nspace);
}

Status Head::CheckInvariants() const {
  for (const auto& [nspace, ns] : namespaces_) {
    const auto alive =
        static_cast<std::uint32_t>(std::count(ns.tasks.begin(), ns.tasks.end(), TaskPhase::kAsked));
    if (alive != ns.alive)
      return Error(Code::kInternal, "namespace {}: {} tasks asked, alive is {}", nspace, alive, ns.alive);
    if (ns.tasks.size() != ns.rank_cores.size())
      return Error(Code::kInternal, "namespace {}: cores and tasks differ", nspace);
    for (const std::uint32_t member : ns.awaiting_started)
      if (!members_.contains(member))
        return Error(Code::kInternal, "namespace {}: waits for member {}, which is gone", nspace, member);
    for (const std::string& other : ns.linked)
      if (!namespaces_.contains(other))
        return Error(Code::kInternal, "namespace {}: linked to '{}', which is gone", nspace, other);
  }
  std::size_t held = 0;
  for (const auto& [nspace, ns] : namespaces_)
    for (std::size_t rank = 0; rank < ns.tasks.size(); ++rank)
      if (members_.contains(ns.reg.spec.rank_member[rank])) held += ns.rank_cores[rank].size();
  for (const auto& [number, job] : spawns_)
    if (job.place)
      for (std::size_t rank = 0; rank < job.place->rank_member.size(); ++rank)
        if (members_.contains(job.place->rank_member[rank])) held += job.place->rank_cores[rank].size();
  if (slots_.total() - slots_.free() != held)
    return Error(Code::kInternal, "{} slots are taken, namespaces and plans hold {}",
                 slots_.total() - slots_.free(), held);
  for (const auto& [nspace, ns] : namespaces_)
    if (!steps_.contains(ns.reg.spec.step))
      return Error(Code::kInternal, "namespace {}: its step {} is gone", nspace, ns.reg.spec.step);
  for (const auto& [id, step] : steps_) {
    const bool queued = std::find(waiting_.begin(), waiting_.end(), id) != waiting_.end();
    if (queued != (step.phase == Step::Phase::kWaiting))
      return Error(Code::kInternal, "step {} waits and is not in the queue, or the reverse", id);
    const bool lives = std::any_of(namespaces_.begin(), namespaces_.end(), [&, wanted = id](const auto& it) {
      return it.second.reg.spec.step == wanted;
    });
    if (id != main_ && lives != (step.phase == Step::Phase::kRunning))
      return Error(Code::kInternal, "step {} runs without namespaces, or the reverse", id);
  }
  for (const auto& [id, gathering] : gatherings_)
    if (steps_.contains(id) || gathering.world.complete())
      return Error(Code::kInternal, "step {} of Slurm is a world and still gathered", id);
  for (const auto& [session, id] : step_sessions_)
    if (!steps_.contains(id)) return Error(Code::kInternal, "session {}: its step {} is gone", session, id);
  if (exit_ && !namespaces_.empty())
    return Error(Code::kInternal, "the job has ended with {} namespaces", namespaces_.size());
  return Status::Ok();
}

}  // namespace msa::jobd
