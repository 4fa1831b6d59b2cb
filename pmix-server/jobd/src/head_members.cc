// Members that come and go, and what the controller and the clients say.
#include <signal.h>

#include <algorithm>

#include "msa/base/ping.h"

#include "head.h"

namespace msa::jobd {
namespace {

// A grant's member that leaves because all of it was released. Namespaces whose tasks there have ended may
// still run elsewhere.
bool IsReleased(std::uint32_t index, const wire::LaunchJob& launch,
                const std::map<std::uint64_t, std::vector<wire::GrantShare>>& grants,
                const std::set<std::uint64_t>& released) {
  bool found = false;
  for (const wire::Member& member : launch.members)
    if (member.index == index) return false;
  for (const auto& [id, shares] : grants)
    for (const wire::GrantShare& share : shares) {
      if (share.member != index) continue;
      if (!released.contains(id)) return false;
      found = true;
    }
  return found;
}

}  // namespace

void Head::OnController(const wire::Frame& frame) {
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    outlet_.Log("message of the controller: " + decoded.status().message());
  };
  switch (frame.type) {
    case wire::MembersChanged::kType:
      return with(wire::MembersChanged{}, [&](auto m) {
        OnMembersChanged(m.epoch, m.members, m.reason);
        // A controller that was started anew sends it when this node registers.
        if (!exit_ && !left_) AnnounceNames();
      });
    case wire::CancelJob::kType:
      return with(wire::CancelJob{}, [&](auto m) {
        const bool gone = m.owner_gone;
        Cancel(std::move(m));
        // One that has a session is still reading; its end is told by kSessionOver.
        owner_gone_ = owner_gone_ || (gone && !Main().hub->has_owner());
        LeaveWhenDone();
      });
    case wire::SignalJob::kType:
      return with(wire::SignalJob{}, [&](auto m) { Signal(m.signal); });
    case wire::ExitAck::kType:
      acknowledged_ = exit_.has_value();
      return LeaveWhenDone();
    case wire::GrantAnswer::kType:
      return with(wire::GrantAnswer{}, [&](auto m) { OnGrantAnswer(m); });
    case wire::NamAllotment::kType:
      return with(wire::NamAllotment{}, [&](auto m) { OnAllotment(m); });
    case wire::RecallGrant::kType:
      return with(wire::RecallGrant{}, [&](auto m) { OnRecall(m); });
    case wire::NameAnswer::kType:
      return with(wire::NameAnswer{}, [&](auto m) { OnNameAnswer(m); });
    case wire::LinkOffer::kType:
      return with(wire::LinkOffer{}, [&](auto m) { OnLinkOffer(m); });
    case wire::LinkAnswer::kType:
      return with(wire::LinkAnswer{}, [&](auto m) { OnLinkAnswer(m); });
    case wire::LinkEnd::kType:
      return with(wire::LinkEnd{}, [&](auto m) {
        const auto other = foreign_.jobs.find(m.job);
        if (other != foreign_.jobs.end() && other->second.incarnation == m.incarnation)
          LoseForeign(m.job, m.reason);
      });
    default:
      outlet_.Log(fmt::format("the controller sent a message of type {:#06x}; ignored", frame.type));
  }
}

void Head::OnMembersChanged(Epoch epoch, const std::vector<wire::Member>& members,
                            const std::string& reason) {
  if (epoch <= epoch_ || left_) return;
  epoch_ = epoch;
  std::set<std::uint32_t> present;
  for (const wire::Member& member : members) present.insert(member.index);
  std::vector<std::uint32_t> gone;
  for (const auto& [index, member] : members_)
    if (!present.contains(index)) gone.push_back(index);
  // A member that this side lost stays lost, whatever the controller knows.
  for (const wire::Member& member : members)
    if (!lost_.contains(member.index)) members_[member.index] = member;
  told_members_ = members;
  RefreshSlots();
  outlet_.MembersKnown(epoch, members, reason);
  TellAll(Membership{epoch, members, reason});
  for (const std::uint32_t index : gone) {
    if (!IsReleased(index, launch_, grants_, released_)) MarkNodeLost(index);
    OnMemberLost(index,
                 reason.empty() ? fmt::format("node {} left the job", members_.at(index).node) : reason);
  }
  std::erase_if(grants_, [&](const auto& grant) {
    const bool over = std::all_of(grant.second.begin(), grant.second.end(),
                                  [&](const auto& share) { return IsGone(share); });
    if (over) released_.erase(grant.first);
    if (over) recalled_.erase(grant.first);
    if (over) companions_.erase(grant.first);
    return over;
  });
}

