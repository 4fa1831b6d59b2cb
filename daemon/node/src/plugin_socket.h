#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/slurm_messages.h"
#include "msa/base/unique_fd.h"

namespace msa::node {

// Where Slurm's plugin reports the steps and the ends of jobs of this node, see msa/base/slurm_messages.h. A
// connection of slurmstepd stays open as long as its step is here. Only root and this process's own user are
// believed. One thread, the loop's.
class PluginSocket {
 public:
  struct Options {
    std::string node;
    std::string path;
    Millis begin_timeout{5'000};  // of a connection that says nothing
    std::size_t max_connections = 4096;
  };
  struct Handlers {
    std::function<void(const wire::SlurmStepBegin&)> on_begin;
    std::function<void(const wire::SlurmTaskBegin&)> on_task_begin;
    std::function<void(const wire::SlurmTaskEnd&)> on_task_end;
    std::function<void(const wire::SlurmStepEnd&)> on_step_end;
    std::function<void(const wire::SlurmJobEnd&)> on_job_end;
  };
  PluginSocket(EventLoop& loop, Options options, Handlers handlers);
  ~PluginSocket();
  PluginSocket(const PluginSocket&) = delete;
  PluginSocket& operator=(const PluginSocket&) = delete;

  // Opens the socket, for everybody to connect. Errors as ListenUnix.
  Status Listen();
  // To every slurmstepd of the step that has no verdict yet. One that is refused closes its connection.
  void Answer(const wire::SlurmStepVerdict& verdict);
  // To every slurmstepd of the step that was accepted.
  void Abort(const wire::SlurmStepAbort& abort);
  // The steps that are here, by age: what a controller that comes back is told.
  struct Part {
    wire::SlurmStepBegin begin;
    bool accepted = false;
  };
  std::vector<Part> Steps() const;

 private:
  struct Peer {
    std::unique_ptr<FrameChannel> channel;
    pid_t pid = 0;
    TimerId begin_timer{};
    std::optional<wire::SlurmStepBegin> begin;
    bool answered = false;
    bool accepted = false;
  };
  void Accept();
  Status Admit(UniqueFd fd);
  void OnFrame(std::uint64_t peer, const wire::Frame& frame);
  Status Handle(Peer& peer, const wire::Frame& frame);
  Status OnBegin(Peer& peer, wire::SlurmStepBegin begin);
  template <class M>
  Status OnTask(const Peer& peer, const wire::Frame& frame, const std::function<void(const M&)>& handler);
  void OnClosed(std::uint64_t peer);

  EventLoop& loop_;
  const Options options_;
  const Handlers handlers_;
  UniqueFd listener_;
  TimerId resume_timer_{};
  std::map<std::uint64_t, Peer> peers_;
  std::uint64_t next_peer_ = 1;
};

}  // namespace msa::node
