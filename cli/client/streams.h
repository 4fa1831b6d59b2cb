#pragma once
// The long calls of `msactl run` and `job attach`: streams whose events arrive on an event loop. gRPC's
// threads only post: the loop must live as long as the process. All members and handlers belong to the loop's
// thread; after a stream's destructor none of its handlers runs.

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"

#include "client/types.h"

namespace msa::cli {

// A connection to the controller with at most one stream of job events on it.
class ControllerLink {
 public:
  struct Handlers {
    std::function<void(JobEvent)> on_event;
    // Once. Ok after the final event; kUnavailable if the controller went away.
    std::function<void(Status)> on_end;
  };
  // Takes a connected socket (ConnectController).
  ControllerLink(EventLoop& loop, UniqueFd socket, Handlers handlers);
  ~ControllerLink();
  ControllerLink(const ControllerLink&) = delete;
  ControllerLink& operator=(const ControllerLink&) = delete;

  // One of both, once.
  void Run(const JobSpec& spec, const std::string& token);
  void Watch(JobId job);
  // `done` on the loop's thread. kUnavailable: the connection broke meanwhile.
  void Cancel(JobId job, const std::string& reason, bool now, std::function<void(Status)> done);
  // An allocation of this client is not needed any more; it ends with `exit_code`. As Cancel.
  void GiveBack(JobId job, int exit_code, std::function<void(Status)> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// A session with a job's head through its node daemon.
class AttachLink {
 public:
  struct Handlers {
    std::function<void(wire::Frame)> on_frame;
    // Once. kUnavailable: the node daemon or the job daemon went away; kNotFound: the job's head is not
    // there.
    std::function<void(Status)> on_end;
    std::function<void()> on_sent;  // all that was queued has left this process
  };
  AttachLink(EventLoop& loop, UniqueFd socket, Handlers handlers);
  ~AttachLink();
  AttachLink(const AttachLink&) = delete;
  AttachLink& operator=(const AttachLink&) = delete;

  // `open`: AttachOpen or StepOpen.
  template <class M>
  void Open(JobId job, Incarnation incarnation, const M& open) {
    OpenWith(job, incarnation, {M::kType, 0, 0, wire::Encode(open)});
  }
  template <class M>
  void Send(const M& message) {
    SendFrame(M::kType, wire::Encode(message));
  }
  bool sent() const;  // nothing is queued
  // Stops (or resumes) taking frames: back-pressure towards the job. One that was read already may still
  // arrive.
  void PauseReading();
  void ResumeReading();

 private:
  void OpenWith(JobId job, Incarnation incarnation, wire::Frame first);
  void SendFrame(std::uint16_t type, std::string payload);
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace msa::cli