// What the membership gives, without what was released or recalled and is still on its way out of it.
void Head::RefreshSlots() {
  std::vector<wire::Member> usable;
  for (wire::Member member : told_members_) {
    if (lost_.contains(member.index)) continue;
    for (const auto& [id, shares] : grants_) {
      if (!released_.contains(id) && !recalled_.contains(id)) continue;
      for (const wire::GrantShare& share : shares)
        if (share.member == member.index)
          std::erase_if(member.cores, [&](std::uint16_t core) {
            return std::find(share.cores.begin(), share.cores.end(), core) != share.cores.end();
          });
    }
    usable.push_back(std::move(member));
  }
  slots_.SetMembers(usable);
}

bool Head::IsGone(const wire::GrantShare& share) const {
  const auto member = std::find_if(told_members_.begin(), told_members_.end(),
                                   [&](const wire::Member& m) { return m.index == share.member; });
  if (member == told_members_.end()) return true;
  return std::none_of(share.cores.begin(), share.cores.end(), [&](std::uint16_t core) {
    return std::find(member->cores.begin(), member->cores.end(), core) != member->cores.end();
  });
}

// A namespace fails with a node that it uses, whoever tells of it first.
void Head::MarkNodeLost(std::uint32_t index) {
  for (const auto& [nspace, ns] : namespaces_) {
    const auto& ranks = ns.reg.spec.rank_member;
    if (std::find(ranks.begin(), ranks.end(), index) != ranks.end()) StepOf(ns).node_lost = true;
  }
}

// A grant's member, or one that is late. It hears of every namespace that lives.
void Head::OnMemberJoined(std::uint32_t index) {
  if (!members_.contains(index)) return;
  const bool of_launch = std::any_of(launch_.members.begin(), launch_.members.end(),
                                     [&](const wire::Member& member) { return member.index == index; });
  for (const auto& [nspace, ns] : namespaces_)
    if (!of_launch) Tell(index, ns.reg);
  ForeignMemberJoined(index);
  std::vector<std::uint32_t> ready;
  for (auto& [number, job] : spawns_)
    if (job.awaiting_members.erase(index) > 0 && job.awaiting_members.empty()) ready.push_back(number);
  for (const std::uint32_t number : ready) TrySpawn(number);
}

void Head::OnMemberLost(std::uint32_t index, const std::string& reason) {
  const auto it = members_.find(index);
  if (it == members_.end() || left_) return;
  const std::string node = it->second.node;
  members_.erase(it);
  lost_.insert(index);
  slots_.Remove(index);
  if (exit_) return;
  TellAll(MemberGone{index, reason});
  ForeignMemberLost(index, reason);
  LoseSlurmMember(index, reason);
  std::vector<std::string> all;
  for (const auto& [nspace, ns] : namespaces_) all.push_back(nspace);
  for (const std::string& nspace : all)
    if (Namespace* ns = Find(nspace)) LoseTasksOn(*ns, index, reason);
  std::vector<std::uint32_t> waiting, reserved;
  for (const auto& [number, job] : spawns_) {
    if (job.awaiting_members.contains(index)) waiting.push_back(number);
    if (IsReserved(job, index)) reserved.push_back(number);
  }
  // Their tickets are void from now on.
  for (const std::uint32_t number : reserved)
    if (const auto plan = spawns_.find(number); plan != spawns_.end()) Forget(plan->second);
  for (const std::uint32_t number : waiting)
    RefuseSpawn(number, pmix::kPmixErrUnreachable,
                fmt::format("spawn refused: node {} was lent and lost: {}", node, reason));
  // Some may never fit any more.
  for (const StepId id : waiting_) steps_.at(id).wants.clear();
  StartWaiting();
  MaybeFinish();
}

