#pragma once
// The sockets of a namespace's tasks on this node to its PMI-1 server. One thread, the loop's.

#include <functional>
#include <map>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/unique_fd.h"
#include "msa/pmi1/server.h"

namespace msa::jobd {

class PmiWorld {
 public:
  // Called for every effect but Reply: Close too, once the socket is closed. It may call any member.
  using OnEffect = std::function<void(pmi1::Effect)>;
  PmiWorld(EventLoop& loop, pmi1::ServerOptions options, OnEffect on_effect);
  ~PmiWorld();
  PmiWorld(const PmiWorld&) = delete;
  PmiWorld& operator=(const PmiWorld&) = delete;

  // The task's end of a new socket. kResourceExhausted: no descriptors left.
  Result<UniqueFd> Connect(Rank rank);
  // The task has ended: takes what it still said, then closes.
  void Ended(Rank rank);

  void OnBarrier(const Result<std::string>& data) { Run(server_.OnBarrier(data)); }
  void OnName(Rank rank, const Result<std::string>& port) { Run(server_.OnName(rank.value, port)); }

 private:
  struct Channel {
    UniqueFd fd;
    std::string unsent;
  };
  enum class Read : std::uint8_t { kMore, kNothing, kEnd };
  void OnEvents(std::uint32_t rank, std::uint32_t events);
  Read ReadOnce(std::uint32_t rank);
  void Send(std::uint32_t rank, const std::string& text);
  void Flush(std::uint32_t rank);
  void Shut(std::uint32_t rank);
  void Run(pmi1::Effects effects);

  EventLoop& loop_;
  pmi1::Server server_;
  OnEffect on_effect_;
  std::map<std::uint32_t, Channel> channels_;
};

}  // namespace msa::jobd
