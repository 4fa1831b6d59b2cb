#include "msa/adapters/tls/tls_pump.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <optional>

#include "connection.h"

namespace msa {
namespace {

constexpr Millis kAcceptPause{100};

std::string AddressText(const sockaddr_storage& from, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&from), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return fmt::format("{}:{}", host, port);
}

Result<std::pair<UniqueFd, UniqueFd>> SocketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return ErrnoError(errno, "make a socket pair");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

// Of the controller there is one, whatever it runs as.
bool IsSame(const PeerIdentity& one, const PeerIdentity& other) {
  return one.role == other.role && one.node == other.node &&
         (one.role == PeerRole::kController || one.user.uid == other.user.uid);
}

}  // namespace

class TlsPump::Impl {
 public:
  Impl(const Options& options, std::unique_ptr<EventLoop> loop) : options_(options), loop_(std::move(loop)) {}

  EventLoop& loop() { return *loop_; }

  void Serve(Service service) {
    service_.emplace(std::move(service));
    const Status watched =
        loop_->Watch(service_->listener.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
    if (!watched.ok() && service_->on_refused) service_->on_refused("the listener", watched);
  }

  void Add(std::unique_ptr<TlsStream> stream, UniqueFd local) {
    const Instant until = stream->PeerUntil();
    const std::uint64_t id = next_++;
    Entry& entry = Insert(id, std::move(stream));
    StartMoving(id, entry, std::move(local), until);
  }

  void Extend(const PeerIdentity& peer, Instant until) {
    for (auto& [id, entry] : connections_) {
      if (entry.until == Instant() || until <= entry.until) continue;  // shakes hands yet, or holds longer
      const Result<PeerIdentity> who = entry.connection->stream().Peer();
      if (who.ok() && IsSame(*who, peer)) EndAt(id, entry, until);
    }
  }

  void Clear() {
    if (service_) loop_->Unwatch(service_->listener.get());
    connections_.clear();
  }

 private:
  struct Entry {
    std::unique_ptr<tls::Connection> connection;
    std::optional<TimerId> timer;
    Instant until;  // the epoch: it shakes hands
    std::string from;
  };

  Entry& Insert(std::uint64_t id, std::unique_ptr<TlsStream> stream) {
    Entry& entry = connections_[id];
    // Not at once: the connection may be in the middle of its work.
    entry.connection = std::make_unique<tls::Connection>(
        *loop_, std::move(stream), [this, id] { loop_->Post([this, id] { Remove(id); }); });
    return entry;
  }

  void Remove(std::uint64_t id) {
    const auto it = connections_.find(id);
    if (it == connections_.end()) return;
    if (it->second.timer) loop_->Cancel(*it->second.timer);
    connections_.erase(it);
    if (paused_ && connections_.size() < options_.max_connections) ResumeAccepting();
  }

  void StartMoving(std::uint64_t id, Entry& entry, UniqueFd local, Instant until) {
    EndAt(id, entry, until);
    entry.connection->Move(std::move(local));
  }

  void EndAt(std::uint64_t id, Entry& entry, Instant until) {
    if (entry.timer) loop_->Cancel(*entry.timer);
    entry.until = until;
    const auto left = std::max(until - Now(), Millis(0));
    entry.timer = loop_->After(std::min<Millis>(left, std::chrono::hours(24)), [this, id] { Remove(id); });
  }

  void Accept() {
    while (!paused_) {
      if (connections_.size() >= options_.max_connections) return PauseAccepting({});
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      UniqueFd socket(::accept4(service_->listener.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EAGAIN) return;
        if (errno == ECONNABORTED || errno == EINTR) continue;
        return PauseAccepting(kAcceptPause);  // no descriptors left, as a rule
      }
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      Shake(std::move(socket), AddressText(from, size));
    }
  }

  // The listener stays readable: without the pause the loop would spin.
  void PauseAccepting(std::optional<Millis> again) {
    paused_ = true;
    loop_->Modify(service_->listener.get(), 0);
    if (again) loop_->After(*again, [this] { ResumeAccepting(); });
  }
  void ResumeAccepting() {
    if (!std::exchange(paused_, false)) return;
    loop_->Modify(service_->listener.get(), EPOLLIN);
  }

  void Shake(UniqueFd socket, std::string from) {
    const auto tls = service_->tls();
    if (tls == nullptr) return Refuse(from, Status(Code::kUnavailable, "this daemon has no certificate yet"));
    auto stream = tls->Server(std::move(socket));
    if (!stream.ok()) return Refuse(from, stream.status());
    const std::uint64_t id = next_++;
    Entry& entry = Insert(id, *std::move(stream));
    entry.from = std::move(from);
    entry.timer = loop_->After(options_.handshake, [this, id] {
      Refuse(connections_.at(id).from,
             Error(Code::kDeadlineExceeded, "no TLS handshake within {} ms", options_.handshake.count()));
      connections_.at(id).timer.reset();
      Remove(id);
    });
    entry.connection->Shake([this, id](Status status) { Shaken(id, std::move(status)); });
  }

  void Shaken(std::uint64_t id, Status status) {
    Entry& entry = connections_.at(id);
    loop_->Cancel(*std::exchange(entry.timer, std::nullopt));
    if (status.ok()) status = LetIn(id, entry);
    if (status.ok()) return;
    Refuse(entry.from, status);
    loop_->Post([this, id] { Remove(id); });
  }

  Status LetIn(std::uint64_t id, Entry& entry) {
    MSA_ASSIGN_OR_RETURN(const PeerIdentity peer, entry.connection->stream().Peer());
    MSA_ASSIGN_OR_RETURN(auto ends, SocketPair());
    service_->on_member(std::move(ends.first), peer);
    StartMoving(id, entry, std::move(ends.second), entry.connection->stream().PeerUntil());
    return Status::Ok();
  }

  void Refuse(const std::string& from, const Status& why) {
    if (service_->on_refused) service_->on_refused(from, why);
  }

  const Options options_;
  std::unique_ptr<EventLoop> loop_;
  std::optional<Service> service_;
  std::map<std::uint64_t, Entry> connections_;
  std::uint64_t next_ = 1;
  bool paused_ = false;
};

TlsPump::TlsPump(std::shared_ptr<Impl> impl)
    : impl_(std::move(impl)), thread_([impl = impl_] { (void)impl->loop().Run(); }) {}

TlsPump::~TlsPump() {
  impl_->loop().Stop();
  thread_.join();
  impl_->Clear();
}

Result<std::unique_ptr<TlsPump>> TlsPump::Start(const Options& options) {
  MSA_ASSIGN_OR_RETURN(auto loop, EventLoop::Create());
  return std::unique_ptr<TlsPump>(new TlsPump(std::make_shared<Impl>(options, std::move(loop))));
}

void TlsPump::Serve(Service service) {
  const auto shared = std::make_shared<Service>(std::move(service));
  impl_->loop().Post([this, shared] { impl_->Serve(std::move(*shared)); });
}

void TlsPump::Extend(const PeerIdentity& peer, Instant until) {
  impl_->loop().Post([this, peer, until] { impl_->Extend(peer, until); });
}

Result<UniqueFd> TlsPump::Join(std::unique_ptr<TlsStream> stream) {
  MSA_ASSIGN_OR_RETURN(auto ends, SocketPair());
  struct Work {
    std::unique_ptr<TlsStream> stream;
    UniqueFd local;
  };
  const auto work = std::make_shared<Work>(Work{std::move(stream), std::move(ends.second)});
  impl_->loop().Post([this, work] { impl_->Add(std::move(work->stream), std::move(work->local)); });
  return std::move(ends.first);
}

}  // namespace msa