void Head::LoseTasksOn(Namespace& ns, std::uint32_t index, const std::string& reason) {
  const std::string nspace = ns.reg.spec.nspace;
  const auto& rank_member = ns.reg.spec.rank_member;
  ns.awaiting_ready.erase(index);
  const bool was_starting = ns.awaiting_started.erase(index) > 0 && ns.awaiting_started.empty();
  std::uint32_t lost = 0;
  std::string node;
  for (std::uint32_t rank = 0; rank < ns.tasks.size(); ++rank) {
    if (rank_member[rank] != index) continue;
    node = ns.reg.nodes[ns.reg.rank_node[rank]];
    if (ns.tasks[rank] == TaskPhase::kEnded) continue;
    if (ns.tasks[rank] == TaskPhase::kAsked) {
      EndedTask(ns, rank);
      ns.result.Add({Rank(rank), 0, node, 0, SIGKILL, false}, Counted::kLost);
      Apply(store_.ProcEnded({nspace, rank}), std::nullopt);
    }
    ++lost;
  }
  if (lost > 0) {
    // Whoever told first, the controller or the broken connection. Children that have parted fail alone.
    if (ns.reg.spawn == 0 || !ns.linked.empty()) StepOf(ns).node_lost = true;
    ns.result.Force(ns.result.code() != 0 ? ns.result.code() : 1);
    EndNamespace(nspace,
                 fmt::format("{}: {} of {} {} lost: {}", node,
                             lost == 1 ? std::string("a task") : fmt::format("{} tasks", lost), Name(ns),
                             lost == 1 ? "is" : "are", reason),
                 EndKind::kFailure);
  }
  if (was_starting) AllStarted(ns);
  StartIfReady(ns);
  outlet_.After(Millis(0), [this, nspace] { CheckEnded(nspace); });
}

// ------------------------------------------------------------------------------------------ grants,
// resending

namespace {

bool Overlap(const std::vector<wire::GrantShare>& shares, const std::vector<std::uint32_t>& rank_member,
             const std::vector<std::vector<std::uint16_t>>& rank_cores) {
  for (std::size_t rank = 0; rank < rank_cores.size(); ++rank)
    for (const wire::GrantShare& share : shares)
      if (share.member == rank_member[rank] &&
          std::find_first_of(share.cores.begin(), share.cores.end(), rank_cores[rank].begin(),
                             rank_cores[rank].end()) != share.cores.end())
        return true;
  return false;
}

}  // namespace

std::vector<GrantId> Head::GrantsOf(const Namespace& ns) const {
  std::vector<GrantId> out;
  for (const auto& [id, shares] : grants_)
    if (!released_.contains(id) && Overlap(shares, ns.reg.spec.rank_member, ns.rank_cores))
      out.push_back(GrantId(id));
  return out;
}

void Head::OnRecall(const wire::RecallGrant& recall) {
  const std::uint64_t id = recall.grant.value;
  const auto grant = grants_.find(id);
  if (grant == grants_.end() || exit_ || released_.contains(id) || !recalled_.insert(id).second) return;
  const std::vector<wire::GrantShare> shares = grant->second;
  RefreshSlots();
  std::vector<std::uint32_t> waiting, reserved;
  for (const auto& [number, job] : spawns_) {
    const bool holds = std::find(job.grants.begin(), job.grants.end(), recall.grant) != job.grants.end();
    if (job.place && Overlap(shares, job.place->rank_member, job.place->rank_cores))
      reserved.push_back(number);
    else if (holds && job.nspace.empty() && !job.place)
      waiting.push_back(number);
  }
  for (const std::uint32_t number : reserved)
    if (const auto plan = spawns_.find(number); plan != spawns_.end()) Forget(plan->second);
  for (const std::uint32_t number : waiting)
    RefuseSpawn(number, pmix::kPmixErrOutOfResource, "spawn refused: " + recall.reason);
  std::vector<std::string> users;
  for (const auto& [nspace, ns] : namespaces_)
    if (Overlap(shares, ns.reg.spec.rank_member, ns.rank_cores)) users.push_back(nspace);
  for (const std::string& nspace : users)
    if (const Namespace* ns = Find(nspace))
      EndNamespace(nspace, fmt::format("{} is ended: {}", Name(*ns), recall.reason), EndKind::kFailure);
  ReleaseIdleGrants();
}

