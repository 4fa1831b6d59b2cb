#include <algorithm>

#include "controller_impl.h"

namespace msa {
namespace {

// Shares of grants given back, kept for `job show`. A job that spawns 10,000 times must not write a growing
// record.
constexpr std::size_t kMaxPastShares = 256;
// Ten years: keeps sums of times from outside in range.
constexpr std::int64_t kMaxTimeMs = 10LL * 366 * 24 * 3600 * 1000;

}  // namespace

GrantRecord* Controller::Impl::FindGrant(JobId job, Incarnation incarnation, std::uint64_t request) {
  for (auto& [id, grant] : grants)
    if (grant.job == job && grant.incarnation == incarnation && grant.request == request) return &grant;
  return nullptr;
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::GrantAsk& m) {
  // A repeated ask gets its old answer, a waiting one goes on waiting.
  if (const GrantRecord* known = FindGrant(job.record.id, job.record.incarnation, m.request)) {
    SendMembership(job, "", {});
    return AnswerAsk(job, m.request, known, "");
  }
  if (const auto waiting = FindAsk(job.record.id, m.request); waiting != asks.end()) {
    // What it has said may have been lost.
    if (waiting->slurm && !waiting->slurm->vouched && waiting->slurm->own.empty())
      OrderCompanion(job, *waiting);
    return;
  }
  if (job.record.state == JobState::kEnding) return AnswerAsk(job, m.request, nullptr, "the job is ending");
  if (m.slots == 0) return AnswerAsk(job, m.request, nullptr, "0 slots asked; ask for at least 1");
  if (job.record.IsSlurms()) return AskSlurm(job, m);
  const auto refusal = TryGrant(job, m, Sizes::kFirst);
  if (!refusal) return;
  Instant deadline = now;
  // A week: beyond any wait that makes sense, below what overflows.
  if (refusal->possible_later)
    deadline += Millis(std::clamp<std::int64_t>(m.wait_ms, 0, 7 * 24 * 3600 * 1000LL));
  // The job's own last grant has just ended: it is refused for want of nodes, not for a race with itself.
  deadline = std::max(deadline, refusal->leaving_until);
  if (deadline <= now) {
    if (m.alternatives.empty() || TryGrant(job, m, Sizes::kAll))
      AnswerAsk(job, m.request, nullptr, refusal->reason);
    return;
  }
  asks.push_back({job.record.id, m, deadline, refusal->reason, now, std::nullopt});
  WakeAt(deadline);
}

// When the nodes come back at the latest: by the job's limit and the request's own.
Instant Controller::Impl::EndOf(const Job& job, const wire::GrantAsk& ask) const {
  Instant end = kNever;
  if (job.record.spec.time_limit_s > 0)
    end = job.record.placed_at + Millis(std::int64_t{1000} * job.record.spec.time_limit_s);
  if (ask.time_ms > 0) end = std::min(end, now + Millis(std::min(ask.time_ms, kMaxTimeMs)));
  return end;
}

std::optional<Controller::Impl::Refusal> Controller::Impl::TryGrant(Job& job, const wire::GrantAsk& ask,
                                                                    Sizes sizes) {
  DynamicRequest request;
  request.job = job.record.id;
  request.slots = ask.slots;
  request.nodes = ask.nodes;
  request.module = ask.module;
  request.slots_per_node = ask.slots_per_node;
  request.nodes_exactly = ask.nodes_exactly;
  if (sizes == Sizes::kAll) request.alternatives = ask.alternatives;
  request.until = EndOf(job, ask);
  for (const wire::Member& member : job.record.members)
    if (const Node* node = FindNode(member.node))
      request.own.push_back(static_cast<std::uint32_t>(node->index));
  std::erase_if(leaving, [this](const auto& entry) { return entry.second <= now; });
  Refusal refusal;
  for (const auto& [who, until] : leaving) {
    const auto& [name, id, incarnation] = who;
    const Node* node = FindNode(name);
    if (node == nullptr || id != job.record.id) continue;
    request.avoid.push_back(static_cast<std::uint32_t>(node->index));
    refusal.leaving_until = std::max(refusal.leaving_until, until);
  }
  DynamicAnswer answer = FindDynamic(View(), PendingJobs(), request, now, options.scheduler);
  if (answer.lent) {
    Lend(job, ask, *answer.lent, nullptr);
    return std::nullopt;
  }
  refusal.reason = std::move(answer.reason);
  refusal.possible_later = answer.possible_later;
  if (!answer.possible_later) refusal.leaving_until = Instant();
  return refusal;
}

wire::Member Controller::Impl::NewMember(Job& job, const Node& node, const Module& module, GrantId grant) {
  wire::Member member;
  member.index = job.record.next_member++;
  member.node = node.spec->name;
  member.module = module.id;
  member.module_name = module.name;
  member.module_kind = module.kind;
  member.grant = grant;
  member.oversubscribed = Oversubscribed(node);
  member.address = AddressOn(node, job.record);
  return member;
}

// Cores of nodes that the job has already extend its members there; other nodes become members.
void Controller::Impl::Lend(Job& job, const wire::GrantAsk& ask, const Placement& placement,
                            const wire::CompanionGranted* slurms) {
  JobRecord& record = job.record;
  last_grant = GrantId(last_grant.value + 1);
  GrantRecord grant;
  grant.id = last_grant;
  grant.job = record.id;
  grant.incarnation = record.incarnation;
  grant.request = ask.request;
  grant.since = now;
  grant.module = ask.module;
  const auto waited = std::find_if(asks.begin(), asks.end(), [&](const WaitingAsk& waiting) {
    return waiting.job == record.id && waiting.ask.request == ask.request;
  });
  grant.asked_at = waited == asks.end() ? now : waited->asked_at;
  Instant end = EndOf(job, ask);
  if (slurms != nullptr) {
    grant.slurm_job = slurms->job;
    const auto latest = static_cast<std::uint64_t>((ToUnixMillis(now) + kMaxTimeMs) / 1000);
    const std::uint64_t its_end = std::min(slurms->end, latest);
    if (its_end != 0) end = std::min(end, FromUnixMillis(static_cast<std::int64_t>(its_end) * 1000));
  }
  if (end != kNever) grant.until = end;
  record.epoch = Epoch(record.epoch.value + 1);
  grant.epoch = record.epoch;
  std::vector<std::uint32_t> fresh;
  for (const NodeShare& share : placement) {
    const Node& node = nodes[share.node];
    const Module* module = topology.FindModule(node.spec->module);
    const wire::Member* held = record.MemberOn(node.spec->name);
    const std::uint32_t index = held != nullptr ? held->index : record.next_member;
    if (held == nullptr) {
      fresh.push_back(index);
      record.members.push_back(NewMember(job, node, *module, grant.id));
    }
    grant.members.push_back(index);
    grant.slots += static_cast<std::uint32_t>(share.cores.size());
    record.allocations.push_back(
        {node.spec->name, module->name, 0, share.cores, 0, share.memory, share.gpus, grant.id, index, false});
    SetCores(record, index);
  }
  if (slurms != nullptr) grant.slots = slurms->slots;  // of whole nodes, maybe
  grants.emplace(grant.id, grant);
  Put(job);
  Emit(effect::PutGrant{grant});
  SendStart(job, fresh, false);
  SendMembership(job, "", fresh);
  AnswerAsk(job, ask.request, &grant, "");
  Change(job);
}

void Controller::Impl::AnswerAsk(const Job& job, std::uint64_t request, const GrantRecord* grant,
                                 const std::string& refusal) {
  wire::GrantAnswer answer;
  answer.request = request;
  if (grant != nullptr && !grant->released) {
    answer.grant = grant->id;
    answer.slurm_job = grant->slurm_job;
    answer.epoch = grant->epoch;
    answer.members = grant->members;
    for (const Allocation& share : job.record.allocations) {
      if (share.grant != grant->id || share.given_back) continue;
      answer.shares.push_back({share.member, share.cores});
      answer.slots += static_cast<std::uint32_t>(share.cores.size());
    }
    if (grant->slurm_job.value != 0) answer.slots = grant->slots;
  } else {
    answer.reason = grant != nullptr ? "the grant was released already" : refusal;
  }
  SendToMember(job, job.record.head, answer);
}

void Controller::Impl::SendMembership(const Job& job, const std::string& reason,
                                      const std::vector<std::uint32_t>& except) {
  const wire::MembersChanged changed{job.record.epoch, BuildLaunch(job, false)->members, reason};
  for (const wire::Member& member : job.record.members)
    if (std::find(except.begin(), except.end(), member.index) == except.end())
      SendToMember(job, member.index, changed);
}

void Controller::Impl::RetryAsks() {
  for (auto it = asks.begin(); it != asks.end();) {
    if (it->slurm) {
      SettleCompanion(it++);
      continue;
    }
    Job* job = Find(it->job);
    const bool over = job == nullptr || !active.contains(it->job) || job->record.state == JobState::kEnding;
    bool lent = false;
    if (!over) {
      const auto refusal = TryGrant(*job, it->ask, it->deadline <= now ? Sizes::kAll : Sizes::kFirst);
      lent = !refusal;
      if (refusal) it->reason = refusal->reason;
    }
    if (lent) {
      it = asks.erase(it);
    } else if (over || it->deadline <= now) {
      if (job != nullptr && !IsFinal(job->record.state))
        AnswerAsk(*job, it->ask.request, nullptr, over ? "the job is ending" : it->reason);
      it = asks.erase(it);
    } else {
      WakeAt(it->deadline);
      ++it;
    }
  }
}

// Nobody waits for it any more. What was lent meanwhile is given back.
void Controller::Impl::OnMessage(Job& job, const std::string&, wire::GrantWithdraw& m) {
  if (const auto waiting = FindAsk(job.record.id, m.request); waiting != asks.end()) {
    if (waiting->slurm)
      DropCompanion(job, waiting);
    else
      asks.erase(waiting);
  }
  GrantRecord* grant = FindGrant(job.record.id, job.record.incarnation, m.request);
  if (grant != nullptr && !grant->released) ReleaseGrant(job, *grant, true);
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::GrantRelease& m) {
  const auto it = grants.find(m.grant);
  if (it == grants.end() || it->second.job != job.record.id || it->second.released) return;
  ReleaseGrant(job, it->second, true);
}

// Shares may have cores in common: Slurm gives one to several jobs.
bool Controller::Impl::SetCores(JobRecord& record, std::uint32_t index) {
  wire::Member* member = record.FindMember(index);
  if (member == nullptr) return false;
  std::set<std::uint16_t> cores;
  for (const Allocation& share : record.allocations)
    if (share.member == index && !share.given_back) cores.insert(share.cores.begin(), share.cores.end());
  const std::vector<std::uint16_t> before =
      std::exchange(member->cores, std::vector<std::uint16_t>(cores.begin(), cores.end()));
  return member->cores != before;
}

// The node leaves the job with its last share.
void Controller::Impl::GiveBack(Job& job, Allocation& share, bool quit_daemon) {
  JobRecord& record = job.record;
  share.given_back = true;
  wire::Member* member = record.FindMember(share.member);
  if (member == nullptr) return;
  const auto other =
      std::find_if(record.allocations.begin(), record.allocations.end(),
                   [&](const Allocation& a) { return a.member == share.member && !a.given_back; });
  if (other != record.allocations.end()) {
    if (member->grant == share.grant) member->grant = other->grant;
    SetCores(record, share.member);
    return;
  }
  if (quit_daemon) {
    Emit(effect::SendQuitJob{member->node, record.id, record.incarnation,
                             fmt::format("grant {} was released", share.grant)});
    leaving[{member->node, record.id, record.incarnation}] = now + kLeaveWait;
  }
  std::erase_if(record.members, [&](const wire::Member& m) { return m.index == share.member; });
}

void Controller::Impl::ReleaseGrant(Job& job, GrantRecord& grant, bool quit_daemons) {
  JobRecord& record = job.record;
  grant.released = true;
  for (Allocation& share : record.allocations)
    if (share.grant == grant.id && !share.given_back) GiveBack(job, share, quit_daemons);
  LetGo(job, grant);
  if (record.allocations.size() > kMaxPastShares)
    std::erase_if(record.allocations, [&](const Allocation& share) { return share.grant == grant.id; });
  record.epoch = Epoch(record.epoch.value + 1);
  Put(job);
  Emit(effect::PutGrant{grant});
  SendMembership(job, "", {});
  Change(job);
  NeedPass();
}

}  // namespace msa
