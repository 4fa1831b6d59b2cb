#include "local_clients.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <spdlog/spdlog.h>

namespace msa::namd {
namespace {

// Answers that a client does not read. Beyond it, it is cut off.
constexpr std::size_t kMaxUnread = std::size_t{64} << 20;
// Files in answers that a client does not read; beyond it, its requests wait.
constexpr std::size_t kMaxUnreadFiles = 16;
// When there are no descriptors left: until then some connection may have closed.
constexpr Millis kAcceptPause{100};

Result<std::vector<std::uint32_t>> GetPeerGroups(int fd) {
  std::vector<gid_t> groups(64);
  for (int round = 0; round < 2; ++round) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int rc = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    const int error = errno;
    groups.resize(size / sizeof(gid_t));
    if (rc == 0) return std::vector<std::uint32_t>(groups.begin(), groups.end());
    if (error != ERANGE) return ErrnoError(error, "read groups of the peer");
  }
  return Status(Code::kInternal, "read groups of the peer: their number grows");
}

bool IsRelayed(std::uint16_t type) { return type >> 8 == 0x07; }

}  // namespace

LocalClients::LocalClients(EventLoop& loop, Service& service, std::uint64_t first_connection, Hooks hooks)
    : loop_(loop), service_(service), hooks_(std::move(hooks)), next_connection_(first_connection) {}

LocalClients::~LocalClients() {
  loop_.Cancel(accept_timer_);
  if (listener_) loop_.Unwatch(listener_.get());
}

Status LocalClients::Listen(const std::string& path, mode_t mode) {
  MSA_ASSIGN_OR_RETURN(listener_, ListenUnix(path, mode));
  return loop_.Watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
}

void LocalClients::Accept() {
  for (;;) {
    auto fd = AcceptUnix(listener_.get());
    if (fd.ok() && !*fd) return;
    const Status status = fd.ok() ? Open(std::move(*fd)) : fd.status();
    if (status.ok()) continue;
    spdlog::warn("client not taken: {}", status.message());
    if (fd.ok()) continue;
    loop_.Modify(listener_.get(), 0);
    accept_timer_ = loop_.After(kAcceptPause, [this] { loop_.Modify(listener_.get(), EPOLLIN); });
    return;
  }
}

Status LocalClients::Open(UniqueFd fd) {
  Client client;
  client.connection = next_connection_++;
  MSA_ASSIGN_OR_RETURN(client.who, GetPeerCredentials(fd.get()));
  MSA_ASSIGN_OR_RETURN(client.groups, GetPeerGroups(fd.get()));
  const std::uint64_t id = client.connection;
  // Not from inside the channel that calls.
  auto stream = std::make_unique<PassingStream>(std::move(fd),
                                                [this, id] { loop_.Post([this, id] { OnFilePassed(id); }); });
  client.stream = stream.get();
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this, id](wire::Frame frame) { OnFrame(id, std::move(frame)); };
  handlers.on_closed = [this, id](const Status& why) { OnClosed(id, why); };
  MSA_ASSIGN_OR_RETURN(client.channel, FrameChannel::Create(loop_, std::move(stream), std::move(handlers),
                                                            wire::kMaxNamPayload));
  clients_.emplace(id, std::move(client));
  return Status::Ok();
}

void LocalClients::OnClosed(std::uint64_t connection, const Status& why) {
  const auto it = clients_.find(connection);
  if (it == clients_.end()) return;
  if (why.code() != Code::kUnavailable)
    spdlog::warn("pid {} of uid {} is cut off: {}", it->second.who.pid, it->second.who.user.uid,
                 why.message());
  const bool relayed = it->second.relayed;
  const NamClientId client = it->second.client;
  clients_.erase(it);
  service_.ConnectionClosed(connection);
  // It has connected again, and lives.
  const bool lives = std::any_of(clients_.begin(), clients_.end(), [&](const auto& entry) {
    return client.value != 0 && entry.second.client == client;
  });
  if (relayed || client.value != 0) hooks_.on_gone({connection, lives ? NamClientId() : client});
}

