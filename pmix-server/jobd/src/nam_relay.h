#pragma once
// What the tasks of this node ask about network attached memory, on its way to the controller and back. Pure
// but for the time, which enters as an argument; one thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "msa/base/clock.h"
#include "msa/base/nam_messages.h"
#include "msa/base/wire.h"

namespace msa::jobd {

struct NamRelayLimits {
  std::size_t outstanding = 64;  // requests of one connection that are not answered
  // A request that was lost on its way, with a daemon that was killed, does not count for ever: the
  // controller answers each within 30 s.
  Millis answered_by{60'000};
  std::size_t gone = 256;  // clients whose end is told again when the node daemon is back
};

class NamRelay {
 public:
  struct Handlers {
    std::function<void(std::uint16_t type, std::string payload)> to_controller;  // 0x03xx; may be lost
    std::function<void(std::uint64_t client, const wire::Frame& frame)> to_task;
  };
  explicit NamRelay(Handlers handlers, NamRelayLimits limits = {})
      : handlers_(std::move(handlers)), limits_(limits) {}

  // A frame of a task that is ours: NamClientHello and 0x07xx.
  static bool Takes(std::uint16_t type);
  // `client` names the connection and is never used again; `who`: for people. What is wrong is answered by
  // NamFailed: kFailedPrecondition before NamClientHello, kResourceExhausted beyond the limit,
  // kInvalidArgument for a message that is too long.
  void OnTaskFrame(std::uint64_t client, const std::string& who, const wire::Frame& frame, SteadyTime now);
  // The connection's end, however it came.
  void OnTaskGone(std::uint64_t client);
  void OnToTask(wire::NamToTask message);
  // This job daemon leaves: none of its tasks uses memory any more.
  void AllGone();
  // The node daemon is back: what it may have lost is told again.
  void OnLinkUp();

 private:
  struct Client {
    NamClientId id;
    std::map<std::uint64_t, SteadyTime> outstanding;  // by the frame's id: since when
  };
  void Refuse(std::uint64_t client, const wire::Frame& frame, Status why);
  void TellGone(std::uint64_t client, NamClientId id);

  const Handlers handlers_;
  const NamRelayLimits limits_;
  std::map<std::uint64_t, Client> clients_;  // that said NamClientHello
  std::deque<wire::NamTaskGone> gone_;       // the newest
};

}  // namespace msa::jobd
