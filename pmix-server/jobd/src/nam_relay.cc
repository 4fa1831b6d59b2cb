#include "nam_relay.h"

#include <utility>

namespace msa::jobd {

bool NamRelay::Takes(std::uint16_t type) { return type == wire::NamClientHello::kType || type >> 8 == 0x07; }

void NamRelay::Refuse(std::uint64_t client, const wire::Frame& frame, Status why) {
  const wire::NamFailed failed{static_cast<std::uint8_t>(why.code()), why.message()};
  handlers_.to_task(client, {wire::NamFailed::kType, 0, frame.id, wire::Encode(failed)});
}

void NamRelay::OnTaskFrame(std::uint64_t client, const std::string& who, const wire::Frame& frame,
                           SteadyTime now) {
  if (frame.type == wire::NamClientHello::kType) {
    const auto hello = wire::Decode<wire::NamClientHello>(frame.payload);
    // One process, one client: a second hello changes nothing. What is malformed is said at the first
    // request.
    if (!hello.ok() || hello->client.value == 0) return;
    clients_.try_emplace(client, Client{hello->client, {}});
    // It lives, and has connected again: to tell once more that it went would end what it has taken since.
    std::erase_if(gone_, [&](const wire::NamTaskGone& gone) { return gone.client == hello->client; });
    return;
  }
  const auto it = clients_.find(client);
  if (it == clients_.end())
    return Refuse(client, frame,
                  Error(Code::kFailedPrecondition,
                        "a request for memory (type {:#06x}) before the hello of a NAM client", frame.type));
  if (frame.payload.size() > wire::kMaxNamPayload)
    return Refuse(client, frame,
                  Error(Code::kInvalidArgument, "a request for memory of {} bytes; the limit is {}",
                        frame.payload.size(), wire::kMaxNamPayload));
  auto& outstanding = it->second.outstanding;
  if (outstanding.size() >= limits_.outstanding)
    std::erase_if(outstanding,
                  [&](const auto& request) { return now - request.second > limits_.answered_by; });
  if (outstanding.size() >= limits_.outstanding)
    return Refuse(client, frame,
                  Error(Code::kResourceExhausted,
                        "{} requests for memory of this process are not answered yet, the limit; wait for "
                        "answers",
                        outstanding.size()));
  outstanding[frame.id] = now;
  const wire::NamFromTask ask{client, it->second.id, who, frame.type, frame.id, frame.payload};
  handlers_.to_controller(wire::NamFromTask::kType, wire::Encode(ask));
}

void NamRelay::OnToTask(wire::NamToTask message) {
  const auto it = clients_.find(message.connection);
  if (it == clients_.end()) return;  // it has gone, which the controller was told
  it->second.outstanding.erase(message.id);
  handlers_.to_task(message.connection, {message.type, 0, message.id, std::move(message.payload)});
}

void NamRelay::TellGone(std::uint64_t client, NamClientId id) {
  gone_.push_back({client, id});
  handlers_.to_controller(wire::NamTaskGone::kType, wire::Encode(gone_.back()));
  if (gone_.size() > limits_.gone) gone_.pop_front();
}

void NamRelay::OnTaskGone(std::uint64_t client) {
  const auto node = clients_.extract(client);
  if (!node.empty()) TellGone(client, node.mapped().id);
}

void NamRelay::AllGone() {
  for (const auto& [client, entry] : std::exchange(clients_, {})) TellGone(client, entry.id);
}

void NamRelay::OnLinkUp() {
  for (const wire::NamTaskGone& gone : gone_)
    handlers_.to_controller(wire::NamTaskGone::kType, wire::Encode(gone));
}

}  // namespace msa::jobd
