#include "unwritten.h"

#include <utility>

#include "msa/base/nam_replies.h"

namespace msa {
namespace {

bool UsesOnly(const NamRequest& request) {
  if (const auto* check = std::get_if<wire::NamCheckAsk>(&request)) return !check->repair;
  return std::holds_alternative<wire::NamList>(request) ||
         std::holds_alternative<wire::NamUsageAsk>(request) ||
         std::holds_alternative<wire::NamOpen>(request) || std::holds_alternative<wire::NamClose>(request) ||
         std::holds_alternative<wire::NamRefresh>(request);
}

const wire::NamFromTask* OfTask(const Event& event) {
  const auto* from = std::get_if<event::FromJobd>(&event);
  return from == nullptr ? nullptr : std::get_if<wire::NamFromTask>(&from->message);
}

const wire::NamFromLocal* OfLocal(const Event& event) {
  const auto* from = std::get_if<event::FromNamd>(&event);
  return from == nullptr ? nullptr : std::get_if<wire::NamFromLocal>(&from->message);
}

// What `event` asks of the book, by whatever way it came.
std::optional<NamRequest> RequestIn(const Event& event) {
  if (const auto* call = std::get_if<event::NamCall>(&event)) return call->request;
  Result<NamRequest> request = Status(Code::kNotFound, "no request");
  if (const auto* task = OfTask(event)) request = DecodeNamRequest(task->type, task->payload);
  if (const auto* local = OfLocal(event)) request = DecodeNamRequest(local->type, local->payload);
  if (!request.ok()) return std::nullopt;
  return *std::move(request);
}

}  // namespace

bool UsesOnly(const Event& event) {
  if (const auto request = RequestIn(event)) return UsesOnly(*request);
  if (std::holds_alternative<event::NamdUp>(event) || std::holds_alternative<event::NamdLost>(event))
    return true;
  const auto* from = std::get_if<event::FromNamd>(&event);
  return from != nullptr && (std::holds_alternative<wire::NamScanned>(from->message) ||
                             std::holds_alternative<wire::NamExtentDamaged>(from->message) ||
                             std::holds_alternative<wire::NamLocalGone>(from->message));
}

bool AsksToKeep(const Event& event) {
  const auto request = RequestIn(event);
  return request && !UsesOnly(*request) && !std::holds_alternative<wire::NamRemove>(*request);
}

bool Removes(const Event& event) {
  const auto request = RequestIn(event);
  return request && std::holds_alternative<wire::NamRemove>(*request);
}

bool MayBeAnswered(const Event& event) {
  return UsesOnly(event) || (std::holds_alternative<event::FromJobd>(event) && OfTask(event) == nullptr);
}

bool IsForTheAsker(const Effect& effect) {
  if (const auto* send = std::get_if<effect::SendToNamd>(&effect))
    return send->type == wire::NamToLocal::kType || send->type == wire::NamScan::kType ||
           send->type == wire::NamdWelcome::kType || send->type == wire::NamdQuit::kType;
  if (const auto* send = std::get_if<effect::SendToJobd>(&effect))
    return send->type == wire::NamToTask::kType;
  return std::holds_alternative<effect::NamReply>(effect);
}

std::optional<Effect> RefusalOf(const Event& event, const Status& why) {
  const auto failed = [&] {
    return wire::Encode(wire::NamFailed{static_cast<std::uint8_t>(why.code()), why.message()});
  };
  if (const auto* task = OfTask(event)) {
    const auto& from = std::get<event::FromJobd>(event);
    return effect::SendToJobd{
        from.node, from.job, from.incarnation, wire::NamToTask::kType,
        wire::Encode(wire::NamToTask{task->connection, wire::NamFailed::kType, task->id, failed()})};
  }
  if (const auto* local = OfLocal(event))
    return effect::SendToNamd{
        std::get<event::FromNamd>(event).node, wire::NamToLocal::kType,
        wire::Encode(wire::NamToLocal{local->connection, wire::NamFailed::kType, local->id, failed()})};
  return std::nullopt;
}

}  // namespace msa
