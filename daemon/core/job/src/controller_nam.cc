// Network attached memory in the controller: who asks the book of regions, and where its answers go.
#include <algorithm>

#include "msa/job/name_text.h"

#include "controller_impl.h"

namespace msa {
namespace {

// Of one process: as many as Linux lets it have.
constexpr std::size_t kMaxGroups = 65536;

// A region of so many segments on nodes of so long names would not fit: who reads it has the lease, too.
void Shorten(wire::NamGranted& granted) {
  for (wire::NamSegmentInfo& segment : granted.region.segments) segment.node.clear();
}

}  // namespace

void Controller::Impl::Nam(NamEvent event) { TakeNam(nam.On(std::move(event), now)); }

void Controller::Impl::TakeNam(std::vector<NamEffect> from_book) {
  for (NamEffect& effect : from_book) std::visit([this](auto& e) { Take(e); }, effect);
}

void Controller::Impl::Take(nam_effect::SendToNamd& e) {
  if (auto* welcome = std::get_if<wire::NamdWelcome>(&e.message)) {
    welcome->system = options.nam_system;
    welcome->key = options.nam_key;
  }
  std::visit(
      [&](const auto& message) {
        Emit(effect::SendToNamd{e.node, std::decay_t<decltype(message)>::kType, wire::Encode(message)});
      },
      e.message);
}

void Controller::Impl::Take(nam_effect::RefuseNamd& e) {
  if (Node* node = FindNode(e.node)) node->namd = false;
  Emit(effect::SendToNamd{e.node, wire::NamdQuit::kType, wire::Encode(wire::NamdQuit{e.reason})});
}

void Controller::Impl::Take(nam_effect::Reply& e) {
  const auto it = nam_asks.find(e.tag);
  if (it == nam_asks.end()) return;
  const NamOrigin origin = std::move(it->second);
  nam_asks.erase(it);
  AnswerNam(origin, e.status, e.body);
}

void Controller::Impl::Take(nam_effect::AllotmentReply& e) {
  Job* job = Find(e.job);
  if (job == nullptr || !active.contains(e.job)) return;
  if (e.answer.allotment != job->record.nam) {
    job->record.nam = e.answer.allotment;
    Put(*job);
    Change(*job);
  }
  SendToMember(*job, job->record.head, e.answer);
}

void Controller::Impl::Take(nam_effect::MoreFree&) {
  if (!pending.empty()) NeedPass();
}

// ---------------------------------------------------------------------------------------------- answers

void Controller::Impl::Sign(NamLeaseReply& reply) const {
  wire::SignedNamLease blob;
  blob.lease = wire::Encode(reply.lease);
  if (options.sign_lease) blob.signature = options.sign_lease(blob.lease);
  reply.granted.blob = wire::Encode(blob);
}

void Controller::Impl::SendNam(const NamOrigin& origin, std::uint16_t type, std::string payload) {
  if (origin.job.value == 0)
    return Emit(effect::SendToNamd{
        origin.node, wire::NamToLocal::kType,
        wire::Encode(wire::NamToLocal{origin.connection, type, origin.id, std::move(payload)})});
  if (FindActive(origin.job, origin.incarnation) == nullptr) return;
  Emit(effect::SendToJobd{
      origin.node, origin.job, origin.incarnation, wire::NamToTask::kType,
      wire::Encode(wire::NamToTask{origin.connection, type, origin.id, std::move(payload)})});
}

void Controller::Impl::AnswerNam(const NamOrigin& origin, const Status& status, NamReplyBody& body) {
  auto* lease = std::get_if<NamLeaseReply>(&body);
  if (status.ok() && lease != nullptr) Sign(*lease);
  if (origin.reply != 0) return Emit(effect::NamReply{origin.reply, status, std::move(body)});
  const auto fail = [&](const Status& why) {
    SendNam(origin, wire::NamFailed::kType,
            wire::Encode(wire::NamFailed{static_cast<std::uint8_t>(why.code()), why.message()}));
  };
  if (!status.ok()) return fail(status);
  const auto send = [&](const auto& message) {
    std::string payload = wire::Encode(message);
    if (payload.size() > wire::kMaxNamPayload)
      return fail(Error(Code::kResourceExhausted,
                        "the answer has {} bytes, the limit is {}; ask for one region or user at a time",
                        payload.size(), wire::kMaxNamPayload));
    SendNam(origin, std::decay_t<decltype(message)>::kType, std::move(payload));
  };
  if (lease == nullptr)
    return std::visit(
        [&](const auto& message) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(message)>, NamLeaseReply>) send(message);
        },
        body);
  if (wire::Encode(lease->granted).size() > wire::kMaxNamPayload) Shorten(lease->granted);
  send(lease->granted);
}

