// Grants of jobs that Slurm schedules: msa-companion, which the head's job daemon runs as the user, asks
// Slurm for a job of its own beside the job, and that job's nodes are lent. See
// msa/base/companion_messages.h.
#include <algorithm>

#include "msa/job/name_text.h"

#include "controller_impl.h"

namespace msa {
namespace {

// Beyond the wait itself: msa-companion refuses in time with Slurm's reason, or Slurm has granted and the
// agent has not said so.
constexpr Millis kCompanionSlack{15000};
// What msa-companion has to cancel its job before the agent does.
constexpr Millis kCancelWait{5000};
// A week, as for grants of our own.
constexpr std::int64_t kMaxWaitMs = 7LL * 24 * 3600 * 1000;

std::string InSlurm(JobId job) { return fmt::format("companion job {} of Slurm", job); }

}  // namespace

Controller::Impl::AskPosition Controller::Impl::FindAsk(JobId job, std::uint64_t request) {
  return std::find_if(asks.begin(), asks.end(), [&](const WaitingAsk& waiting) {
    return waiting.job == job && waiting.ask.request == request;
  });
}

const GrantRecord* Controller::Impl::FindCompanion(JobId slurm_job) const {
  if (slurm_job.value == 0) return nullptr;
  for (const auto& [id, grant] : grants)
    if (grant.slurm_job == slurm_job) return &grant;
  return nullptr;
}

JobId Controller::Impl::ParentOf(JobId slurm_job) const {
  const GrantRecord* grant = FindCompanion(slurm_job);
  return grant == nullptr ? slurm_job : grant->job;
}

std::vector<JobId> Controller::Impl::SlurmIdsOf(JobId job) const {
  std::vector<JobId> out = {job};
  for (const auto& [id, grant] : grants)
    if (grant.job == job && grant.slurm_job.value != 0) out.push_back(grant.slurm_job);
  return out;
}

// A module is the partition of its name, as for --module. Nodes that are named say which module is meant.
Result<std::string> Controller::Impl::PartitionOf(const wire::GrantAsk& ask) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& name : ask.nodes) {
    const Node* node = FindNode(name);
    if (node == nullptr)
      return Error(Code::kNotFound, "node '{}' is not in the topology of {}; see 'msactl node list'", name,
                   topology.system_name);
    if (ask.module.empty()) add(topology.FindModule(node->spec->module)->name);
  }
  if (!ask.module.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::vector<const Module*> modules, topology.SelectModules(ask.module));
    for (const Module* module : modules) add(module->name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

void Controller::Impl::AskSlurm(Job& job, const wire::GrantAsk& ask) {
  auto partition = PartitionOf(ask);
  if (!partition.ok()) return AnswerAsk(job, ask.request, nullptr, partition.status().message());
  const Instant until = now + Millis(std::clamp<std::int64_t>(ask.wait_ms, 0, kMaxWaitMs));
  WaitingAsk waiting{job.record.id, ask, until + kCompanionSlack, "Slurm is asked", now, std::nullopt};
  waiting.slurm = WaitingAsk::Slurm();
  waiting.slurm->partition = *std::move(partition);
  waiting.slurm->until = until;
  asks.push_back(std::move(waiting));
  if (!LookForOwnNodes(job, asks.back())) OrderCompanion(job, asks.back());
  WakeAt(asks.back().deadline);
  Change(job);
}

bool Controller::Impl::LookForOwnNodes(const Job& job, WaitingAsk& waiting) {
  if (job.own_nodes_known || !agent_up) return false;
  std::set<JobId> components(job.record.slurm_jobs.begin(), job.record.slurm_jobs.end());
  if (const auto known = slurm_components.find(job.record.id); known != slurm_components.end())
    components.insert(known->second.begin(), known->second.end());
  for (const JobId component : components)
    waiting.slurm->own[AskAgent(wire::SlurmJobQuestion{component})] = component;
  waiting.reason = "what the job holds in Slurm is looked for";
  return true;
}

void Controller::Impl::OnOwnNodes(AskPosition waiting, std::uint64_t question,
                                  const wire::SlurmJobAnswer& answer) {
  Job& job = *Find(waiting->job);
  const JobId component = waiting->slurm->own.extract(question).mapped();
  if (answer.code != Code::kOk) {
    // The companion's program knows how to wait for slurmctld.
    waiting->slurm->own.clear();
    waiting->reason = "Slurm is asked";
    return OrderCompanion(job, *waiting);
  }
  TakeOwnNodes(job, *waiting, component, answer);
  if (!waiting->slurm->own.empty()) return;
  job.own_nodes_known = true;
  for (auto& [of, shares] : waiting->slurm->found) {
    wire::GrantAnswer found;
    found.slurm_job = of;
    found.shares = std::move(shares);
    SendToMember(job, job.record.head, found);
  }
  AnswerAsk(job, waiting->ask.request, nullptr, "");
  asks.erase(waiting);
}

void Controller::Impl::TakeOwnNodes(Job& job, WaitingAsk& waiting, JobId component,
                                    const wire::SlurmJobAnswer& answer) {
  JobRecord& record = job.record;
  if (answer.job.state != "RUNNING" || answer.job.leader != record.id ||
      answer.job.user.uid != record.user.uid || answer.job.restarts < record.slurm_restarts ||
      record.state == JobState::kEnding)
    return;
  std::vector<std::uint32_t> fresh;
  bool changed = record.slurm_restarts < answer.job.restarts;
  // A companion of a run before is cancelled as soon as the agent sees it.
  record.slurm_restarts = answer.job.restarts;
  for (const wire::SlurmNodeCores& held : answer.cores) {
    const Node* node = FindNode(held.node);
    const bool leaves = leaving.contains({held.node, record.id, record.incarnation});
    if (node == nullptr || node->state == NodeState::kDown || node->session == 0 || leaves) continue;
    wire::SlurmStepBegin part;
    part.node = held.node;
    part.component_job = component;
    part.cores = held.cores;
    if (!AddSlurmShare(job, part, fresh)) continue;
    changed = true;
    waiting.slurm->found[component].push_back({record.MemberOn(held.node)->index, held.cores});
  }
  if (!changed) return;
  record.epoch = Epoch(record.epoch.value + 1);
  Put(job);
  SendStart(job, fresh, false);
  SendMembership(job, "", fresh);
  Change(job);
}

void Controller::Impl::OrderCompanion(const Job& job, const WaitingAsk& waiting) {
  wire::CompanionAsk ask;
  ask.parent = job.record.id;
  ask.restarts = job.record.slurm_restarts;
  ask.request = waiting.ask.request;
  ask.partition = waiting.slurm->partition;
  ask.nodes = waiting.ask.nodes;
  ask.slots = waiting.ask.slots;
  ask.alternatives = waiting.ask.alternatives;
  ask.slots_per_node = waiting.ask.slots_per_node;
  ask.nodes_exactly = waiting.ask.nodes_exactly;
  ask.wait_ms = std::max<std::int64_t>(0, (waiting.slurm->until - now) / Millis(1));
  ask.time_ms = waiting.ask.time_ms;
  ask.again = waiting.slurm->again;
  ask.incarnation = job.record.incarnation;
  SendToMember(job, job.record.head, wire::CompanionOrder::Of(ask.request, ask));
}

// ------------------------------------------------------------------------------------------ msa-companion

void Controller::Impl::OnMessage(Job& job, const std::string& node, wire::CompanionReport& m) {
  const wire::Member* head = job.record.FindMember(job.record.head);
  if (!job.record.IsSlurms() || head == nullptr || head->node != node) return;
  const auto with = [&](auto message) {
    auto decoded = wire::Decode<decltype(message)>(m.payload);
    if (decoded.ok()) return OnCompanion(job, m.request, *decoded);
    Emit(effect::Log{
        fmt::format("job {}: msa-companion on {}: {}", job.record.id, node, decoded.status().message())});
  };
  switch (m.type) {
    case 0:
      return CompanionGone(job, m.request, fmt::format("{}: {}", node, CleanReason(m.payload)));
    case wire::CompanionPending::kType:
      return with(wire::CompanionPending());
    case wire::CompanionGranted::kType:
      return with(wire::CompanionGranted());
    case wire::CompanionRefused::kType:
      return with(wire::CompanionRefused());
    case wire::CompanionEnded::kType:
      return with(wire::CompanionEnded());
    default:
      return;
  }
}

void Controller::Impl::OnCompanion(Job& job, std::uint64_t request, const wire::CompanionPending& m) {
  const auto waiting = FindAsk(job.record.id, request);
  if (waiting == asks.end() || !waiting->slurm || waiting->slurm->granted) return;
  waiting->slurm->job = m.job;
  const std::string why = CleanReason(m.message.empty() ? m.reason : m.message);
  waiting->reason = m.job.value == 0 ? why : fmt::format("{} is queued: {}", InSlurm(m.job), why);
  Change(job);
}

void Controller::Impl::OnCompanion(Job& job, std::uint64_t request, wire::CompanionGranted& m) {
  const auto waiting = FindAsk(job.record.id, request);
  if (waiting == asks.end()) {
    const GrantRecord* known = FindGrant(job.record.id, job.record.incarnation, request);
    if (known == nullptr || known->released)
      SendToMember(job, job.record.head, wire::CompanionOrder::Of(request, wire::CompanionRelease()));
    return;
  }
  if (!waiting->slurm || waiting->slurm->vouched) return;
  waiting->slurm->job = m.job;
  waiting->slurm->granted = std::move(m);
  waiting->slurm->question = 0;
  waiting->reason = fmt::format("{} is checked", InSlurm(waiting->slurm->job));
  SettleCompanion(waiting);
}

void Controller::Impl::OnCompanion(Job& job, std::uint64_t request, const wire::CompanionRefused& m) {
  const auto waiting = FindAsk(job.record.id, request);
  if (waiting == asks.end() || !waiting->slurm) return;
  AnswerAsk(job, request, nullptr, CleanReason(m.message.empty() ? m.reason : m.message));
  asks.erase(waiting);
  Change(job);
}

void Controller::Impl::OnCompanion(Job& job, std::uint64_t request, const wire::CompanionEnded& m) {
  const std::string why = CleanReason(fmt::format("{}{}{}", m.state.empty() ? "it is over" : m.state,
                                                  m.message.empty() ? "" : ": ", m.message));
  if (const auto waiting = FindAsk(job.record.id, request); waiting != asks.end() && waiting->slurm) {
    AnswerAsk(job, request, nullptr, fmt::format("{} has ended: {}", InSlurm(m.job), why));
    asks.erase(waiting);
    return Change(job);
  }
  const GrantRecord* grant = FindGrant(job.record.id, job.record.incarnation, request);
  if (grant == nullptr) return;
  const JobId slurm_job = grant->slurm_job;
  if (!grant->released) LoseCompanion(job.record.id, grant->id, why);
  leaving_companions.erase(slurm_job);
}

void Controller::Impl::CompanionGone(Job& job, std::uint64_t request, const std::string& why) {
  const auto waiting = FindAsk(job.record.id, request);
  // Of one that was lent the agent tells.
  if (waiting == asks.end() || !waiting->slurm || waiting->slurm->vouched) return;
  WaitingAsk::Slurm& slurm = *waiting->slurm;
  slurm.granted.reset();
  slurm.question = 0;
  if (slurm.again)
    return RefuseCompanion(job, waiting, "msa-companion has ended twice without an answer; " + why);
  slurm.again = true;
  OrderCompanion(job, *waiting);
}

// ------------------------------------------------------------------------------------------ what was granted

void Controller::Impl::SettleCompanion(AskPosition waiting) {
  Job* job = Find(waiting->job);
  if (job == nullptr || !active.contains(waiting->job)) {
    asks.erase(waiting);
    return;
  }
  if (job->record.state == JobState::kEnding) return RefuseCompanion(*job, waiting, "the job is ending");
  if (waiting->slurm->vouched) {
    const Result<bool> taken = TakeCompanion(*job, *waiting);
    if (!taken.ok()) return RefuseCompanion(*job, waiting, taken.status().message());
    if (*taken) {
      asks.erase(waiting);
      return;
    }
  } else {
    Verify(*waiting);
  }
  if (waiting->deadline <= now)
    return RefuseCompanion(*job, waiting, "not within the wait: " + waiting->reason);
  WakeAt(waiting->deadline);
}

void Controller::Impl::Verify(WaitingAsk& waiting) {
  WaitingAsk::Slurm& slurm = *waiting.slurm;
  if (!slurm.granted || slurm.question != 0) return;
  if (agent_up) {
    slurm.question = AskAgent(wire::SlurmJobQuestion{slurm.granted->job});
    return;
  }
  waiting.reason = fmt::format(
      "{} is granted, and msa-slurm-agent, which has to confirm it, is away; see the log of msa-controllerd",
      InSlurm(slurm.granted->job));
}

Status Controller::Impl::CheckCompanion(const Job& job, const WaitingAsk& waiting,
                                        const wire::SlurmJobAnswer& answer) const {
  const wire::CompanionGranted& granted = *waiting.slurm->granted;
  const auto untrue = [&](const std::string& what) {
    return Error(Code::kPermissionDenied, "what was said of {} is not so: {}", InSlurm(granted.job), what);
  };
  if (answer.code != Code::kOk) return untrue(CleanReason(answer.message));
  if (answer.job.job != granted.job) return untrue("Slurm told of another job");
  if (answer.job.user.uid != job.record.user.uid)
    return untrue(fmt::format("it belongs to uid {}, not to {}", answer.job.user.uid, job.record.user_name));
  if (answer.job.over || answer.job.state != "RUNNING")
    return untrue(fmt::format("it is {}", answer.job.state));
  if (FindCompanion(granted.job) != nullptr) return untrue("it is lent already");
  for (const JobId id : active) {
    const auto& components = Find(id)->record.slurm_jobs;
    if (std::find(components.begin(), components.end(), granted.job) != components.end())
      return untrue(fmt::format("it is of job {} itself", id));
  }
  std::uint64_t slots = 0;
  std::set<std::string> seen;
  for (const wire::SlurmNodeCores& share : granted.nodes) {
    if (!seen.insert(share.node).second)
      return untrue(fmt::format("it is said to hold {} twice", share.node));
    const auto held = std::find_if(answer.cores.begin(), answer.cores.end(),
                                   [&](const auto& one) { return one.node == share.node; });
    if (held == answer.cores.end() ||
        !std::includes(held->cores.begin(), held->cores.end(), share.cores.begin(), share.cores.end()))
      return untrue(fmt::format("it does not hold {}, or not these cores", share.node));
    slots += share.cores.size();
  }
  if (granted.slots == 0 || slots < granted.slots)
    return untrue(fmt::format("its nodes have {} cores, not {}", slots, granted.slots));
  return Status::Ok();
}

Result<bool> Controller::Impl::TakeCompanion(Job& job, const WaitingAsk& waiting) {
  const wire::CompanionGranted& granted = *waiting.slurm->granted;
  std::erase_if(leaving, [this](const auto& entry) { return entry.second <= now; });
  Placement placement;
  bool ready = true;
  for (const wire::SlurmNodeCores& share : granted.nodes) {
    const Node* node = FindNode(share.node);
    if (node == nullptr)
      return Error(
          Code::kNotFound,
          "Slurm gave node {}, which is not in the topology of {}; add it there, or name another module",
          share.node, topology.system_name);
    if (node->state == NodeState::kDown)
      return Error(Code::kUnavailable,
                   "Slurm gave node {}, which has no node daemon of msa ({}); start msa-noded there",
                   share.node, node->down_reason);
    const auto left = leaving.find({share.node, job.record.id, job.record.incarnation});
    if (left != leaving.end()) WakeAt(left->second);
    ready = ready && node->session != 0 && left == leaving.end();
    NodeShare& lent = placement.emplace_back();
    lent.node = static_cast<std::uint32_t>(node->index);
    lent.cores = share.cores;
  }
  if (ready) Lend(job, waiting.ask, placement, &granted);
  return ready;
}

// An agent's word on the job has been heard only where it was vouched for: it cancels none by a job daemon's.
void Controller::Impl::DropCompanion(const Job& job, AskPosition waiting) {
  const WaitingAsk::Slurm& slurm = *waiting->slurm;
  SendToMember(job, job.record.head,
               wire::CompanionOrder::Of(waiting->ask.request, wire::CompanionRelease()));
  if (slurm.vouched) {
    leaving_companions[slurm.job] = {job.record.id, now + kCancelWait};
    WakeAt(now + kCancelWait);
  }
  asks.erase(waiting);
}

void Controller::Impl::RefuseCompanion(Job& job, AskPosition waiting, const std::string& text) {
  AnswerAsk(job, waiting->ask.request, nullptr, text);
  DropCompanion(job, waiting);
  Change(job);
}

void Controller::Impl::LetGo(const Job& job, const GrantRecord& grant) {
  if (grant.slurm_job.value == 0) return;
  SendToMember(job, job.record.head, wire::CompanionOrder::Of(grant.request, wire::CompanionRelease()));
  leaving_companions[grant.slurm_job] = {grant.job, now + kCancelWait};
  WakeAt(now + kCancelWait);
}

void Controller::Impl::LoseCompanion(JobId id, GrantId grant_id, const std::string& reason,
                                     const std::string& node) {
  const auto find = [&]() -> GrantRecord* {
    const auto it = grants.find(grant_id);
    return it == grants.end() || it->second.released ? nullptr : &it->second;
  };
  GrantRecord* grant = find();
  if (grant == nullptr) return;
  Job& job = *Find(id);
  const std::string text =
      fmt::format("{} is over{}: {}", InSlurm(grant->slurm_job), node.empty() ? "" : " on " + node, reason);
  const auto& shares = job.record.allocations;
  std::vector<std::uint32_t> alone;
  bool shared = false;
  for (const Allocation& share : shares) {
    if (share.grant != grant_id || share.given_back || (!node.empty() && share.node != node)) continue;
    const bool others = std::any_of(shares.begin(), shares.end(), [&](const Allocation& other) {
      return other.member == share.member && other.grant != grant_id && !other.given_back;
    });
    if (!others) alone.push_back(share.member);
    shared = shared || others;
  }
  for (const std::uint32_t member : alone) {
    LoseMember(job, member, text, true);
    if (IsFinal(job.record.state)) return;
  }
  // What is left are cores of nodes that the job keeps: its head ends what runs there.
  grant = find();
  if (grant == nullptr || !grant->recall.empty() || !shared) return;
  grant->recall = text;
  Emit(effect::PutGrant{*grant});
  Recall(job, *grant);
  Change(job);
}

// ------------------------------------------------------------------------------------------ steps

// Children of the job run there; the shares are the grant's.
Result<Controller::Impl::Job*> Controller::Impl::TakeCompanionStep(const GrantRecord& grant,
                                                                   const SlurmStep& step) {
  Job* job = Find(grant.job);
  const wire::SlurmStepBegin& begin = step.parts.begin()->second;
  if (grant.released || !grant.recall.empty())
    return Error(Code::kAborted, "it is a companion of job {}, which has given it back", grant.job);
  if (job->record.user.uid != begin.user.uid)
    return Error(Code::kPermissionDenied, "it is a companion of job {} of user {}, the step is of uid {}",
                 grant.job, job->record.user_name, begin.user.uid);
  if (job->record.state == JobState::kEnding)
    return Error(Code::kAborted, "job {}, whose companion it is, is ending: {}", grant.job,
                 job->record.reason);
  for (const wire::SlurmNodeTasks& one : step.nodes)
    if (job->record.MemberOn(one.node) == nullptr)
      return Error(Code::kAborted, "job {}, whose companion it is, has lost node {}", grant.job, one.node);
  return job;
}

}  // namespace msa
