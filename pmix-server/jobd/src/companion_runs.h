#pragma once
// The msa-companion processes of a job of Slurm: one for each ask, between it and the controller.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/companion_messages.h"

namespace msa::jobd {

// One thread, the loop's.
class CompanionRuns {
 public:
  using Outlet = std::function<void(const wire::CompanionReport&)>;
  CompanionRuns(EventLoop& loop, std::string program, Outlet outlet)
      : loop_(loop), program_(std::move(program)), outlet_(std::move(outlet)) {}
  ~CompanionRuns();
  CompanionRuns(const CompanionRuns&) = delete;
  CompanionRuns& operator=(const CompanionRuns&) = delete;

  void On(const wire::CompanionOrder& order);
  // Closes their sockets: they cancel what they hold in Slurm, and end; then `done`, once, from the loop.
  // Nothing more is told of them.
  void Close(std::function<void()> done);
  std::size_t running() const;

 private:
  struct Run {
    ProcessHandle process;  // no descriptor: it has ended
    std::unique_ptr<FrameChannel> channel;
    wire::CompanionReport last;  // with type 0: none yet
    bool answered = false;       // `last` is its last message
  };
  void Start(const wire::CompanionOrder& order);
  Status Spawn(Run& run, std::uint64_t request);
  void OnFrame(std::uint64_t request, wire::Frame frame);
  void OnExit(std::uint64_t request);
  void TellGone(std::uint64_t request, std::string why);
  void Trim();
  void CheckClosed();

  EventLoop& loop_;
  const std::string program_;
  const Outlet outlet_;
  std::map<std::uint64_t, Run> runs_;  // by request
  bool closing_ = false;
  std::function<void()> on_closed_;  // until it was called
};

}  // namespace msa::jobd
