#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "msa/adapters/grpc/attach_server.h"
#include "msa/adapters/process/event_loop.h"

#include "jobd_manager.h"

namespace msa::node {

// Carries frames between msactl's Attach streams and the job daemons, unread. A session for a job that is not
// here yet waits for it, one for a job whose head has just left is told so. One thread, the loop's.
class SessionRelay {
 public:
  struct Options {
    std::string node;
    Millis hold{10'000};       // for a job that was just placed
    Millis gone_hold{10'000};  // a head that has left is remembered: as long as msactl waits for the output
    // A client that does not read: beyond its own window (wire::kStdioWindowBytes) by so much it is cut off.
    std::size_t max_queued = std::size_t{16} << 20;
  };
  SessionRelay(EventLoop& loop, Options options, JobdManager& jobds);
  ~SessionRelay();
  SessionRelay(const SessionRelay&) = delete;
  SessionRelay& operator=(const SessionRelay&) = delete;

  // Opens the socket. Errors as ListenUnix.
  Status Listen(const std::string& path);
  // A client on another host, whom a certificate has named. After Listen; any thread.
  void Take(UniqueFd connection, const Peer& peer) { server_->Take(std::move(connection), peer); }

  // From the job daemons.
  void OnHere(const JobKey& key);
  void OnJobdFrame(const JobKey& key, wire::Frame frame);
  void OnSessionsLost(const JobKey& key, const Status& why);
  void OnDrained(const JobKey& key);
  void OnGone(const GoneJob& gone);

 private:
  using SessionId = AttachServer::SessionId;
  struct Session {
    JobKey key;  // incarnation 0 while held: any
    UserIdentity user;
    std::vector<wire::Frame> held;  // until the job is here
    bool joined = false;
    bool paused = false;
    TimerId hold_timer{};
  };
  struct Gone {
    std::string reason;
    TimerId forget_timer{};
  };
  void OnOpen(AttachServer::Opened opened);
  void OnClientFrame(SessionId id, wire::Frame frame);
  void OnClosed(SessionId id);
  void Join(SessionId id, const JobKey& key);
  void ToJobd(SessionId id, Session& session, wire::Frame frame);
  void Drop(SessionId id, Status why);
  void Remember(const JobKey& key, const std::string& reason);
  void DropIfGone(SessionId id);

  EventLoop& loop_;
  Options options_;
  JobdManager& jobds_;
  std::map<SessionId, Session> sessions_;
  std::map<JobKey, Gone> gone_;
  std::unique_ptr<AttachServer> server_;
};

// Both ways between noded and jobd: the session with the frame's id has ended. No payload.
inline constexpr std::uint16_t kSessionEnded = 0x04ff;

}  // namespace msa::node
