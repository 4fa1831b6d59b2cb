// What msa-slurm-agent sees in Slurm, and does there: see msa/base/slurm_agent_messages.h.
#include <algorithm>

#include "msa/job/name_text.h"

#include "controller_impl.h"

namespace msa {
namespace {

// A job is over in Slurm as soon as its tasks are told to end; its epilog tells when they have. This long
// after, who has no step on a node any more is ended there.
constexpr Millis kEpilogWait{5000};
constexpr Millis kCancelAgain{10000};
constexpr Millis kAskAgain{1000};

}  // namespace

void Controller::Impl::Handle(event::FromSlurmAgent& e) {
  std::visit([&](auto& message) { OnAgent(e.id, message); }, e.message);
}

void Controller::Impl::Handle(event::SlurmAgentLost&) {
  agent_up = false;
  agent_listed.reset();
  ForgetAgentAsks();
  RetryAsks();
}

void Controller::Impl::ForgetAgentAsks() {
  for (DoubtedStep& one : doubted_steps) one.question = 0;
  agent_questions.clear();
  agent_cancels.clear();
  agent_sweeps.clear();
  for (WaitingAsk& waiting : asks) {
    if (!waiting.slurm) continue;
    waiting.slurm->question = 0;
    if (waiting.slurm->own.empty()) continue;
    waiting.slurm->own.clear();
    if (const Job* job = Find(waiting.job)) OrderCompanion(*job, waiting);
  }
}

void Controller::Impl::OnAgent(std::uint64_t, wire::SlurmAgentState& m) {
  const bool came = m.slurmctld_up && !agent_up;
  agent_up = m.slurmctld_up;
  Emit(effect::Log{m.slurmctld_up ? fmt::format("msa-slurm-agent: Slurm {} of cluster '{}' answers",
                                                m.slurm_version, m.cluster)
                                  : fmt::format("msa-slurm-agent: slurmctld is away: {}", m.message)});
  if (came) SendOrphans();
  SettleDoubts();
  RetryAsks();
}

void Controller::Impl::OnAgent(std::uint64_t, wire::SlurmJobsChanged& m) {
  if (m.complete && !agent_listed) {
    agent_listed.emplace();
    slurm_components.clear();
  }
  for (const wire::SlurmJob& job : m.jobs) {
    if (agent_listed) agent_listed->insert(job.job);
    NoteComponent(job);
    SlurmJobIsOver(job.job, &job);
  }
  for (const JobId job : m.gone) SlurmJobIsOver(job, nullptr);
  if (!m.more && agent_listed) CheckUnlisted();
  SettleDoubts();
}

// A heterogeneous job's may have no step, and so be known by nobody else.
void Controller::Impl::NoteComponent(const wire::SlurmJob& job) {
  if (job.leader == job.job) return;
  if (!job.over) {
    slurm_components[job.leader].insert(job.job);
    return;
  }
  const auto known = slurm_components.find(job.leader);
  if (known == slurm_components.end()) return;
  known->second.erase(job.job);
  if (known->second.empty()) slurm_components.erase(known);
}

// Jobs that Slurm has forgotten while nobody looked; or that have begun since it was asked.
void Controller::Impl::CheckUnlisted() {
  std::set<JobId> ours;
  for (const JobId id : active)
    for (const JobId component : Find(id)->record.slurm_jobs) ours.insert(component);
  for (const auto& [id, grant] : grants)
    if (grant.slurm_job.value != 0 && !grant.released) ours.insert(grant.slurm_job);
  for (const JobId job : ours)
    if (!agent_listed->contains(job)) agent_questions[AskAgent(wire::SlurmJobQuestion{job})] = job;
  std::erase_if(leaving_companions,
                [this](const auto& entry) { return !agent_listed->contains(entry.first); });
  agent_listed.reset();
}

void Controller::Impl::OnAgent(std::uint64_t id, wire::SlurmJobAnswer& m) {
  if (OnDoubtAnswered(id, m)) return;
  if (const auto asked = agent_questions.extract(id); !asked.empty()) {
    if (m.code == Code::kNotFound) SlurmJobIsOver(asked.mapped(), nullptr);
    if (m.code == Code::kOk) SlurmJobIsOver(asked.mapped(), &m.job);
    return;
  }
  const auto looking = std::find_if(asks.begin(), asks.end(), [&](const WaitingAsk& one) {
    return one.slurm && one.slurm->own.contains(id);
  });
  if (looking != asks.end()) return OnOwnNodes(looking, id, m);
  const auto waiting = std::find_if(asks.begin(), asks.end(), [&](const WaitingAsk& one) {
    return id != 0 && one.slurm && one.slurm->question == id;
  });
  if (waiting == asks.end()) return;
  Job& job = *Find(waiting->job);
  if (m.code == Code::kUnavailable || m.code == Code::kInternal) {
    // Asked again at the next tick.
    waiting->slurm->question = 0;
    waiting->reason =
        fmt::format("Slurm does not confirm job {}: {}", waiting->slurm->job, CleanReason(m.message));
    return WakeAt(now + kAskAgain);
  }
  if (const Status status = CheckCompanion(job, *waiting, m); !status.ok()) {
    Emit(effect::Log{fmt::format("job {}: {}", job.record.id, status.message())});
    return RefuseCompanion(job, waiting, status.message());
  }
  waiting->slurm->vouched = true;
  waiting->reason =
      fmt::format("companion job {} of Slurm is granted, its nodes are not ready yet", waiting->slurm->job);
  SettleCompanion(waiting);
}

void Controller::Impl::OnAgent(std::uint64_t id, wire::SlurmOrphansCancelled& m) {
  for (const JobId job : m.jobs) leaving_companions.erase(job);
  if (!m.jobs.empty())
    Emit(effect::Log{
        fmt::format("cancelled companions in Slurm whose parents are over: {}", fmt::join(m.jobs, ", "))});
  const auto sweep = agent_sweeps.extract(id);
  if (sweep.empty() || m.code != Code::kOk) return;
  // Another incarnation of one may have ended since.
  for (const auto& parent : sweep.mapped())
    std::erase_if(orphan_parents, [&](const auto& one) { return one == parent; });
}

void Controller::Impl::OnAgent(std::uint64_t id, wire::SlurmDone& m) {
  const auto cancel = agent_cancels.extract(id);
  if (cancel.empty()) return;
  if (m.code == Code::kOk || m.code == Code::kNotFound)
    leaving_companions.erase(cancel.mapped());
  else
    Emit(effect::Log{fmt::format("companion {} is not cancelled yet: {}", cancel.mapped(), m.message)});
}

// Ended companions of jobs that go on; with a job's end all that are its.
void Controller::Impl::SendOrphans() {
  if (!agent_up || orphan_parents.empty()) return;
  wire::SlurmCancelOrphans ask;
  for (const auto& [parent, incarnation] : orphan_parents) {
    ask.parents.push_back(parent);
    ask.incarnations.push_back(incarnation);
  }
  agent_sweeps[AskAgent(ask)] = orphan_parents;
}

void Controller::Impl::CancelLeaving() {
  for (auto& [job, one] : leaving_companions) {
    if (one.next <= now) {
      if (agent_up) agent_cancels[AskAgent(wire::SlurmCancelJob{job})] = job;
      one.next = now + kCancelAgain;
    }
    WakeAt(one.next);
  }
}

// `as`: what Slurm says of it, over or not; null: it knows it no more.
void Controller::Impl::SlurmJobIsOver(JobId slurm_job, const wire::SlurmJob* as) {
  const bool over = as == nullptr || as->over;
  if (over) leaving_companions.erase(slurm_job);
  if (const GrantRecord* grant = FindCompanion(slurm_job)) {
    if (!over) return;
    if (!grant->released)
      LoseCompanion(grant->job, grant->id, as == nullptr ? "Slurm has forgotten it" : as->state);
    leaving_companions.erase(slurm_job);
    return;
  }
  for (const JobId id : active) {
    JobRecord& record = Find(id)->record;
    if (std::find(record.slurm_jobs.begin(), record.slurm_jobs.end(), slurm_job) == record.slurm_jobs.end())
      continue;
    // Of the run before, which had ended when this one began; or of the next.
    if (as != nullptr && as->restarts < record.slurm_restarts) return;
    if (!over && as->restarts == record.slurm_restarts) return;
    // The plugin could not tell how often it was requeued: it is this run if it runs where ours does.
    const wire::Member* head = record.FindMember(record.head);
    if (!over && head != nullptr && HasSlurmStep(id, head->node) &&
        std::find(as->nodes.begin(), as->nodes.end(), head->node) != as->nodes.end()) {
      record.slurm_restarts = as->restarts;
      return Put(*Find(id));
    }
    silent_ends[slurm_job] = {now + kEpilogWait, record.slurm_restarts};
    return WakeAt(now + kEpilogWait);
  }
}

void Controller::Impl::EndSilentJobs() {
  for (auto it = silent_ends.begin(); it != silent_ends.end();) {
    if (it->second.at > now) {
      WakeAt((it++)->second.at);
      continue;
    }
    bool left = false;
    for (const JobId id : std::vector<JobId>(active.begin(), active.end())) {
      Job& job = *Find(id);
      const auto& ours = job.record.slurm_jobs;
      const auto component = std::find(ours.begin(), ours.end(), it->first);
      if (component == ours.end() || job.record.slurm_restarts != it->second.restarts) continue;
      const auto index = static_cast<std::uint32_t>(component - ours.begin());
      std::vector<std::string> on;
      for (const Allocation& share : job.record.allocations)
        if (share.component == index && share.grant.value == 0 && !share.given_back) on.push_back(share.node);
      for (const std::string& node : on) {
        // A step that is still given its time to end.
        const bool busy = HasSlurmStep(id, node);
        left = left || busy;
        if (!busy && active.contains(id)) EndSlurmShare(job, index, node);
      }
    }
    if (left) {
      it->second.at = now + kEpilogWait;
      WakeAt((it++)->second.at);
    } else {
      it = silent_ends.erase(it);
    }
  }
}

}  // namespace msa