// --------------------------------------------------------------------------------------------- requests

void Controller::Impl::Handle(event::NamCall& e) {
  nam_asks[++last_nam_ask] = {.reply = e.reply};
  Nam(nam_event::Request{std::move(e.caller), std::move(e.request), e.random, last_nam_ask});
}

void Controller::Impl::Handle(event::NamCallEnded& e) {
  if (e.call != 0) Nam(nam_event::HolderGone{NamHolder{.call = e.call}});
}

void Controller::Impl::AskNam(NamOrigin origin, NamCaller caller, const NamFrame& frame) {
  caller.operator_ = caller.user.uid == 0 || caller.user.uid == options.operator_uid;
  caller.who = CleanName(caller.who.substr(0, kMaxNameBytes));
  Result<NamRequest> request =
      frame.payload.size() > wire::kMaxNamPayload
          ? Result<NamRequest>(Error(Code::kInvalidArgument, "the request has {} bytes, the limit is {}",
                                     frame.payload.size(), wire::kMaxNamPayload))
          : DecodeNamRequest(frame.type, frame.payload);
  if (!request.ok()) {
    NamReplyBody none;
    return AnswerNam(origin, request.status(), none);
  }
  nam_asks[++last_nam_ask] = std::move(origin);
  Nam(nam_event::Request{std::move(caller), *std::move(request), frame.random, last_nam_ask});
}

void Controller::Impl::OnMessage(Job& job, const std::string& node, wire::NamFromTask& m) {
  const JobRecord& record = job.record;
  NamOrigin origin{.job = record.id,
                   .incarnation = record.incarnation,
                   .node = node,
                   .connection = m.connection,
                   .id = m.id};
  if (m.client.value == 0) {
    NamReplyBody none;
    return AnswerNam(
        origin, Status(Code::kInvalidArgument, "no NamClientHello came before the request; send it first"),
        none);
  }
  nam_clients[{record.id, node}].insert(m.client);
  NamCaller caller;
  caller.user = record.user;
  caller.user_name = record.user_name;
  if (nam_groups.size() <= kMaxGroups) caller.groups = std::move(nam_groups);
  caller.who = std::move(m.who);
  caller.holder.job = record.id;
  caller.holder.client = m.client;
  AskNam(std::move(origin), std::move(caller), {m.type, m.payload, nam_random});
}

void Controller::Impl::OnMessage(Job& job, const std::string& node, wire::NamTaskGone& m) {
  if (m.client.value == 0) return;
  if (const auto it = nam_clients.find({job.record.id, node}); it != nam_clients.end()) {
    it->second.erase(m.client);
    if (it->second.empty()) nam_clients.erase(it);
  }
  Nam(nam_event::HolderGone{NamHolder{.job = job.record.id, .client = m.client}});
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::NamAllotmentAsk& m) {
  Nam(nam_event::AllotmentAsk{job.record.id, m.request, m.more});
}

// ------------------------------------------------------------------------------------------------ namds

void Controller::Impl::Handle(event::NamdUp& e) {
  Node* node = FindNode(e.node);
  if (node == nullptr || node->session != e.session || e.session == 0) return;
  node->namd = true;
  Nam(nam_event::NamdUp{e.node, std::move(e.hello)});
}

void Controller::Impl::Handle(event::NamdLost& e) {
  Node* node = FindNode(e.node);
  if (node != nullptr && node->session == e.session) LoseNamd(*node, e.reason);
}