// Slots of a recalled grant are nobody's any more.
void Head::GiveSlots(std::uint32_t member, const std::vector<std::uint16_t>& cores) {
  slots_.Give(member, cores);
  if (!recalled_.empty()) RefreshSlots();
}

void Head::ReleaseIdleGrants() {
  for (const auto& [id, shares] : grants_) {
    if (released_.contains(id)) continue;
    const bool wanted = std::any_of(spawns_.begin(), spawns_.end(), [&, grant = GrantId(id)](const auto& it) {
      return std::find(it.second.grants.begin(), it.second.grants.end(), grant) != it.second.grants.end();
    });
    const bool used = std::any_of(shares.begin(), shares.end(), [&](const wire::GrantShare& share) {
      return slots_.AnyUsed(share.member, share.cores);
    });
    if (wanted || used) continue;
    released_.insert(id);
    RefreshSlots();
    TellController(wire::GrantRelease{GrantId(id)});
  }
}

// The controller may have been away: everything here is idempotent for it.
void Head::Resend() {
  outlet_.Cancel(resend_timer_);
  if (left_) return;
  for (auto& [request, ask] : open_asks_) {
    for (const auto& [number, job] : spawns_)  // what is left of the wait
      if (job.plan && job.grant_request == request) ask.wait_ms = WaitLeft(job);
    TellController(ask);
  }
  if (!exit_)
    for (const std::uint64_t id : released_) TellController(wire::GrantRelease{GrantId(id)});
  if (exit_ && !acknowledged_) TellController(*exit_);
  if (!exit_) ResendNames();
  resend_timer_ = outlet_.After(options_.resend, [this] { Resend(); });
}

void Head::OnControllerLink() {
  if (left_) return;
  if (!exit_) {
    if (started_at_ms_ != 0) TellController(wire::JobStarted{started_at_ms_});
    for (const auto& [nspace, ns] : namespaces_)
      if (ns.phase == Phase::kRunning) Report(ns, false);
    AnnounceNames();
  }
  // From now on they can come back.
  sessions_possible_ = true;
  for (auto& [id, step] : steps_)
    if (id != main_ && !step.hub->has_owner()) ArmAway(step);
  Resend();
}

// ------------------------------------------------------------------------------------------ sessions

