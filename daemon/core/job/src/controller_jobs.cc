#include <signal.h>

#include <algorithm>

#include "msa/job/name_text.h"
#include "msa/job/port_range.h"
#include "msa/job/stdio_pattern.h"

#include "controller_impl.h"

namespace msa {
namespace {

// 1 s instead of the usual grace when the msactl of a job is gone: its slots are to be free within 2 s.
constexpr Millis kOwnerlessGrace{1000};
// Namespaces remembered of one job, ended ones beyond that are forgotten: a job that spawns 10,000 times must
// not write a growing record each time.
constexpr std::size_t kMaxNamespaces = 256;
// A member of a grant that is younger may not have got its launch yet when its node daemon was restarted; an
// older one that is not there has died with its tasks.
constexpr Millis kFreshGrant{10000};
// Of a job whose job daemon was lost: env(1) and mpirun use 125 to 127 for the launcher's own failures.
constexpr std::int32_t kLauncherFailed = 125;

// Of an end that comes without the head's word: an allocation's owner has said its code.
std::int32_t CodeWithoutHead(const JobRecord& job) {
  const bool given_up = job.ending_as == JobState::kCompleted || job.ending_as == JobState::kFailed;
  return job.state == JobState::kEnding && given_up ? job.exit_code : kLauncherFailed;
}

// Nobody is there to take the output of a job that its submitter does not attach to, or to feed a script.
void CompleteStreams(JobRecord& job) {
  wire::StdioSpec& stdio = job.spec.stdio;
  const bool batch = job.spec.mode == wire::JobMode::kBatch;
  const bool alone = batch || (!job.interactive && job.spec.mode == wire::JobMode::kStep);
  if (alone && stdio.out.empty()) stdio.out = "msa-%j.out";
  if (batch && stdio.in.empty()) stdio.in = "none";
}

std::string OutputPath(const JobRecord& job, const std::string& pattern) {
  if (pattern.empty() || pattern == "none" || IsPerTask(pattern)) return "";
  const auto path =
      ExpandPattern(pattern, {.job = job.id,
                              .step = job.spec.mode == wire::JobMode::kBatch ? wire::kBatchStep : StepId(),
                              .user = job.user_name,
                              .job_name = job.spec.name});
  if (!path.ok()) return "";
  return path->starts_with('/') ? *path : job.spec.cwd + "/" + *path;
}

}  // namespace

void Controller::Impl::Handle(event::Submit& e) {
  if (e.token.empty() || e.token.size() > kMaxTokenBytes)
    return Answer(e.reply, Error(Code::kInvalidArgument, "submit token has {} bytes, 1 to {} are allowed",
                                 e.token.size(), kMaxTokenBytes));
  if (const auto known = tokens.find({e.user.uid, e.token}); known != tokens.end())
    return Answer(e.reply, Status::Ok(), known->second);
  if (options.slurm)
    return Answer(e.reply, Error(Code::kFailedPrecondition,
                                 "Slurm schedules here; submit with sbatch, salloc or srun"));
  if (pending.size() >= options.max_queued)
    return Answer(e.reply,
                  Error(Code::kResourceExhausted,
                        "{} jobs wait in the queue, which is its limit; try again later", pending.size()));
  Status status = CompleteSpec(e.spec, topology);
  if (status.ok()) status = CheckDependencies(e.spec);
  if (status.ok()) status = CheckServed(e.user, e.user_name);
  if (status.ok()) status = CheckNamRegions(e);
  if (!status.ok()) return Answer(e.reply, std::move(status));

  const JobId id(last_job.value + 1);
  last_job = id;
  Job& job = jobs[id];
  JobRecord& record = job.record;
  record.id = id;
  record.token = e.token;
  record.user = e.user;
  record.user_name = e.user_name;
  record.interactive = e.interactive;
  record.spec = std::move(e.spec);
  environments.Intern(record.spec.env);
  record.secret = std::move(e.secret);
  record.submitted_at = now;
  CompleteStreams(record);
  record.stdout_path = OutputPath(record, record.spec.stdio.out);
  record.stderr_path =
      record.spec.stdio.err.empty() ? record.stdout_path : OutputPath(record, record.spec.stdio.err);
  for (const Component& component : record.spec.components) record.tasks += component.resources.ntasks;
  job.wait_reason = "not yet looked at by the scheduler";
  pending.insert(id);
  Enlist(job);
  tokens[{record.user.uid, record.token}] = id;
  if (record.spec.immediate_s > 0) Arm(now + Millis(std::int64_t{1000} * record.spec.immediate_s), id);
  Put(job);
  Answer(e.reply, Status::Ok(), id);
  NeedPass();
}

namespace {

// msactl's, of a failure of the launch.
constexpr std::int32_t kNotLaunched = 125;

// A region that was there when the job was queued may have been removed, or its rights taken back.
Status StillBound(const NamBook& nam, const JobRecord& record, std::vector<std::uint32_t> groups) {
  NamCaller caller;
  caller.user = record.user;
  caller.user_name = record.user_name;
  caller.groups = std::move(groups);
  for (const wire::NamRegionBinding& binding : record.spec.nam_regions) {
    const Status status = nam.CheckBinding(caller, binding).WithContext("--nam-region");
    if (!status.ok() && status.code() != Code::kUnavailable) return status;
  }
  return Status::Ok();
}

}  // namespace

void Controller::Impl::Handle(event::SchedulePass&) {
  SettleAll();
  if (!pending.empty()) {
    Plan plan = Schedule(View(), PendingJobs(), now, options.scheduler);
    for (const msa::Start& start : plan.starts) {
      Job* job = Find(start.id);
      if (job == nullptr || !pending.contains(start.id)) continue;
      const JobRecord& record = job->record;
      if (const Status bound = StillBound(nam, record, NamGroups(record.user, record.spec)); bound.ok())
        Start(*job, start.placement);
      else
        Finish(*job, {.exit_code = kNotLaunched, .reason = bound.message(), .code = bound.code()});
    }
    for (Waiting& waiting : plan.waiting) {
      Job* job = Find(waiting.id);
      if (job == nullptr) continue;
      const Instant expected = waiting.expected_start == kNever ? Instant() : waiting.expected_start;
      job->expected_start = expected;
      job->planned_nodes = waiting.nodes;
      if (job->wait_reason == waiting.reason) continue;
      job->wait_reason = std::move(waiting.reason);
      Change(*job);
    }
  }
  RetryAsks();
}

void Controller::Impl::Start(Job& job, const Placement& placement) {
  JobRecord& record = job.record;
  pending.erase(record.id);
  active.insert(record.id);
  record.state = JobState::kStarting;
  record.placed_at = now;
  record.epoch = Epoch(1);
  record.tasks = 0;
  std::map<std::uint32_t, std::uint32_t> member_of;  // topology index -> member
  for (const NodeShare& share : placement) {
    const Node& node = nodes[share.node];
    const Module* module = topology.FindModule(node.spec->module);
    const auto [it, fresh] = member_of.emplace(share.node, record.next_member);
    if (fresh) {
      wire::Member member;
      member.index = record.next_member++;
      member.node = node.spec->name;
      member.module = module->id;
      member.module_name = module->name;
      member.module_kind = module->kind;
      member.oversubscribed = record.spec.oversubscribe || Oversubscribed(node);
      member.address = AddressOn(node, record);
      record.members.push_back(std::move(member));
    }
    wire::Member& member = record.members[it->second];
    member.cores.insert(member.cores.end(), share.cores.begin(), share.cores.end());
    std::sort(member.cores.begin(), member.cores.end());
    record.allocations.push_back({node.spec->name, module->name, share.component, share.cores, share.tasks,
                                  share.memory, share.gpus, GrantId(), it->second});
    record.tasks += share.tasks;
  }
  const auto first = std::find_if(record.allocations.begin(), record.allocations.end(),
                                  [](const Allocation& a) { return a.tasks > 0; });
  record.head = first == record.allocations.end() ? 0 : first->member;
  if (record.spec.time_limit_s > 0)
    Arm(now + Millis(std::int64_t{1000} * record.spec.time_limit_s), record.id);
  StartNam(job);
  TakeGateways(job);
  Put(job);
  std::vector<std::uint32_t> all;
  for (const wire::Member& member : record.members) all.push_back(member.index);
  SendStart(job, all, true);
  Change(job);
}

std::string Controller::Impl::AddressOn(const Node& node, const JobRecord& record) const {
  std::string address = node.jobd_address;
  if (const auto at = address.find("%J"); at != std::string::npos)
    address.replace(at, 2, fmt::format("{}.{}", record.id, record.incarnation));
  if (const auto at = address.find("%U"); at != std::string::npos)
    address.replace(at, 2, std::to_string(record.user.uid));
  return WithPortOf(std::move(address), record.id, record.incarnation);
}

void Controller::Impl::SendStart(const Job& job, const std::vector<std::uint32_t>& members, bool with_step) {
  const auto launch = BuildLaunch(job, with_step);
  for (const std::uint32_t index : members)
    if (const wire::Member* member = job.record.FindMember(index))
      Emit(effect::SendStartJob{member->node, job.record.id, job.record.incarnation, job.record.user, launch,
                                index});
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::JobStarted& m) {
  if (job.record.state != JobState::kStarting) return;
  job.record.state = JobState::kRunning;
  job.record.started_at = m.at_ms > 0 ? FromUnixMillis(m.at_ms) : now;
  Put(job);
  Change(job);
  TellDependents(job);
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::NamespaceReport& m) {
  m.command = CleanName(m.command);
  const bool is_the_step = m.parent.empty() && job.record.spec.mode == wire::JobMode::kStep;
  auto& list = job.record.namespaces;
  const auto it =
      std::find_if(list.begin(), list.end(), [&](const auto& known) { return known.nspace == m.nspace; });
  if (it != list.end()) {
    *it = std::move(m);
  } else {
    if (list.size() >= kMaxNamespaces)
      if (const auto old = std::find_if(list.begin(), list.end(), [](const auto& n) { return n.ended; });
          old != list.end())
        list.erase(old);
    list.push_back(std::move(m));
  }
  // The step of a job that is one comes to the disk with the JobStarted or JobExit right behind it, and is
  // told again after a restart: a commit of its own would be a third of such a job's.
  if (!is_the_step) Put(job);
  Change(job);
}

void Controller::Impl::OnMessage(Job& job, const std::string& node, wire::JobExit& m) {
  Ending ending;
  ending.state = IsFinal(m.state) ? m.state : JobState::kFailed;
  ending.exit_code = m.exit_code;
  ending.reason = CleanReason(m.message);
  ending.acked_node = &node;
  ending.ended_at_ms = m.ended_at_ms;
  if (ending.reason.empty() && ending.state != JobState::kCompleted) ending.reason = job.record.reason;
  if (m.started_at_ms > 0) job.record.started_at = FromUnixMillis(m.started_at_ms);
  job.record.tasks_failed = m.tasks_failed;
  Finish(job, std::move(ending));
}

void Controller::Impl::OnMessage(Job& job, const std::string& node, wire::MemberFailed& m) {
  const wire::Member* member = job.record.FindMember(m.index);
  if (member == nullptr || member->node != node) return;
  LoseMember(job, m.index, CleanReason(m.reason), true);
}

void Controller::Impl::Handle(event::FromJobd& e) {
  Job* job = FindActive(e.job, e.incarnation);
  if (job == nullptr) {
    // Ended already, or pruned long ago: the job daemon may go.
    if (std::holds_alternative<wire::JobExit>(e.message))
      Emit(effect::SendToJobd{e.node, e.job, e.incarnation, wire::ExitAck::kType,
                              wire::Encode(wire::ExitAck{})});
    return;
  }
  if (const wire::Member* member = job->record.MemberOn(e.node)) job->missing.erase(member->index);
  nam_random = e.random;
  nam_groups = std::move(e.groups);
  std::visit([&](auto& message) { OnMessage(*job, e.node, message); }, e.message);
}

void Controller::Impl::BeginEnd(Job& job, JobState state, Millis grace, const std::string& reason) {
  JobRecord& record = job.record;
  if (record.state == JobState::kPending) return Finish(job, {.state = state, .reason = reason});
  const Instant deadline = now + grace + options.exit_wait;
  if (record.state == JobState::kEnding) {
    if (job.kill_deadline && *job.kill_deadline <= deadline) return;
  } else {
    record.state = JobState::kEnding;
    record.ending_as = state;
    record.reason = reason;
    Put(job);
    Change(job);
  }
  job.kill_deadline = deadline;
  Arm(deadline, record.id);
  SendCancel(job, grace);
}

wire::CancelJob Controller::Impl::CancelOf(const Job& job, Millis grace) const {
  wire::CancelJob cancel;
  cancel.final_state = job.record.ending_as;
  cancel.grace_ms = static_cast<std::uint32_t>(grace.count());
  cancel.reason = job.record.reason;
  cancel.owner_gone = job.owner_gone;
  cancel.exit_code = job.record.exit_code;
  return cancel;
}

void Controller::Impl::SendCancel(const Job& job, Millis grace) {
  const wire::CancelJob cancel = CancelOf(job, grace);
  if (job.record.FindMember(job.record.head) != nullptr) return SendToMember(job, job.record.head, cancel);
  for (const wire::Member& member : job.record.members) SendToMember(job, member.index, cancel);
}

void Controller::Impl::Finish(Job& job, Ending ending) {
  JobRecord& record = job.record;
  const JobId id = record.id;
  if (record.IsSlurms())
    RefuseSlurmSteps(job, "", ending.reason.empty() ? fmt::format("job {} has ended", id) : ending.reason);
  for (const wire::Member& member : record.members) {
    if (ending.acked_node != nullptr && member.node == *ending.acked_node)
      SendToMember(job, member.index, wire::ExitAck{});
    else
      Emit(effect::SendQuitJob{member.node, id, record.incarnation,
                               ending.reason.empty() ? fmt::format("job {} has ended", id) : ending.reason});
  }
  const bool companions = SlurmIdsOf(id).size() > 1;
  for (auto it = grants.begin(); it != grants.end();) {
    if (it->second.job != id) {
      ++it;
      continue;
    }
    Emit(effect::DeleteGrant{it->first});
    it = grants.erase(it);
  }
  const auto waited = asks.remove_if([&](const WaitingAsk& waiting) { return waiting.job == id; });
  if (record.IsSlurms() && (companions || waited > 0)) {
    orphan_parents[id] = record.incarnation;
    SendOrphans();
  }
  std::erase_if(leaving, [&](const auto& entry) { return std::get<1>(entry.first) == id; });
  ForgetAcceptedSteps(id);
  pending.erase(id);
  active.erase(id);
  ended.push_back(id);
  record.state = ending.state;
  record.exit_code = ending.exit_code;
  record.reason = std::move(ending.reason);
  record.end_code = ending.code;
  // The record may come long after the end it tells of: a disk was full, a daemon away. Another clock than
  // ours may have stamped it: never before the job, nor in the future.
  const Instant told = ending.ended_at_ms > 0 ? Instant(Millis(ending.ended_at_ms)) : now;
  record.ended_at = told <= now && told >= std::max(record.placed_at, record.started_at) ? told : now;
  record.members.clear();
  record.secret.clear();
  EndLinks(job);
  EndNam(job);
  // Not asked for any more, and most of a record's size.
  record.spec.env.clear();
  record.spec.limits.clear();
  for (Component& component : record.spec.components) component.env.clear();
  std::string().swap(record.spec.script);
  for (wire::NamespaceReport& nspace : record.namespaces) nspace.ended = true;
  job.owner_deadline.reset();
  job.kill_deadline.reset();
  job.missing.clear();
  Put(job);
  Change(job);
  Delist(job);
  TellDependents(job);
  NeedPass();
  Prune();
}

void Controller::Impl::Prune() {
  while (ended.size() > options.keep_ended) {
    const JobId old = ended.front();
    ended.pop_front();
    if (const Job* job = Find(old)) tokens.erase({job->record.user.uid, job->record.token});
    jobs.erase(old);
    Emit(effect::DeleteJob{old});
  }
}

void Controller::Impl::LoseMember(Job& job, std::uint32_t index, const std::string& reason,
                                  bool daemon_alive) {
  JobRecord& record = job.record;
  const wire::Member* found = record.FindMember(index);
  if (found == nullptr) return;
  const wire::Member lost = *found;
  job.missing.erase(index);
  const effect::SendQuitJob quit{lost.node, record.id, record.incarnation, reason};
  if (daemon_alive && index == record.head) Emit(quit);
  if (index == record.head)
    return Finish(job, {.state = record.state == JobState::kEnding ? record.ending_as : JobState::kNodeFail,
                        .exit_code = CodeWithoutHead(record),
                        .reason = reason});
  if (record.IsSlurms()) {
    RefuseSlurmSteps(job, lost.node, reason);
    job.own_nodes_known = false;
    if (daemon_alive) leaving[{lost.node, record.id, record.incarnation}] = now + kLeaveWait;
  }
  LoseNamClients(job, lost.node);
  std::erase_if(record.members, [&](const wire::Member& m) { return m.index == index; });
  record.epoch = Epoch(record.epoch.value + 1);
  for (Allocation& share : record.allocations) {
    if (share.member != index || share.given_back) continue;
    // Slurm may start a step there again: as a new share, of a new member.
    share.given_back = share.grant.value != 0 || record.IsSlurms();
    const auto grant = grants.find(share.grant);
    if (grant == grants.end() || grant->second.released || record.HoldsShareOf(share.grant)) continue;
    grant->second.released = true;
    LetGo(job, grant->second);
    Emit(effect::PutGrant{grant->second});
  }
  Put(job);
  SendMembership(job, reason, {});
  // After it: the head is to know the reason before the connection breaks.
  if (daemon_alive) Emit(quit);
  // Of a script or an allocation it takes the steps that use it; its head sees to them.
  if (lost.grant.value == 0 && record.spec.mode == wire::JobMode::kStep)
    BeginEnd(job, JobState::kNodeFail, Millis(0), reason);
  NeedPass();
}

void Controller::Impl::Handle(event::JobdGone& e) {
  if (leaving.erase({e.node, e.job, e.incarnation}) > 0) {
    NeedPass();
    return JudgeSlurmSteps();
  }
  Job* job = FindActive(e.job, e.incarnation);
  const wire::Member* member = job == nullptr ? nullptr : job->record.MemberOn(e.node);
  if (member == nullptr) return;
  if (!e.clean) return LoseMember(*job, member->index, e.reason, false);
  if (!job->record.IsSlurms()) return;
  // That of an earlier member, which took its time: the launch of this one found it there.
  job->missing[member->index] = now + options.missing_jobd_wait;
  Arm(now + options.missing_jobd_wait, e.job);
}

void Controller::Impl::CheckDeadlines(Job& job) {
  JobRecord& record = job.record;
  const auto due = [&](Instant from, std::uint32_t seconds) {
    return seconds > 0 && from + Millis(std::int64_t{1000} * seconds) <= now;
  };
  if (record.state == JobState::kPending && due(record.submitted_at, record.spec.immediate_s))
    return Finish(job, {.state = JobState::kCancelled,
                        .reason = fmt::format("not started within {} s (--immediate): {}",
                                              record.spec.immediate_s, job.wait_reason),
                        .code = Code::kDeadlineExceeded});
  if (job.kill_deadline && *job.kill_deadline <= now && record.state == JobState::kEnding)
    return Finish(job,
                  {.state = record.ending_as,
                   .exit_code = CodeWithoutHead(record),
                   .reason = fmt::format(
                       "{}; its job daemon on {} did not answer in time", record.reason,
                       record.members.empty() ? std::string("its nodes") : record.members.front().node)});
  if (held.contains(record.id)) unsettled.insert(record.id);
  SettleSlurmEnd(record.id);
  if (IsFinal(record.state)) return;
  std::vector<std::uint32_t> gone;
  for (const auto& [index, deadline] : job.missing)
    if (deadline <= now) gone.push_back(index);
  for (const std::uint32_t index : gone) {
    job.missing.erase(index);
    const wire::Member* member = record.FindMember(index);
    if (member == nullptr) continue;
    const auto grant = grants.find(member->grant);
    const bool just_lent = grant != grants.end() && now - grant->second.since < kFreshGrant;
    // Of Slurm's jobs a step there says so; without one the job may have ended while nobody listened.
    const bool awaited =
        record.IsSlurms() ? HasSlurmStep(record.id, member->node) : record.state == JobState::kStarting;
    if (awaited || just_lent) {
      // No exit record, no word of its end: the launch was never delivered. A job daemon that has it ignores
      // it.
      SendStart(job, {index}, record.state == JobState::kStarting && member->grant.value == 0);
      continue;
    }
    LoseMember(job, index, fmt::format("job daemon of job {} on {} is gone", record.id, member->node), false);
    if (IsFinal(record.state)) return;
  }
  if (job.owner_deadline && *job.owner_deadline <= now) {
    job.owner_deadline.reset();
    return LoseOwner(job, kOwnerlessGrace, "msactl, which ran it, did not come back");
  }
  if (record.state == JobState::kStarting || record.state == JobState::kRunning)
    if (due(record.placed_at, record.spec.time_limit_s))
      BeginEnd(job, JobState::kTimeout, options.kill_grace,
               fmt::format("time limit of {} s reached", record.spec.time_limit_s));
}

void Controller::Impl::Handle(event::OwnerAttached& e) {
  Job* job = Find(e.job);
  if (job == nullptr) return;
  job->owner_deadline.reset();
  job->owner_gone = false;
}

// The job ends, and its head is not to wait for somebody who reads the rest of its output.
void Controller::Impl::LoseOwner(Job& job, Millis grace, const std::string& reason) {
  job.owner_gone = true;
  if (job.record.state == JobState::kEnding) SendCancel(job, grace);
  BeginEnd(job, JobState::kCancelled, grace, reason);
}

void Controller::Impl::Handle(event::OwnerLost& e) {
  Job* job = Find(e.job);
  if (job == nullptr || IsFinal(job->record.state) || !job->record.interactive) return;
  LoseOwner(*job, std::min(kOwnerlessGrace, options.kill_grace), "msactl, which ran it, went away");
}

void Controller::Impl::Handle(event::Cancel& e) {
  if (Status status = CheckAccess(e.job, e.caller); !status.ok()) return Answer(e.reply, std::move(status));
  Job& job = *Find(e.job);
  if (IsFinal(job.record.state))
    return Answer(e.reply, Error(Code::kFailedPrecondition, "job {} has ended already ({})", e.job,
                                 StateName(job.record.state)));
  if (e.reason.size() > kMaxNameBytes)
    return Answer(e.reply, Error(Code::kInvalidArgument, "the reason has {} bytes, the limit is {}",
                                 e.reason.size(), kMaxNameBytes));
  if (Status plain = CheckName("the reason", e.reason); !plain.ok()) return Answer(e.reply, std::move(plain));
  if (job.record.IsSlurms())
    return Answer(e.reply, Error(Code::kFailedPrecondition, "job {} is Slurm's; end it with 'scancel {}'",
                                 e.job, e.job));
  if (e.done) return GiveUp(job, e);
  const std::string by =
      e.caller.uid == job.record.user.uid ? job.record.user_name : fmt::format("uid {}", e.caller.uid);
  BeginEnd(job, JobState::kCancelled, e.now ? Millis(0) : options.kill_grace,
           e.reason.empty() ? fmt::format("cancelled by {}", by)
                            : fmt::format("cancelled by {}: {}", by, e.reason));
  Answer(e.reply, Status::Ok(), e.job);
}

void Controller::Impl::GiveUp(Job& job, const event::Cancel& e) {
  JobRecord& record = job.record;
  if (record.spec.mode != wire::JobMode::kAlloc)
    return Answer(e.reply,
                  Error(Code::kFailedPrecondition,
                        "job {} is no allocation, it ends by itself; to end it now cancel it", e.job));
  if (e.exit_code < 0 || e.exit_code > 255)
    return Answer(e.reply, Error(Code::kInvalidArgument, "exit code {}; expected 0 to 255", e.exit_code));
  if (record.state == JobState::kPending) {
    BeginEnd(job, JobState::kCancelled, Millis(0), "its owner gave it up before it started");
  } else {
    if (record.state != JobState::kEnding) record.exit_code = e.exit_code;
    BeginEnd(job, e.exit_code == 0 ? JobState::kCompleted : JobState::kFailed,
             e.now ? Millis(0) : options.kill_grace, e.reason);
  }
  Answer(e.reply, Status::Ok(), e.job);
}

void Controller::Impl::Handle(event::SignalJob& e) {
  if (Status status = CheckAccess(e.job, e.caller); !status.ok()) return Answer(e.reply, std::move(status));
  const Job& job = *Find(e.job);
  if (e.signal < 1 || e.signal > SIGRTMAX)
    return Answer(e.reply,
                  Error(Code::kInvalidArgument, "signal {} does not exist; give 1 to {}, see 'kill -l'",
                        e.signal, SIGRTMAX));
  if (job.record.state != JobState::kRunning)
    return Answer(e.reply, Error(Code::kFailedPrecondition, "job {} does not run (it is {})", e.job,
                                 StateName(job.record.state)));
  SendToMember(job, job.record.head, wire::SignalJob{e.signal});
  Answer(e.reply, Status::Ok(), e.job);
}

}  // namespace msa
