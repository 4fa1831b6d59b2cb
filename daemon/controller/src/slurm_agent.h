#pragma once
// msa-slurm-agent, which this process starts, and starts again when it ends.

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/job/events.h"

namespace msa {

// One thread, the loop's.
class SlurmAgent {
 public:
  // `handler` takes event::FromSlurmAgent and SlurmAgentLost.
  SlurmAgent(EventLoop& loop, std::string program, std::function<void(Event)> handler)
      : loop_(loop), program_(std::move(program)), handler_(std::move(handler)) {}
  // Closes its socket, with which it ends.
  ~SlurmAgent();
  SlurmAgent(const SlurmAgent&) = delete;
  SlurmAgent& operator=(const SlurmAgent&) = delete;

  // Tries until it succeeds.
  void Start();
  // Dropped while it does not run.
  void Send(const effect::ToSlurmAgent& ask);

 private:
  Status Spawn();
  void OnFrame(const wire::Frame& frame);
  void OnClosed(const Status& why);
  void StartLater(const std::string& why);
  void Reap();

  EventLoop& loop_;
  const std::string program_;
  const std::function<void(Event)> handler_;
  ProcessHandle process_;
  std::unique_ptr<FrameChannel> channel_;
  Millis backoff_{0};
  TimerId retry_{};
};

}  // namespace msa
