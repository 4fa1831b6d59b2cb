#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/grpc/peer_registry.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

namespace msa {

// A node daemon's server of NodeService.Attach on a Unix socket: each client stream is a session of frames.
// All members and all handlers run on the loop's thread. No handler is called after the destructor has
// returned.
class AttachServer {
 public:
  using SessionId = std::uint64_t;  // from 1, never reused by this process

  static constexpr std::size_t kHighWater = std::size_t{1} << 20;  // as FrameChannel's
  static constexpr std::size_t kLowWater = std::size_t{256} << 10;

  struct Options {
    std::string path;                // of the socket; a stale one is replaced
    std::uint32_t mode = 0600;       // 0666: other users may call
    std::size_t max_sessions = 256;  // more are refused with RESOURCE_EXHAUSTED
  };

  struct Opened {
    SessionId session = 0;
    UserIdentity user;  // as the kernel says (SO_PEERCRED), or the certificate
    JobId job;
    Incarnation incarnation;  // 0: any
    wire::Frame first;        // normally AttachOpen
  };

  struct Handlers {
    // The first frame of a client arrived. The handler keeps the session (and may wait before it answers), or
    // calls End.
    std::function<void(Opened)> on_open;
    std::function<void(SessionId, wire::Frame)> on_frame;
    // The client has gone or the stream broke; the session's id is void from here on. Comes once for each
    // on_open, but not after End().
    std::function<void(SessionId, Status)> on_closed;
    // Optional: queued() fell below kLowWater after it had reached kHighWater.
    std::function<void(SessionId)> on_drained;
  };

  // Listens at once. Errors as ListenUnix.
  static Result<std::unique_ptr<AttachServer>> Create(EventLoop& loop, Options options, Handlers handlers);
  // Ends every session with UNAVAILABLE and stops listening.
  ~AttachServer();
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // Serves a connection that somebody else has accepted and authenticated, too. Any thread.
  void Take(UniqueFd connection, const Peer& peer);

  // Queues a frame to the client. The frame's id is not carried. Unknown sessions are ignored.
  void Send(SessionId session, wire::Frame frame);
  // Bytes not yet taken by gRPC, 0 for unknown sessions. Above kHighWater wait for on_drained.
  std::size_t queued(SessionId session) const;
  // Stops (or resumes) reading from the client: back-pressure. One frame that was read already may still
  // arrive.
  void PauseReading(SessionId session);
  void ResumeReading(SessionId session);
  // Sends what is queued, then ends the stream with `status` (its code and message reach the client). The
  // id is void at once. Unknown sessions are ignored.
  void End(SessionId session, Status status);

 private:
  class Impl;
  explicit AttachServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace msa