void Controller::Impl::LoseNamd(Node& node, const std::string& reason) {
  if (std::exchange(node.namd, false)) Nam(nam_event::NamdLost{node.spec->name, reason});
}

void Controller::Impl::Handle(event::FromNamd& e) {
  const Node* node = FindNode(e.node);
  // Of a session that is over, or one that was refused.
  if (node == nullptr || node->session != e.session || !node->namd) return;
  if (auto* done = std::get_if<wire::NamExtentDone>(&e.message))
    return Nam(nam_event::ExtentDone{e.node, std::move(*done)});
  if (auto* damaged = std::get_if<wire::NamExtentDamaged>(&e.message))
    return Nam(nam_event::ExtentDamaged{e.node, std::move(*damaged)});
  if (auto* scanned = std::get_if<wire::NamScanned>(&e.message))
    return Nam(nam_event::Scanned{e.node, std::move(*scanned)});
  if (const auto* gone = std::get_if<wire::NamLocalGone>(&e.message))
    return Nam(
        nam_event::HolderGone{NamHolder{.node = e.node, .connection = gone->connection}, gone->client});
  auto& m = std::get<wire::NamFromLocal>(e.message);
  NamOrigin origin{.node = e.node, .connection = m.connection, .id = m.id};
  NamCaller caller;
  caller.user = {m.uid, m.gid};
  if (m.groups.size() <= kMaxGroups) caller.groups = std::move(m.groups);
  caller.user_name = !e.user_name.empty() ? e.user_name
                     : node->uid == m.uid ? node->user_name
                                          : fmt::format("uid-{}", m.uid);
  caller.who = fmt::format("pid {} on {}", m.pid, e.node);
  caller.holder.node = e.node;
  caller.holder.connection = m.connection;
  AskNam(std::move(origin), std::move(caller), {m.type, m.payload, e.random});
}

// ------------------------------------------------------------------------------------------------- jobs

// A user database is asked only for jobs that need it.
std::vector<std::uint32_t> Controller::Impl::NamGroups(const UserIdentity& user, const JobSpec& spec) const {
  if (spec.nam_regions.empty() || !options.groups_of) return {};
  std::vector<std::uint32_t> groups = options.groups_of(user);
  if (groups.size() > kMaxGroups) groups.clear();
  return groups;
}

nam_event::JobStarted Controller::Impl::NamStart(const Job& job) const {
  const JobRecord& record = job.record;
  return {record.id,
          record.user,
          record.user_name,
          record.nam,
          record.spec.nam.value > 0,
          record.spec.nam_regions,
          NamGroups(record.user, record.spec)};
}

void Controller::Impl::StartNam(Job& job) {
  job.record.nam = job.record.spec.nam;
  Nam(NamStart(job));
}

void Controller::Impl::EndNam(const Job& job) {
  const JobId id = job.record.id;
  nam_clients.erase(nam_clients.lower_bound({id, ""}), nam_clients.lower_bound({JobId(id.value + 1), ""}));
  // Of one that never started nothing is known.
  Nam(nam_event::JobEnded{id});
}

// The node is lost, and nobody will say that its processes are gone.
void Controller::Impl::LoseNamClients(const Job& job, const std::string& node) {
  const auto it = nam_clients.find({job.record.id, node});
  if (it == nam_clients.end()) return;
  const std::set<NamClientId> gone = std::move(it->second);
  nam_clients.erase(it);
  for (const NamClientId client : gone)
    Nam(nam_event::HolderGone{NamHolder{.job = job.record.id, .client = client}});
}

Status Controller::Impl::CheckNamRegions(const event::Submit& e) const {
  NamCaller caller;
  caller.user = e.user;
  caller.user_name = e.user_name;
  caller.groups = NamGroups(e.user, e.spec);
  for (const wire::NamRegionBinding& binding : e.spec.nam_regions)
    MSA_RETURN_IF_ERROR(nam.CheckBinding(caller, binding).WithContext("--nam-region"));
  return Status::Ok();
}

}  // namespace msa