void LocalClients::OnFrame(std::uint64_t connection, wire::Frame frame) {
  const auto it = clients_.find(connection);
  if (it == clients_.end()) return;
  Client& client = it->second;
  if (IsRelayed(frame.type)) return Relay(client, std::move(frame));
  if (frame.type == wire::NamClientHello::kType) return Greet(client, frame);
  const Service::Peer peer{{Caller::Via::kSocket, connection, client.who.user.uid}, client.who.pid};
  Service::Answer answer = service_.Serve(peer, frame);
  if (answer.file) hooks_.on_file();
  Send(client, answer.frame, std::move(answer.file));
  if (!client.channel->closed() && client.stream->waiting() > kMaxUnreadFiles) {
    client.full = true;
    client.channel->PauseReading();
  }
  if (client.channel->queued() > kMaxUnread) {
    client.channel->Close();
    // Not from inside the channel that calls.
    loop_.Post([this, connection] {
      OnClosed(connection, Error(Code::kResourceExhausted, "{} bytes of answers are not read", kMaxUnread));
    });
  }
}

void LocalClients::OnFilePassed(std::uint64_t connection) {
  const auto it = clients_.find(connection);
  if (it == clients_.end() || !it->second.full || it->second.channel->closed()) return;
  Client& client = it->second;
  if (client.stream->waiting() > kMaxUnreadFiles / 2) return;
  client.full = false;
  if (!client.paused) client.channel->ResumeReading();
}

void LocalClients::Greet(Client& client, const wire::Frame& frame) {
  const auto hello = wire::Decode<wire::NamClientHello>(frame.payload);
  const Service::Peer peer{{Caller::Via::kSocket, client.connection, client.who.user.uid}, client.who.pid};
  if (!hello.ok() || hello->client.value == 0 || !service_.ClientHello(peer, hello->client)) return;
  client.client = hello->client;
  hooks_.on_hello(hello->client);
}

void LocalClients::OnEnded(std::uint64_t connection, std::uint64_t attachment) {
  const auto it = clients_.find(connection);
  if (it == clients_.end()) return;
  const wire::NamEnded ended{attachment};
  Send(it->second, {wire::NamEnded::kType, 0, 0, wire::Encode(ended)}, UniqueFd());
}

void LocalClients::Relay(Client& client, wire::Frame frame) {
  const std::uint64_t id = frame.id;
  wire::NamFromLocal message;
  message.connection = client.connection;
  message.uid = client.who.user.uid;
  message.gid = client.who.user.gid;
  message.groups = client.groups;
  message.pid = static_cast<std::uint32_t>(client.who.pid);
  message.type = frame.type;
  message.id = id;
  message.payload = std::move(frame.payload);
  if (const Status status = hooks_.relay(message); !status.ok()) return Fail(client, id, status);
  client.relayed = true;
  client.asked.insert(id);
  if (!hooks_.relay_full()) return;
  client.paused = true;
  client.channel->PauseReading();
}

void LocalClients::Send(Client& client, const wire::Frame& frame, UniqueFd file) {
  std::string packed = wire::Pack(frame.type, frame.id, frame.payload);
  if (client.channel->closed()) return;
  if (file) client.stream->Pass(client.sent, std::move(file));
  client.sent += packed.size();
  client.channel->Send(std::move(packed));
}

void LocalClients::Fail(Client& client, std::uint64_t id, const Status& status) {
  const wire::NamFailed failed{static_cast<std::uint8_t>(status.code()), status.message()};
  Send(client, {wire::NamFailed::kType, 0, id, wire::Encode(failed)}, UniqueFd());
}

void LocalClients::OnReply(wire::NamToLocal reply) {
  const auto it = clients_.find(reply.connection);
  if (it == clients_.end()) return;
  auto& asked = it->second.asked;
  const auto at = asked.find(reply.id);
  if (at == asked.end()) return;  // answered with a failure when its session ended
  asked.erase(at);
  Send(it->second, {reply.type, 0, reply.id, std::move(reply.payload)}, UniqueFd());
}

void LocalClients::OnSessionLost() {
  const Status lost(Code::kUnavailable, "controller was lost while it worked on the request; try again");
  for (auto& [connection, client] : clients_)
    for (const std::uint64_t id : std::exchange(client.asked, {})) Fail(client, id, lost);
  OnRelayDrained();
}

void LocalClients::OnRelayDrained() {
  for (auto& [connection, client] : clients_) {
    if (!client.paused) continue;
    client.paused = false;
    if (!client.full) client.channel->ResumeReading();
  }
}

std::vector<std::uint64_t> LocalClients::Connections() const {
  std::vector<std::uint64_t> open;
  open.reserve(clients_.size());
  for (const auto& [connection, client] : clients_) open.push_back(connection);
  return open;
}

}  // namespace msa::namd
