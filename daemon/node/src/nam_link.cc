#include "nam_link.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/nam_daemon.h"

namespace msa::node {
namespace {

// One namd, another that replaces it, and strangers that have not said hello.
constexpr std::size_t kMaxPeers = 16;
// A request of a process (kMaxNamPayload) travels inside a message of namd.
constexpr std::size_t kMaxPayload = wire::kMaxNamPayload + (std::size_t{64} << 10);
constexpr Millis kQuitLimit{1'000};
// Out of descriptors: level-triggered, the listener would spin.
constexpr Millis kAcceptPause{100};

bool IsNamds(std::uint16_t type) { return type >> 8 == 0x09; }

}  // namespace

NamLink::NamLink(EventLoop& loop, Options options, Handlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

NamLink::~NamLink() {
  Reset();
  loop_.Cancel(resume_timer_);
  if (listener_) loop_.Unwatch(listener_.get());
}

Status NamLink::Listen() {
  MSA_ASSIGN_OR_RETURN(listener_, ListenUnix(options_.path));
  return loop_.Watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
}

void NamLink::Accept() {
  for (;;) {
    auto fd = AcceptUnix(listener_.get());
    if (!fd.ok()) {
      spdlog::error("accept a namd: {}", fd.status().message());
      loop_.Modify(listener_.get(), 0);
      resume_timer_ = loop_.After(kAcceptPause, [this] { loop_.Modify(listener_.get(), EPOLLIN); });
      return;
    }
    if (!*fd) return;
    if (const Status admitted = Admit(std::move(*fd)); !admitted.ok())
      spdlog::warn("refused a namd: {}", admitted.message());
  }
}

Status NamLink::Admit(UniqueFd fd) {
  MSA_ASSIGN_OR_RETURN(const PeerCredentials who, GetPeerCredentials(fd.get()));
  if (who.user.uid != ::geteuid() && who.user.uid != 0)
    return Error(Code::kPermissionDenied, "pid {} of uid {} connected; only uid {} and root may", who.pid,
                 who.user.uid, ::geteuid());
  if (peers_.size() >= kMaxPeers)
    return Error(Code::kResourceExhausted, "{} connections are open, the limit", peers_.size());
  const std::uint64_t peer = next_peer_++;
  MSA_ASSIGN_OR_RETURN(
      auto channel,
      FrameChannel::Create(loop_, MakePlainStream(std::move(fd)),
                           {.on_frame = [this, peer](wire::Frame frame) { OnFrame(peer, std::move(frame)); },
                            .on_closed = [this, peer](const Status& why) { OnClosed(peer, why); }},
                           kMaxPayload));
  Peer& place = peers_[peer];
  place.channel = std::move(channel);
  place.hello_timer = loop_.After(options_.hello_timeout, [this, peer] { Drop(peer); });
  return Status::Ok();
}

void NamLink::OnFrame(std::uint64_t peer, wire::Frame frame) {
  if (!IsNamds(frame.type)) {
    const std::string reason = fmt::format("namd sent a message of type {:#06x}", frame.type);
    spdlog::warn("{}; its connection is closed", reason);
    return OnClosed(peer, Status(Code::kInvalidArgument, reason));
  }
  if (frame.type == wire::NamdHello::kType) return OnHello(peer, std::move(frame));
  if (peer == namd_) return handlers_.on_frame(std::move(frame));
  spdlog::warn("a namd sent a message of type {:#06x} before its hello; its connection is closed",
               frame.type);
  Drop(peer);
}

void NamLink::OnHello(std::uint64_t peer, wire::Frame frame) {
  const auto hello = wire::Decode<wire::NamdHello>(frame.payload);
  if (!hello.ok()) {
    spdlog::warn("refused a namd: {}", hello.status().message());
    return Drop(peer);
  }
  if (hello->version != wire::kNamProtocolVersion)
    return Quit(peer,
                fmt::format("namd of {} speaks NAM protocol version {}, its node daemon {}; install msa-namd "
                            "and msa-noded of one release",
                            options_.node, hello->version, wire::kNamProtocolVersion));
  loop_.Cancel(std::exchange(peers_[peer].hello_timer, {}));
  if (namd_ != 0 && namd_ != peer)
    OnClosed(namd_,
             Error(Code::kAborted, "a newer namd of {} (pid {}) took its place", options_.node, hello->pid));
  namd_ = peer;
  spdlog::info("namd is here: pid {}, {} extents", hello->pid, hello->extents.size());
  handlers_.on_frame(std::move(frame));
}

void NamLink::OnClosed(std::uint64_t peer, const Status& why) {
  const bool is_namd = peer == namd_;
  Drop(peer);
  if (!is_namd) return;
  spdlog::warn("namd is gone: {}", why.message());
  handlers_.on_gone(why.message());
}

void NamLink::Drop(std::uint64_t peer) {
  auto node = peers_.extract(peer);
  if (node.empty()) return;
  loop_.Cancel(node.mapped().hello_timer);
  if (namd_ == peer) namd_ = 0;
}

void NamLink::Quit(std::uint64_t peer, const std::string& reason) {
  spdlog::warn("refused a namd: {}", reason);
  const auto node = peers_.extract(peer);
  loop_.Cancel(node.mapped().hello_timer);
  if (namd_ == peer) namd_ = 0;
  // It lives until what it is told has left.
  const std::shared_ptr<FrameChannel> channel = std::move(node.mapped().channel);
  channel->SendMessage(wire::NamdQuit{reason});
  channel->CloseWhenDrained(kQuitLimit);
  loop_.After(kQuitLimit, [channel] {});
}

void NamLink::Send(const wire::Frame& frame) {
  const auto it = peers_.find(namd_);
  if (it == peers_.end()) return;
  if (!IsNamds(frame.type)) {
    spdlog::warn("a message of type {:#06x} for namd is dropped", frame.type);
    return;
  }
  if (frame.type == wire::NamdQuit::kType) {
    const auto quit = wire::Decode<wire::NamdQuit>(frame.payload);
    return Quit(namd_, quit.ok() ? quit->reason : "the controller refuses it");
  }
  it->second.channel->Send(wire::Pack(frame.type, frame.id, frame.payload));
  if (it->second.channel->queued() <= options_.max_queued) return;
  // From the loop, so that no caller is surprised inside its own call.
  loop_.Post([this, peer = namd_, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired())
      OnClosed(peer, Status(Code::kResourceExhausted, "it does not read what it is told"));
  });
}

void NamLink::Reset() {
  namd_ = 0;
  for (auto& [id, peer] : peers_) loop_.Cancel(peer.hello_timer);
  peers_.clear();
}

}  // namespace msa::node
