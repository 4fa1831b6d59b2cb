#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/grpc/node_messages.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// A node daemon's end of NodeControlService.Session. It connects, registers, and connects again with back-off
// whenever the session breaks, until it is destroyed. All members and all handlers run on the loop's thread;
// gRPC's threads are hidden. No handler is called after the destructor has returned.
class ControllerSession {
 public:
  // kSoon: within Options::later, with what else is sent by then. Order is kept in either case.
  enum class Urgency { kNow, kSoon };

  struct Options {
    std::string address;          // of the controller: "unix:PATH", or for `connect` and for people
    Millis min_backoff{50};       // after the first failure; doubles with each further one
    Millis max_backoff{2000};     // a restarted controller sees all its nodes again within this
    Millis answer_timeout{5000};  // from connecting to Registered; then the attempt counts as failed
    Millis later{30};             // how long a report that is sent kSoon may wait for another
    // Optional: another way than a Unix socket. Calls its argument once, on the loop's thread, now or later;
    // not after the session is gone.
    std::function<void(std::function<void(Result<UniqueFd>)>)> connect;
  };

  struct Handlers {
    // Called at every connect; what it returns is the session's first message.
    std::function<node_control::RegisterNode()> make_registration;
    // The session is up from here on: Send works. Comes before any other command.
    std::function<void(node_control::Registered)> on_registered;
    std::function<void(node_control::StartJob)> on_start_job;
    std::function<void(node_control::ToJobd)> on_to_jobd;
    std::function<void(node_control::QuitJob)> on_quit_job;
    std::function<void(node_control::ToNamd)> on_to_namd;    // optional
    std::function<void(node_control::ToSlurm)> on_to_slurm;  // optional
    // Once for each on_registered: the session is gone. Attempts that never got so far are told by
    // on_refused.
    std::function<void(Status)> on_disconnected;
    // Optional. An attempt failed; the next follows after `retry`. kUnavailable: nobody listens. kNotFound:
    // the controller's topology has no such node; kPermissionDenied, kFailedPrecondition: see node.proto.
    std::function<void(Status, Millis retry)> on_refused;
  };

  ControllerSession(EventLoop& loop, Options options, Handlers handlers);
  // Blocks until gRPC has let go of the session (at once: nothing of it waits for the controller).
  ~ControllerSession();
  ControllerSession(const ControllerSession&) = delete;
  ControllerSession& operator=(const ControllerSession&) = delete;

  // Starts to connect. Once.
  void Start();
  bool connected() const noexcept;

  // Queue a report, in order. kUnavailable when not connected: nothing is kept. What was queued when the
  // session breaks is lost without notice: what must arrive is sent again after the next on_registered (as
  // JobExit is, until ExitAck).
  Status Send(const node_control::Heartbeat& report);
  Status Send(node_control::FromJobd report, Urgency urgency = Urgency::kNow);
  Status Send(const node_control::JobdGone& report);
  Status Send(node_control::FromNamd report);
  Status Send(const node_control::NamdGone& report);
  Status Send(node_control::FromSlurm report, Urgency urgency = Urgency::kNow);

  // Bytes queued and not yet taken by gRPC. A heartbeat may be left out while this is high.
  std::size_t queued() const noexcept;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace msa
