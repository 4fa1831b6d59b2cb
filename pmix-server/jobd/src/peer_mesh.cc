#include "peer_mesh.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "msa/adapters/process/unix_socket.h"

#include "peer_socket.h"

namespace msa::jobd {
namespace {

// Connections that have not said who they are; a job of 4,096 nodes connects to its head within the listen
// backlog.
constexpr std::size_t kMaxPending = 256;

}  // namespace

PeerMesh::PeerMesh(EventLoop& loop, TlsContext& tls, PeerMeshOptions options, Handlers handlers)
    : loop_(loop), tls_(tls), options_(std::move(options)), handlers_(std::move(handlers)) {}

PeerMesh::~PeerMesh() {
  if (listener_) loop_.Unwatch(listener_.get());
  for (auto& [index, peer] : peers_) loop_.Cancel(peer.retry);
  for (auto& [key, pending] : pending_) loop_.Cancel(pending.limit);
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

Result<std::unique_ptr<PeerMesh>> PeerMesh::Create(EventLoop& loop, TlsContext& tls, PeerMeshOptions options,
                                                   Handlers handlers) {
  MSA_RETURN_IF_ERROR(
      tls.SetSecret(fmt::format("msa-job-{}.{}", options.job, options.incarnation), options.secret));
  std::unique_ptr<PeerMesh> mesh(new PeerMesh(loop, tls, std::move(options), std::move(handlers)));
  if (!mesh->options_.address.empty()) MSA_RETURN_IF_ERROR(mesh->Listen());
  return mesh;
}

Status PeerMesh::Listen() {
  MSA_ASSIGN_OR_RETURN(const PeerAddress address, ParsePeerAddress(options_.address));
  MSA_ASSIGN_OR_RETURN(listener_, ListenPeer(address));
  if (address.is_unix) unix_path_ = address.path;
  MSA_ASSIGN_OR_RETURN(address_, LocalAddress(address, listener_.get()));
  return loop_.Watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
}

void PeerMesh::Later(std::function<void()> work) {
  loop_.Post([weak = std::weak_ptr<int>(alive_), work = std::move(work)] {
    if (!weak.expired()) work();
  });
}

void PeerMesh::Bury(std::unique_ptr<FrameChannel> channel) {
  if (channel == nullptr) return;
  channel->Close();
  loop_.Post([dead = std::shared_ptr<FrameChannel>(std::move(channel))] {});
}

// ------------------------------------------------------------------------------------------ incoming

void PeerMesh::Accept() {
  for (int round = 0; round < 64; ++round) {
    auto fd = AcceptUnix(listener_.get());  // accept4: any family
    if (!fd.ok()) return handlers_.on_trouble(fd.status().WithContext("peer socket").message());
    if (!*fd) return;
    if (pending_.size() >= kMaxPending) {
      handlers_.on_trouble(
          fmt::format("more than {} peer connections wait for their hello; one is closed", kMaxPending));
      continue;
    }
    const Status admitted = Admit(std::move(*fd), !unix_path_.empty());
    if (!admitted.ok()) handlers_.on_trouble("peer connection refused: " + admitted.message());
  }
}

Status PeerMesh::Admit(UniqueFd fd, bool is_unix) {
  if (is_unix) {
    MSA_ASSIGN_OR_RETURN(const PeerCredentials who, GetPeerCredentials(fd.get()));
    if (who.user.uid != ::geteuid())
      return Error(Code::kPermissionDenied, "process {} of uid {} connected; only uid {} may", who.pid,
                   who.user.uid, ::geteuid());
  }
  MSA_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, tls_.Server(std::move(fd)));
  const std::uint64_t key = next_pending_++;
  auto who = std::make_shared<std::optional<std::uint32_t>>();
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this, key, who](wire::Frame frame) {
    if (who->has_value()) return handlers_.on_frame(**who, std::move(frame));
    OnHello(key, std::move(frame));
  };
  handlers.on_closed = [this, key, who](Status why) {
    if (who->has_value()) return OnBroken(**who, why.message());
    handlers_.on_trouble("peer connection refused: " + why.message());
    DropPending(key);
  };
  MSA_ASSIGN_OR_RETURN(std::unique_ptr<FrameChannel> channel,
                       FrameChannel::Create(loop_, std::move(stream), std::move(handlers)));
  const TimerId limit = loop_.After(options_.handshake_limit, [this, key] {
    handlers_.on_trouble(
        fmt::format("peer connection refused: no hello within {} ms", options_.handshake_limit.count()));
    DropPending(key);
  });
  pending_.emplace(key, Pending{std::move(channel), limit, std::move(who)});
  return Status::Ok();
}

