// Grants as people see and release them.
#include <algorithm>

#include "controller_impl.h"

namespace msa {

std::vector<std::string> Controller::Impl::NamespacesOn(const Job& job, GrantId grant) const {
  std::vector<std::string> out;
  for (const wire::NamespaceReport& report : job.record.namespaces) {
    const auto& used = report.grants;
    if (!report.ended && std::find(used.begin(), used.end(), grant) != used.end())
      out.push_back(report.nspace);
  }
  return out;
}

GrantView Controller::Impl::ViewOf(const GrantRecord& grant) const {
  const Job& job = *Find(grant.job);
  GrantView view;
  view.id = grant.id;
  view.job = &job.record;
  view.request = grant.request;
  view.state = grant.released ? GrantState::kReleased : GrantState::kHeld;
  for (const Allocation& share : job.record.allocations)
    if (share.grant == grant.id) view.shares.push_back(share);
  view.slots = grant.slots;
  view.module = grant.module;
  view.asked_at = grant.asked_at;
  view.since = grant.since;
  view.until = grant.until;
  view.namespaces = NamespacesOn(job, grant.id);
  view.reason = grant.recall;
  view.slurm_job = grant.slurm_job;
  return view;
}

GrantView Controller::Impl::ViewOf(const WaitingAsk& waiting) const {
  GrantView view;
  view.job = &Find(waiting.job)->record;
  view.request = waiting.ask.request;
  view.state = GrantState::kWaiting;
  view.slots = waiting.ask.slots;
  view.module = waiting.ask.module;
  view.asked_at = waiting.asked_at;
  view.until = waiting.slurm ? waiting.slurm->until : waiting.deadline;
  view.reason = waiting.reason;
  if (waiting.slurm) view.slurm_job = waiting.slurm->job;
  return view;
}

Result<std::vector<GrantView>> Controller::ListGrants(const GrantFilter& filter) const {
  if (filter.job.value != 0 && impl_->Find(filter.job) == nullptr)
    return Error(Code::kNotFound, "job {}: no such job; see 'msactl job list --all'", filter.job);
  for (const GrantId id : filter.ids)
    if (!impl_->grants.contains(id))
      return Error(Code::kNotFound, "grant {}: no job that runs has such a grant; see 'msactl alloc list'",
                   id);
  const auto wanted = [&](const GrantView& view) {
    const JobRecord& job = *view.job;
    if (filter.job.value != 0 && job.id != filter.job) return false;
    if (!filter.user.empty() && filter.user != job.user_name &&
        filter.user != fmt::format("{}", job.user.uid))
      return false;
    if (!filter.ids.empty())
      return std::find(filter.ids.begin(), filter.ids.end(), view.id) != filter.ids.end();
    return filter.released || view.state != GrantState::kReleased;
  };
  std::vector<GrantView> out;
  const auto add = [&](GrantView view) {
    if (wanted(view)) out.push_back(std::move(view));
  };
  for (const auto& [id, grant] : impl_->grants) add(impl_->ViewOf(grant));
  for (const Impl::WaitingAsk& waiting : impl_->asks) add(impl_->ViewOf(waiting));
  std::stable_sort(out.begin(), out.end(),
                   [](const GrantView& a, const GrantView& b) { return a.job->id < b.job->id; });
  return out;
}

void Controller::Impl::Recall(const Job& job, const GrantRecord& grant) {
  SendToMember(job, job.record.head,
               wire::RecallGrant{grant.id, fmt::format("grant {} is {}", grant.id, grant.recall)});
}

void Controller::Impl::Handle(event::ReleaseGrant& e) {
  const auto it = grants.find(e.grant);
  if (it == grants.end())
    return Answer(e.reply,
                  Error(Code::kNotFound,
                        "grant {}: no job that runs has such a grant; see 'msactl alloc list'", e.grant));
  GrantRecord& grant = it->second;
  if (Status access = CheckAccess(grant.job, e.caller); !access.ok())
    return Answer(e.reply, access.WithContext(fmt::format("grant {}", e.grant)));
  Job& job = *Find(grant.job);
  if (grant.released)
    return Answer(e.reply, Error(Code::kFailedPrecondition, "grant {} of job {} is released already", e.grant,
                                 grant.job));
  if (job.record.state == JobState::kEnding)
    return Answer(e.reply,
                  Error(Code::kFailedPrecondition,
                        "grant {}: job {} is ending, and gives all back with its end", e.grant, grant.job));
  const std::vector<std::string> running = NamespacesOn(job, e.grant);
  if (!running.empty() && !e.force)
    return Answer(e.reply, Error(Code::kFailedPrecondition,
                                 "grant {} is in use by {}; end {} first, or give --force to have msa do it",
                                 e.grant, fmt::join(running, ", "), running.size() == 1 ? "it" : "them"));
  const std::string by =
      e.caller.uid == job.record.user.uid ? job.record.user_name : fmt::format("uid {}", e.caller.uid);
  grant.recall = fmt::format("released by {}", by);
  // The head starts nothing more there from now on, whichever of the two it hears first.
  Recall(job, grant);
  if (running.empty()) {
    ReleaseGrant(job, grant, true);
  } else {
    Emit(effect::PutGrant{grant});
    Change(job);
  }
  Answer(e.reply, Status::Ok(), grant.job);
}

}  // namespace msa
