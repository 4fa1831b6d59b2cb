#include <algorithm>

#include "msa/job/name_text.h"

#include "controller_impl.h"

namespace msa {

Controller::Impl::Node* Controller::Impl::FindNode(std::string_view name) {
  const auto it = node_index.find(name);
  return it == node_index.end() ? nullptr : &nodes[it->second];
}

const Controller::Impl::Node* Controller::Impl::FindNode(std::string_view name) const {
  const auto it = node_index.find(name);
  return it == node_index.end() ? nullptr : &nodes[it->second];
}

bool Controller::Impl::Oversubscribed(const Node& node) const {
  const std::uint32_t cores = node.spec->cores != 0 ? node.spec->cores : node.facts.cores;
  // Logical nodes share one machine: nothing says that their cores do not overlap, so they are not bound
  // either.
  return node.spec->synthetic || node.facts.machine_cores < cores;
}

// Counts that the topology leaves open are as the node daemon measured them.
void Controller::Impl::Measure(Node& node) {
  NodeSpec& spec = topology.nodes[node.index];
  nodes_alone.clear();
  if (!node.open)
    node.open = Node::Open{spec.cores == 0, spec.gpus == 0 && spec.cores == 0, spec.memory.value == 0};
  if (node.open->cores) spec.cores = node.facts.cores;
  if (node.open->gpus) spec.gpus = node.facts.gpus;
  if (node.open->memory) spec.memory = node.facts.memory;
}

void Controller::Impl::ArmNode(const Node& node) { WakeAt(node.last_sign + options.node_timeout); }

void Controller::Impl::Handle(event::NodeRegistered& e) {
  Node* node = FindNode(e.node);
  if (node == nullptr)
    return Emit(effect::Log{fmt::format("node '{}' registered but is not in the topology", e.node)});
  ForgetSlurmSteps(e.node);  // those that are there are told next
  // Its namd says hello to the new session.
  LoseNamd(*node, "its node daemon has registered anew");
  const bool was_up = node->state == NodeState::kUp;
  node->state = NodeState::kUp;
  node->session = e.session;
  node->last_sign = now;
  node->last_heartbeat = now;
  if (!was_up) node->up_since = now;
  node->down_reason.clear();
  node->registered = true;
  node->facts = e.facts;
  Measure(*node);
  node->daemon_version = e.daemon_version;
  node->attach_address = e.attach_address;
  node->jobd_address = e.jobd_address;
  node->uid = e.uid;
  node->user_name = e.user_name;
  node->clock_offsets.clear();

  const std::set<std::pair<JobId, Incarnation>> kept = KeepJobds(e);
  CheckJobsOn(e.node, kept);
  ArmNode(*node);
  NeedPass();
}

// Answers which job daemons stay: those of members, and heads whose end is on disk already.
std::set<std::pair<JobId, Incarnation>> Controller::Impl::KeepJobds(const event::NodeRegistered& e) {
  effect::Registered answer{e.node, e.session, {}};
  std::vector<effect::SendToJobd> acks;
  std::set<std::pair<JobId, Incarnation>> reported;
  std::set<std::pair<JobId, Incarnation>> kept;
  for (const JobdInfo& jobd : e.jobds) {
    reported.emplace(jobd.job, jobd.incarnation);
    const Job* job = FindActive(jobd.job, jobd.incarnation);
    const wire::Member* member = job == nullptr ? nullptr : job->record.MemberOn(e.node);
    // Another index: it is of a grant that was given back, and its node was lent to the job once more.
    if (member != nullptr && member->index == jobd.member_index) {
      answer.keep.push_back(jobd);
      kept.emplace(jobd.job, jobd.incarnation);
    } else if (job != nullptr) {
      // It was lost while it lived, and is told to quit by this answer.
      leaving[{e.node, jobd.job, jobd.incarnation}] = now + kLeaveWait;
    } else if (jobd.is_head && jobd.ended) {
      // It may still hold output for its msactl: it leaves by itself.
      answer.keep.push_back(jobd);
      acks.push_back(
          {e.node, jobd.job, jobd.incarnation, wire::ExitAck::kType, wire::Encode(wire::ExitAck{})});
    }
  }
  Emit(std::move(answer));
  for (effect::SendToJobd& ack : acks) Emit(std::move(ack));
  std::erase_if(leaving, [&](const auto& entry) {
    const auto& [name, job, incarnation] = entry.first;
    return name == e.node && !reported.contains({job, incarnation});
  });
  return kept;
}

// Brings the job daemons that a node has kept up to date and marks those that are missing.
void Controller::Impl::CheckJobsOn(const std::string& node,
                                   const std::set<std::pair<JobId, Incarnation>>& kept) {
  for (const JobId id : std::vector<JobId>(active.begin(), active.end())) {
    Job& job = *Find(id);
    const wire::Member* member = job.record.MemberOn(node);
    if (member == nullptr) continue;
    if (kept.contains({id, job.record.incarnation})) {
      job.missing.erase(member->index);
      // What was sent while the session was away is lost; all of it is idempotent.
      if (job.record.state == JobState::kEnding)
        SendToMember(job, member->index, CancelOf(job, options.kill_grace));
      SendToMember(job, member->index,
                   wire::MembersChanged{job.record.epoch, BuildLaunch(job, false)->members, ""});
      for (const auto& [grant_id, grant] : grants)
        if (grant.job == id && !grant.released && !grant.recall.empty() && member->index == job.record.head)
          Recall(job, grant);
    } else {
      job.missing[member->index] = now + options.missing_jobd_wait;
      Arm(now + options.missing_jobd_wait, id);
    }
    Change(job);
  }
}

void Controller::Impl::Handle(event::NodeHeartbeat& e) {
  Node* node = FindNode(e.node);
  if (node == nullptr || node->session != e.session) return;
  node->last_sign = now;
  node->last_heartbeat = now;
  node->load = e.load;
  node->jobd_warm = e.jobd_warm;
  if (e.clock != Instant()) CompareClock(*node, e.clock);
}

// A heartbeat that was long on its way makes a clock look late, never early: the earliest of a few is
// nearest the truth.
void Controller::Impl::CompareClock(Node& node, Instant told) {
  constexpr std::size_t kCompared = 3;
  node.clock_offsets.push_back(told - now);
  if (node.clock_offsets.size() > kCompared) node.clock_offsets.pop_front();
  node.clock_offset = *std::max_element(node.clock_offsets.begin(), node.clock_offsets.end());
  const bool off = node.clock_offset > kClockTolerance || node.clock_offset < -kClockTolerance;
  if (std::exchange(node.clock_off, off) == off) return;
  Emit(effect::Log{off ? fmt::format("node {}: {}", node.spec->name, ReasonOf(node))
                       : fmt::format("node {}: its clock is right again", node.spec->name)});
}

std::string Controller::Impl::ReasonOf(const Node& node) const {
  if (node.state == NodeState::kDown) return node.down_reason;
  std::string reason = node.drained ? node.drain_reason : "";
  if (!node.clock_off) return reason;
  const bool ahead = node.clock_offset > Millis(0);
  const Millis amount = std::max(node.clock_offset, -node.clock_offset);
  return fmt::format(
      "{}{}its clock is {:.1f} s {} the controller's; set both by NTP: 'timedatectl set-ntp true'", reason,
      reason.empty() ? "" : "; ", static_cast<double>(amount.count()) / 1000, ahead ? "ahead of" : "behind");
}

// A node daemon that is not root's cannot become another user.
Status Controller::Impl::CheckServed(const UserIdentity& user, const std::string& name) const {
  const Node* other = nullptr;
  for (const Node& node : nodes) {
    if (!node.registered) continue;
    if (node.uid == 0 || node.uid == user.uid) return Status::Ok();
    other = &node;
  }
  if (other == nullptr) return Status::Ok();
  return Error(
      Code::kPermissionDenied,
      "user {} (uid {}) cannot run jobs here: the node daemons of this system run as user {} (uid {}) "
      "and start tasks for that user alone; run it as that user: sudo -u {} msactl ...",
      name, user.uid, other->user_name, other->uid, other->user_name);
}

void Controller::Impl::Handle(event::NodeLost& e) {
  Node* node = FindNode(e.node);
  if (node == nullptr || node->session != e.session) return;
  LoseNamd(*node, "its node daemon is away");
  node->session = 0;
  node->last_sign = now;
  ArmNode(*node);
}

// Called at each tick.
void Controller::Impl::CheckNode(Node& node) {
  if (node.state == NodeState::kDown) return;
  if (node.last_sign + options.node_timeout > now) return;
  const auto seconds = options.node_timeout.count() / 1000.0;
  if (node.state == NodeState::kUnknown)
    return MarkDown(node,
                    fmt::format("msa-noded has not reported since the controller started {} s ago", seconds));
  const bool silent = node.session != 0;
  if (silent)
    Emit(effect::CloseSession{node.spec->name, node.session, fmt::format("no heartbeat for {} s", seconds)});
  node.session = 0;
  MarkDown(node, silent ? fmt::format("no heartbeat of msa-noded for {} s", seconds)
                        : fmt::format("msa-noded went away and did not come back for {} s", seconds));
}

void Controller::Impl::MarkDown(Node& node, const std::string& reason) {
  LoseNamd(node, reason);
  ForgetSlurmSteps(node.spec->name);
  node.state = NodeState::kDown;
  node.down_reason = reason;
  node.jobd_warm = 0;
  Emit(effect::Log{fmt::format("node {} is down: {}", node.spec->name, reason)});
  const std::string told = fmt::format("node {} is down: {}", node.spec->name, reason);
  for (const JobId id : std::vector<JobId>(active.begin(), active.end())) {
    Job* job = Find(id);
    if (job == nullptr) continue;
    if (const wire::Member* member = job->record.MemberOn(node.spec->name))
      LoseMember(*job, member->index, told, false);
  }
  NeedPass();
}

Result<std::vector<Controller::Impl::Node*>> Controller::Impl::OperatorNodes(
    const UserIdentity& caller, const std::vector<std::string>& names) {
  if (caller.uid != 0 && caller.uid != options.operator_uid)
    return Error(Code::kPermissionDenied,
                 "uid {} is not the operator; root and uid {} may drain and resume nodes", caller.uid,
                 options.operator_uid);
  if (names.empty()) return Status(Code::kInvalidArgument, "no node named; see 'msactl node list'");
  std::vector<Node*> out;
  for (const std::string& name : names) {
    MSA_ASSIGN_OR_RETURN(const std::size_t index, topology.SelectNode(name));
    out.push_back(&nodes[index]);
  }
  return out;
}

void Controller::Impl::Handle(event::Drain& e) {
  auto chosen = OperatorNodes(e.caller, e.nodes);
  if (!chosen.ok()) return Answer(e.reply, chosen.status());
  if (e.reason.empty() || e.reason.size() > kMaxNameBytes)
    return Answer(e.reply, Error(Code::kInvalidArgument,
                                 "a drain needs a reason of 1 to {} bytes, got {}; give --reason",
                                 kMaxNameBytes, e.reason.size()));
  if (Status plain = CheckName("the reason", e.reason); !plain.ok()) return Answer(e.reply, std::move(plain));
  for (Node* node : *chosen) {
    node->drained = true;
    node->drain_reason = e.reason;
    Emit(effect::PutNode{{node->spec->name, true, e.reason}});
  }
  Answer(e.reply, Status::Ok());
  NeedPass();
}

void Controller::Impl::Handle(event::Resume& e) {
  auto chosen = OperatorNodes(e.caller, e.nodes);
  if (!chosen.ok()) return Answer(e.reply, chosen.status());
  for (Node* node : *chosen) {
    node->drained = false;
    node->drain_reason.clear();
    Emit(effect::PutNode{{node->spec->name, false, ""}});
  }
  Answer(e.reply, Status::Ok());
  NeedPass();
}

}  // namespace msa