void PeerMesh::DropPending(std::uint64_t key) {
  const auto it = pending_.find(key);
  if (it == pending_.end()) return;
  loop_.Cancel(it->second.limit);
  Bury(std::move(it->second.channel));
  pending_.erase(it);
}

void PeerMesh::Refuse(std::uint64_t key, const std::string& reason, bool retry) {
  const auto it = pending_.find(key);
  if (it == pending_.end()) return;
  handlers_.on_trouble((retry ? "peer told to try again: " : "peer connection refused: ") + reason);
  loop_.Cancel(it->second.limit);
  it->second.channel->SendMessage(PeerRefused{reason, retry});
  // 100 ms: the few bytes fit any socket's buffer.
  it->second.channel->CloseWhenDrained(Millis(100));
  loop_.Post([dead = std::shared_ptr<FrameChannel>(std::move(it->second.channel))] {});
  pending_.erase(it);
}

void PeerMesh::OnHello(std::uint64_t key, wire::Frame frame) {
  if (frame.type != PeerHello::kType)
    return Refuse(key, fmt::format("first message has type {:#06x}, expected a hello", frame.type), false);
  auto hello = wire::Decode<PeerHello>(frame.payload);
  if (!hello.ok()) return Refuse(key, hello.status().message(), false);
  if (hello->version != wire::kProtocolVersion)
    return Refuse(key,
                  fmt::format("protocol version {}, this side speaks {}; use one version of msa on all nodes",
                              hello->version, wire::kProtocolVersion),
                  false);
  if (hello->job != options_.job || hello->incarnation != options_.incarnation)
    return Refuse(key,
                  fmt::format("hello of job {}.{}, this is job {}.{}", hello->job, hello->incarnation,
                              options_.job, options_.incarnation),
                  false);
  if (hello->epoch > epoch_)
    return Refuse(
        key, fmt::format("hello with membership epoch {}, this side knows {}", hello->epoch, epoch_), true);
  const auto it = peers_.find(hello->index);
  if (it == peers_.end() || hello->index == options_.self)
    return Refuse(key, fmt::format("member {} is not in the membership of epoch {}", hello->index, epoch_),
                  false);
  if (it->second.lost)
    return Refuse(key, fmt::format("member {} was lost: {}", hello->index, it->second.last_trouble), false);
  if (it->second.incoming != nullptr)
    return Refuse(key, fmt::format("member {} is connected already", hello->index), false);
  Adopt(key, hello->index);
}

void PeerMesh::Adopt(std::uint64_t key, std::uint32_t index) {
  const auto it = pending_.find(key);
  loop_.Cancel(it->second.limit);
  Peer& peer = peers_.at(index);
  *it->second.who = index;
  peer.incoming = std::move(it->second.channel);
  pending_.erase(it);
  peer.incoming->SendMessage(PeerWelcome{options_.self});
  Established(index, peer.incoming.get());
}

// ------------------------------------------------------------------------------------------ outgoing

void PeerMesh::Connect(std::uint32_t index) {
  const auto it = peers_.find(index);
  if (it == peers_.end() || index == options_.self) return;
  Peer& peer = it->second;
  if (peer.lost || peer.connecting || peer.send_on != nullptr) return;
  peer.connecting = true;
  peer.connect_since = SteadyNow();
  peer.backoff = Millis(1);
  TryConnect(index);
}

void PeerMesh::TryConnect(std::uint32_t index) {
  Peer& peer = peers_.at(index);
  if (peer.lost || peer.outgoing != nullptr) return;
  const auto attempt = [&]() -> Status {
    MSA_ASSIGN_OR_RETURN(const PeerAddress address, ParsePeerAddress(peer.member.address));
    MSA_ASSIGN_OR_RETURN(UniqueFd fd, ConnectPeer(address));
    MSA_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, tls_.Client(std::move(fd)));
    FrameChannel::Handlers handlers;
    handlers.on_frame = [this, index](wire::Frame frame) { OnOutgoingFrame(index, std::move(frame)); };
    handlers.on_closed = [this, index](Status why) {
      Peer& broken = peers_.at(index);
      if (broken.outgoing_open) return OnBroken(index, why.message());
      Bury(std::move(broken.outgoing));
      RetryLater(index, why.message());
    };
    MSA_ASSIGN_OR_RETURN(peer.outgoing, FrameChannel::Create(loop_, std::move(stream), std::move(handlers)));
    peer.outgoing->SendMessage(
        PeerHello{wire::kProtocolVersion, options_.job, options_.incarnation, options_.self, epoch_});
    return Status::Ok();
  };
  const Status status = attempt();
  if (!status.ok()) RetryLater(index, status.message());
}

