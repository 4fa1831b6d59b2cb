#include "member.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace msa::jobd {

Member::Member(EventLoop& loop, pmix::PmixHost& host, launch::TaskRunner& launcher, PeerMesh& mesh,
               MemberOptions options, std::function<void(const std::string&)> log)
    : loop_(loop),
      host_(host),
      launcher_(launcher),
      mesh_(mesh),
      options_(std::move(options)),
      log_(std::move(log)),
      engine_({.self = options_.self}) {}

Member::~Member() = default;

void Member::SetMembers(const std::vector<wire::Member>& members) {
  for (const wire::Member& member : members) members_[member.index] = member;
}

Member::World Member::WorldOf(const std::string& nspace) const {
  const Hosted* found = nullptr;
  for (const auto& [name, hosted] : hosted_)
    if (nspace.empty() ? hosted.reg.spawn == 0 : name == nspace) found = &hosted;
  if (found == nullptr) return {};
  return {found->reg.spec.step, static_cast<std::uint32_t>(found->reg.spec.rank_member.size())};
}

pmix::NamespaceInfo Member::InfoOf(const NamespaceRegister& reg) const {
  pmix::NamespaceInfo info;
  info.nspace = reg.spec.nspace;
  info.job_id = fmt::format("{}", options_.job);
  info.nodes = reg.nodes;
  info.rank_node = reg.rank_node;
  info.universe_size = reg.universe;
  info.parent_nspace = reg.parent;
  info.parent_rank = reg.parent_rank;
  info.tmpdir = options_.directory;
  std::uint32_t first = 0;
  for (const wire::App& app : reg.spec.apps) {
    info.apps.push_back({first, app.ntasks, app.cwd.empty() ? reg.spec.cwd : app.cwd,
                         fmt::format("{}", fmt::join(app.argv, " "))});
    first += app.ntasks;
  }
  return info;
}

void Member::Register(NamespaceRegister reg) {
  const std::string nspace = reg.spec.nspace;
  if (hosted_.contains(nspace)) return;
  const pmix::NamespaceInfo info = InfoOf(reg);
  hosted_[nspace].reg = std::move(reg);
  host_.RegisterNamespace(info, members_.at(options_.self).node, options_.user,
                          [this, nspace, weak = std::weak_ptr<int>(alive_)](Status status) {
                            if (!weak.expired())
                              ToHead(NamespaceReady{nspace, status.ok() ? std::string() : status.message()});
                          });
}

std::vector<std::string> Member::NamespacesOf(StepId step) const {
  std::vector<std::string> out;
  for (const auto& [nspace, hosted] : hosted_)
    if (hosted.reg.spec.step == step) out.push_back(nspace);
  return out;
}

void Member::OnCredit(const OutputCredit& message) {
  const auto it = output_debts_.find(message.step);
  if (it == output_debts_.end()) return;
  Debt& debt = it->second;
  debt.bytes -= std::min(debt.bytes, message.bytes);
  if (!debt.paused || debt.bytes > kOutputCredit / 2) return;
  debt.paused = false;
  for (const std::string& nspace : NamespacesOf(message.step)) launcher_.ResumeOutput(nspace);
}

void Member::Deregister(const std::string& nspace) {
  const auto it = hosted_.find(nspace);
  if (it == hosted_.end()) return;
  const StepId step = it->second.reg.spec.step;
  hosted_.erase(it);
  launcher_.ResumeOutput(nspace);
  launcher_.Forget(nspace);
  if (NamespacesOf(step).empty()) output_debts_.erase(step);
  Kill(nspace);
  Run(engine_.ForgetNamespace(nspace));
  ForgetForeignOperations(nspace);
  host_.DeregisterNamespace(nspace, [] {});
}

void Member::OnFrame(std::uint32_t from, const wire::Frame& frame) {
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    log_(fmt::format("message of member {}: {}", from, decoded.status().message()));
  };
  switch (frame.type) {
    case pmix::CollectiveMessage::kType:
      return with(pmix::CollectiveMessage{}, [&](auto m) {
        auto effects = engine_.FromPeer(from, std::move(m));
        if (effects.ok()) return Run(std::move(*effects));
        mesh_.DeclareLost(from,
                          fmt::format("member {} is out of step: {}", from, effects.status().message()));
      });
    case ModexRequest::kType:
      return with(ModexRequest{}, [&](auto m) { OnModexRequest(from, frame.id, m); });
    case ModexReply::kType:
    case StoreReply::kType:
    case SpawnReply::kType:
    case PlanReply::kType:
    case ForeignResult::kType:
      return OnReply(from, frame);
  }
  if (from != options_.head)
    return log_(fmt::format("member {} sent a message of type {:#06x}, which is the head's; ignored", from,
                            frame.type));
  switch (frame.type) {
    case NamespaceRegister::kType:
      return with(NamespaceRegister{}, [&](auto m) { Register(std::move(m)); });
    case NamespaceStart::kType:
      return with(NamespaceStart{}, [&](auto m) { Start(std::move(m)); });
    case NamespaceSignal::kType:
      return with(NamespaceSignal{}, [&](auto m) { Signal(m); });
    case NamespaceKill::kType:
      return with(NamespaceKill{}, [&](auto m) { Kill(m.nspace); });
    case NamespaceDeregister::kType:
      return with(NamespaceDeregister{}, [&](auto m) { Deregister(m.nspace); });
    case OutputCredit::kType:
      return with(OutputCredit{}, [&](auto m) { OnCredit(m); });
    case TaskInput::kType:
      return with(TaskInput{},
                  [&](auto m) { launcher_.WriteStdin(m.nspace, m.rank, std::move(m.data), m.eof); });
    case ForeignRegister::kType:
    case ForeignEnded::kType:
    case ForeignModexServe::kType:
      return OnForeignFrame(frame);
    case NamespaceEvent::kType:
      return with(NamespaceEvent{}, [&](auto m) { OnEvent(m); });
    case MemberGone::kType:
      return with(MemberGone{}, [&](auto m) { mesh_.DeclareLost(m.index, m.reason); });
    default:
      log_(fmt::format("the head sent a message of type {:#06x}; ignored", frame.type));
  }
}

void Member::OnReply(std::uint32_t from, const wire::Frame& frame) {
  const auto it = requests_.find(frame.id);
  if (it == requests_.end() || it->second.to != from) return;
  const auto on_reply = std::move(it->second.on_reply);
  requests_.erase(it);
  on_reply(pmix::kPmixSuccess, &frame);
}

void Member::OnMemberLost(std::uint32_t index, const std::string& reason) {
  Run(engine_.MemberLost(index, reason));
  std::vector<std::uint64_t> lost;
  for (const auto& [id, request] : requests_)
    if (request.to == index) lost.push_back(id);
  for (const std::uint64_t id : lost) {
    const auto on_reply = std::move(requests_.at(id).on_reply);
    requests_.erase(id);
    on_reply(pmix::kPmixErrUnreachable, nullptr);
  }
  members_.erase(index);
}

}  // namespace msa::jobd
