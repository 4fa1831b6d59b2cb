#pragma once
// The connections between the job daemons of one job: TLS 1.3 with the job's secret over unix or tcp sockets.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/base/status.h"

#include "peer_messages.h"
#include "tls_stream.h"

namespace msa::jobd {

struct PeerMeshOptions {
  JobId job;
  Incarnation incarnation;
  std::uint32_t self = 0;         // member index
  std::string address;            // where to listen; empty: nobody connects to this one
  std::string secret;             // hex
  Millis connect_limit{10'000};   // a peer that cannot be reached that long is lost: it has had time to start
  Millis handshake_limit{5'000};  // an incoming connection that has not said hello by then is closed
};

// Frames between members, by index. Each side connects when it first sends to the other; both may do so at
// once, then a side sends always on the connection that it established first, so that frames of one sender
// stay in order. A member whose connection breaks is lost for good. One thread, the loop's. Callbacks never
// run inside a call.
class PeerMesh {
 public:
  struct Handlers {
    std::function<void(std::uint32_t from, wire::Frame)> on_frame;
    // A connection with this member is up, for the first time.
    std::function<void(std::uint32_t index)> on_joined;
    // Once for each member; nothing comes from it afterwards.
    std::function<void(std::uint32_t index, std::string reason)> on_lost;
    // Something was turned away or tried again; for the log.
    std::function<void(const std::string& text)> on_trouble;
  };

  // Listens. kInvalidArgument: address or secret; else the system's reason. `tls` must outlive the mesh.
  static Result<std::unique_ptr<PeerMesh>> Create(EventLoop& loop, TlsContext& tls, PeerMeshOptions options,
                                                  Handlers handlers);
  ~PeerMesh();
  PeerMesh(const PeerMesh&) = delete;
  PeerMesh& operator=(const PeerMesh&) = delete;

  // The members by the controller's word; an older epoch is ignored. Members absent from it are lost with
  // `reason`.
  void SetMembers(Epoch epoch, const std::vector<wire::Member>& members, const std::string& reason);
  // Starts to connect, if there is no connection yet.
  void Connect(std::uint32_t index);
  // Queues a frame; connects first if need be. To itself: through the loop. To a lost or unknown member:
  // dropped, on_lost has told or tells.
  void Send(std::uint32_t index, std::uint16_t type, std::uint64_t id, std::string payload);
  template <class M>
  void SendMessage(std::uint32_t index, const M& message, std::uint64_t id = 0) {
    Send(index, M::kType, id, wire::Encode(message));
  }
  // Declares a member lost, as another member saw it.
  void DeclareLost(std::uint32_t index, const std::string& reason);

  bool connected(std::uint32_t index) const;
  // The others that are not lost.
  std::vector<std::uint32_t> members() const;
  // Where it listens, with the port that the kernel chose.
  const std::string& address() const noexcept { return address_; }

 private:
  struct Peer {
    wire::Member member;
    std::unique_ptr<FrameChannel> outgoing;  // we connected
    std::unique_ptr<FrameChannel> incoming;  // it connected
    bool outgoing_open = false;              // welcomed
    FrameChannel* send_on = nullptr;         // the one that was established first
    bool joined = false;
    bool lost = false;
    bool connecting = false;
    SteadyTime connect_since;
    Millis backoff{1};
    TimerId retry{};
    std::string last_trouble;
    std::vector<std::string> waiting;  // frames until there is a connection
  };
  struct Pending {
    std::unique_ptr<FrameChannel> channel;
    TimerId limit{};
    std::shared_ptr<std::optional<std::uint32_t>>
        who;  // the member, once it has said hello; its handlers look here
  };

  PeerMesh(EventLoop& loop, TlsContext& tls, PeerMeshOptions options, Handlers handlers);
  Status Listen();
  void Accept();
  Status Admit(UniqueFd fd, bool is_unix);
  void OnHello(std::uint64_t pending, wire::Frame frame);
  void Refuse(std::uint64_t pending, const std::string& reason, bool retry);
  void DropPending(std::uint64_t pending);
  void Adopt(std::uint64_t pending, std::uint32_t index);
  void TryConnect(std::uint32_t index);
  void RetryLater(std::uint32_t index, const std::string& why);
  void OnOutgoingFrame(std::uint32_t index, wire::Frame frame);
  void Established(std::uint32_t index, FrameChannel* channel);
  void OnBroken(std::uint32_t index, const std::string& why);
  void Lose(std::uint32_t index, const std::string& reason);
  // Runs `work` from the loop, unless the mesh is gone by then.
  void Later(std::function<void()> work);
  // Destroys a channel from the loop: it may be the one whose handler runs.
  void Bury(std::unique_ptr<FrameChannel> channel);

  EventLoop& loop_;
  TlsContext& tls_;
  PeerMeshOptions options_;
  Handlers handlers_;
  std::string address_;
  std::string unix_path_;
  UniqueFd listener_;
  Epoch epoch_;
  std::map<std::uint32_t, Peer> peers_;
  std::map<std::uint64_t, Pending> pending_;
  std::uint64_t next_pending_ = 1;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace msa::jobd