void PeerMesh::RetryLater(std::uint32_t index, const std::string& why) {
  Peer& peer = peers_.at(index);
  if (peer.lost) return;
  peer.last_trouble = why;
  if (SteadyNow() - peer.connect_since > options_.connect_limit) {
    if (peer.send_on != nullptr) return;  // it reached us meanwhile
    return Lose(
        index, fmt::format("cannot reach the job daemon of node {} at '{}' within {} s: {}", peer.member.node,
                           peer.member.address, options_.connect_limit.count() / 1000, why));
  }
  peer.retry = loop_.After(peer.backoff, [this, index] { TryConnect(index); });
  // From 1 ms, since both sides of a launch start at the same time, to 100 ms.
  peer.backoff = std::min(peer.backoff * 2, Millis(100));
}

void PeerMesh::OnOutgoingFrame(std::uint32_t index, wire::Frame frame) {
  Peer& peer = peers_.at(index);
  if (peer.outgoing_open) return handlers_.on_frame(index, std::move(frame));
  if (frame.type == PeerWelcome::kType) {
    const auto welcome = wire::Decode<PeerWelcome>(frame.payload);
    if (!welcome.ok() || welcome->index != index) return Lose(index, "answered with another member's name");
    peer.outgoing_open = true;
    peer.connecting = false;
    return Established(index, peer.outgoing.get());
  }
  const auto refused = wire::Decode<PeerRefused>(frame.payload);
  if (frame.type != PeerRefused::kType || !refused.ok())
    return Lose(index, fmt::format("answered the hello with a message of type {:#06x}", frame.type));
  Bury(std::move(peer.outgoing));
  if (refused->retry) return RetryLater(index, refused->reason);
  Lose(index, fmt::format("node {} refused the connection: {}", peer.member.node, refused->reason));
}

// ------------------------------------------------------------------------------------------ both

void PeerMesh::Established(std::uint32_t index, FrameChannel* channel) {
  Peer& peer = peers_.at(index);
  if (peer.send_on == nullptr) {
    peer.send_on = channel;
    for (std::string& packed : peer.waiting) channel->Send(std::move(packed));
    peer.waiting.clear();
    peer.waiting.shrink_to_fit();
  }
  if (peer.joined) return;
  peer.joined = true;
  handlers_.on_joined(index);
}

void PeerMesh::OnBroken(std::uint32_t index, const std::string& why) {
  const Peer& peer = peers_.at(index);
  Lose(index, fmt::format("lost the job daemon of node {}: {}", peer.member.node, why));
}

void PeerMesh::Lose(std::uint32_t index, const std::string& reason) {
  Peer& peer = peers_.at(index);
  if (peer.lost) return;
  peer.lost = true;
  peer.last_trouble = reason;
  peer.send_on = nullptr;
  loop_.Cancel(peer.retry);
  Bury(std::move(peer.outgoing));
  Bury(std::move(peer.incoming));
  peer.waiting.clear();
  Later([this, index, reason] { handlers_.on_lost(index, reason); });
}

void PeerMesh::DeclareLost(std::uint32_t index, const std::string& reason) {
  if (index != options_.self && peers_.contains(index)) Lose(index, reason);
}

void PeerMesh::SetMembers(Epoch epoch, const std::vector<wire::Member>& members, const std::string& reason) {
  if (epoch < epoch_) return;
  epoch_ = epoch;
  std::set<std::uint32_t> present;
  for (const wire::Member& member : members) {
    present.insert(member.index);
    peers_[member.index].member = member;
  }
  for (auto& [index, peer] : peers_)
    if (!present.contains(index) && index != options_.self)
      Lose(index, reason.empty() ? fmt::format("node {} left the job", peer.member.node) : reason);
}

void PeerMesh::Send(std::uint32_t index, std::uint16_t type, std::uint64_t id, std::string payload) {
  if (index == options_.self) {
    Later([this, index, frame = wire::Frame{type, 0, id, std::move(payload)}]() mutable {
      handlers_.on_frame(index, std::move(frame));
    });
    return;
  }
  const auto it = peers_.find(index);
  if (it == peers_.end() || it->second.lost) return;
  Peer& peer = it->second;
  std::string packed = wire::Pack(type, id, payload);
  if (peer.send_on != nullptr) return peer.send_on->Send(std::move(packed));
  peer.waiting.push_back(std::move(packed));
  Connect(index);
}

bool PeerMesh::connected(std::uint32_t index) const {
  const auto it = peers_.find(index);
  return index == options_.self || (it != peers_.end() && it->second.send_on != nullptr);
}

std::vector<std::uint32_t> PeerMesh::members() const {
  std::vector<std::uint32_t> out;
  for (const auto& [index, peer] : peers_)
    if (!peer.lost && index != options_.self) out.push_back(index);
  return out;
}

}  // namespace msa::jobd