void Head::OnSession(std::uint64_t session, const wire::Frame& frame) {
  Step* const own = StepOfSession(session);
  Step& step = own == nullptr ? Main() : *own;
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    outlet_.Log("message of a client: " + decoded.status().message());
    outlet_.EndSession(session);
    if (own != nullptr) return OnStepSessionOver(session);
    step.hub->Close(session);
  };
  constexpr std::uint16_t kSessionOver = 0x04ff;
  switch (frame.type) {
    case wire::AttachOpen::kType:
      if (own != nullptr) return outlet_.Log("the session of a step asked to attach; ignored");
      return with(wire::AttachOpen{}, [&](auto m) {
        if (!step.hub->Open(session, m)) return;
        owner_gone_ = false;
        if (!m.wants_stdin && step.in.received == 0) {
          step.in.eof = true;
          ForwardInput(step);
        }
        SendInputAck(session, step);
        LeaveWhenDone();
      });
    case wire::StepOpen::kType:
      if (own != nullptr) return outlet_.Log("the session of a step asked for another one; ignored");
      return with(wire::StepOpen{}, [&](auto m) { OnStepOpen(session, std::move(m)); });
    case wire::OutputAck::kType:
      return with(wire::OutputAck{}, [&](auto m) { OnAck(session, m.seq); });
    case wire::Input::kType:
      return with(wire::Input{}, [&](auto m) { OnInput(session, std::move(m)); });
    case wire::ClientSignal::kType:
      return with(wire::ClientSignal{}, [&](auto m) {
        if (own != nullptr) return OnStepSignal(*own, m.signal);
        Signal(m.signal);
      });
    case wire::Ping::kType:
      return outlet_.ToSession(session, wire::Ping::kType, {});
    case kSessionOver:
      if (own != nullptr) return OnStepSessionOver(session);
      // noded's word that the client itself has gone: nobody comes back for the rest. (A restart of noded is
      // OnSessionsLost, and there the owner does.)
      owner_gone_ = owner_gone_ || step.hub->is_owner(session);
      step.hub->Close(session);
      return LeaveWhenDone();
    default:
      outlet_.Log(fmt::format("a client sent a message of type {:#06x}; ignored", frame.type));
  }
}

void Head::OnSessionsLost() {
  sessions_possible_ = false;
  for (auto& [id, step] : steps_) {
    step.hub->CloseAll();
    outlet_.Cancel(step.away_timer);  // nobody can come back before the node daemon does
    step.away_timer = {};
  }
  step_sessions_.clear();
}

void Head::OnAck(std::uint64_t session, std::uint64_t seq) {
  Step* const own = StepOfSession(session);
  Step& step = own == nullptr ? Main() : *own;
  step.hub->Ack(session, seq);
  if (own != nullptr && step.hub->drained()) ForgetStep(step.id);
  LeaveWhenDone();
}

void Head::SendInputAck(std::uint64_t session, const Step& step) {
  const wire::InputAck ack{step.in.taken, step.in.closed || step.in.eof};
  outlet_.ToSession(session, wire::InputAck::kType, wire::Encode(ack));
}

void Head::OnInput(std::uint64_t session, wire::Input input) {
  Step* const own = StepOfSession(session);
  Step& step = own == nullptr ? Main() : *own;
  Input& in = step.in;
  if (!step.hub->is_owner(session) || in.eof || in.closed) return;
  if (input.offset > in.received) {  // a gap: the client goes on from what we have
    return SendInputAck(session, step);
  }
  const std::uint64_t known = in.received - input.offset;
  if (known < input.data.size()) {
    in.data.append(input.data, known, std::string::npos);
    in.received = input.offset + input.data.size();
  } else if (known > input.data.size()) {
    return;  // an old repetition; its end of file says nothing
  }
  if (in.received - in.taken > 2 * std::uint64_t{wire::kStdioWindowBytes}) {
    outlet_.Log("the owner sent more input than the window allows; its session is ended");
    outlet_.EndSession(session);
    return own == nullptr ? step.hub->Close(session) : OnStepSessionOver(session);
  }
  in.eof = input.eof;
  ForwardInput(step);
}

void Head::ForwardInput(Step& step) {
  const Namespace* ns = Find(step.nspace);
  Input& in = step.in;
  if (ns == nullptr || ns->phase != Phase::kRunning || ns->tasks.empty() || in.eof_sent) return;
  if (in.data.empty() && !in.eof) return;
  in.eof_sent = in.eof;
  Tell(ns->reg.spec.rank_member[0], TaskInput{step.nspace, Rank(0), std::move(in.data), in.eof});
  in.data.clear();
}

void Head::OnInputTaken(const InputTaken& message) {
  const Namespace* ns = Find(message.nspace);
  if (ns == nullptr) return;
  Step& step = StepOf(*ns);
  step.in.taken += message.bytes;
  step.in.closed = step.in.closed || message.closed;
  if (const std::uint64_t owner = step.hub->owner(); owner != 0) SendInputAck(owner, step);
}

}  // namespace msa::jobd
