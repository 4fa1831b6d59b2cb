#include "job_socket.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/nam_region.h"
#include "msa/launch/child_protocol.h"

namespace msa::jobd {
namespace {

// Connections at once: a task opens one; the largest nodes run a few hundred tasks.
constexpr std::size_t kMaxClients = 4096;
// A task has nothing longer to say, but for requests about memory.
constexpr std::size_t kMaxPayload = 64 * 1024;
constexpr std::size_t kMaxQueued = std::size_t{32} << 20;  // of answers to a client that does not read

constexpr int kNamRequests = 0x07;  // high byte of their types
// What a task of Slurm hands over: its standard output and error.
constexpr std::size_t kJoinDescriptors = 2;
static_assert(wire::kMaxSlurmPayload <= wire::kMaxNamPayload);
static_assert(kChildAskType == wire::TaskExecAsk::kType && kChildExecType == wire::TaskExec::kType &&
              kChildProtocolVersion == wire::kProtocolVersion && kChildHeaderBytes == wire::kHeaderBytes);

bool MayBeLong(std::uint16_t type) { return type >> 8 == kNamRequests || type == wire::SlurmTaskJoin::kType; }

}  // namespace

JobSocket::JobSocket(EventLoop& loop, std::string path, Handlers handlers,
                     std::function<void(const std::string&)> log)
    : loop_(loop), path_(std::move(path)), handlers_(std::move(handlers)), log_(std::move(log)) {}

JobSocket::~JobSocket() {
  if (listener_) loop_.Unwatch(listener_.get());
  ::unlink(path_.c_str());
}

Result<std::unique_ptr<JobSocket>> JobSocket::Create(EventLoop& loop, const std::string& path,
                                                     Handlers handlers,
                                                     std::function<void(const std::string&)> log) {
  std::unique_ptr<JobSocket> socket(new JobSocket(loop, path, std::move(handlers), std::move(log)));
  MSA_ASSIGN_OR_RETURN(socket->listener_, ListenUnix(path, 0600));
  MSA_RETURN_IF_ERROR(
      loop.Watch(socket->listener_.get(), EPOLLIN, [raw = socket.get()](std::uint32_t) { raw->Accept(); }));
  return socket;
}

void JobSocket::Accept() {
  for (int round = 0; round < 64; ++round) {
    auto fd = AcceptUnix(listener_.get());
    if (!fd.ok()) return log_(fd.status().WithContext("job socket").message());
    if (!*fd) return;
    const Status admitted = Admit(std::move(*fd));
    if (!admitted.ok()) log_("task connection refused: " + admitted.message());
  }
}

Status JobSocket::Admit(UniqueFd fd) {
  if (clients_.size() >= kMaxClients)
    return Error(Code::kResourceExhausted, "{} tasks are connected, the limit", clients_.size());
  MSA_ASSIGN_OR_RETURN(const PeerCredentials who, GetPeerCredentials(fd.get()));
  if (who.user.uid != ::geteuid())
    return Error(Code::kPermissionDenied, "process {} of uid {} connected; only uid {} may", who.pid,
                 who.user.uid, ::geteuid());
  const std::uint64_t client = next_client_++;
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this, client](wire::Frame frame) { OnFrame(client, frame); };
  handlers.on_closed = [this, client](const Status&) { Drop(client); };
  auto stream = std::make_unique<DescriptorStream>(std::move(fd), kJoinDescriptors);
  DescriptorStream* const raw = stream.get();
  MSA_ASSIGN_OR_RETURN(auto channel, FrameChannel::Create(loop_, std::move(stream), std::move(handlers),
                                                          wire::kMaxNamPayload));
  Client& added = clients_[client];
  added.channel = std::move(channel);
  added.stream = raw;
  added.pid = who.pid;
  return Status::Ok();
}

Result<wire::TaskWelcome> JobSocket::Greet(const wire::Frame& frame, Client& client) {
  if (frame.type != wire::TaskHello::kType)
    return Error(Code::kFailedPrecondition, "message of type {:#06x} before the hello", frame.type);
  MSA_ASSIGN_OR_RETURN(const wire::TaskHello hello, wire::Decode<wire::TaskHello>(frame.payload));
  if (hello.version != wire::kProtocolVersion)
    return Error(Code::kFailedPrecondition, "protocol version {}, this side speaks {}", hello.version,
                 wire::kProtocolVersion);
  MSA_ASSIGN_OR_RETURN(wire::TaskWelcome welcome, handlers_.greet(hello));
  client.task = hello;
  (void)client.stream->TakeReceived();  // nothing was asked for
  return welcome;
}

Status JobSocket::Exec(const wire::Frame& frame, Client& client) {
  MSA_ASSIGN_OR_RETURN(const wire::TaskExecAsk ask, wire::Decode<wire::TaskExecAsk>(frame.payload));
  if (ask.version != wire::kProtocolVersion || !handlers_.on_exec)
    return Error(Code::kFailedPrecondition, "msa-exec of protocol version {}, this side speaks {}",
                 ask.version, wire::kProtocolVersion);
  MSA_ASSIGN_OR_RETURN(const wire::TaskExec exec, handlers_.on_exec(client.pid));
  client.channel->SendMessage(exec, frame.id);
  return Status::Ok();
}

Status JobSocket::Join(std::uint64_t id, const wire::Frame& frame, Client& client) {
  if (!handlers_.on_join) return Error(Code::kFailedPrecondition, "Slurm starts no tasks of this job");
  if (client.joined) return Error(Code::kFailedPrecondition, "a second join on one connection");
  SlurmJoin join;
  MSA_ASSIGN_OR_RETURN(join.join, wire::Decode<wire::SlurmTaskJoin>(frame.payload));
  join.pid = client.pid;
  join.descriptors = client.stream->TakeReceived();
  client.joined = true;
  handlers_.on_join(id, std::move(join));
  return Status::Ok();
}

void JobSocket::OnFrame(std::uint64_t id, const wire::Frame& frame) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  if (frame.payload.size() > kMaxPayload && !MayBeLong(frame.type)) {
    log_(fmt::format("a task's message of type {:#06x} has {} bytes, the limit is {}; connection closed",
                     frame.type, frame.payload.size(), kMaxPayload));
    return Drop(id);
  }
  if (it->second.task) {
    if (handlers_.on_frame) handlers_.on_frame(id, *it->second.task, frame);
    return;
  }
  if (frame.type == wire::SlurmTaskJoin::kType || it->second.joined) {
    const Status joined = frame.type == wire::SlurmTaskJoin::kType
                              ? Join(id, frame, it->second)
                              : Error(Code::kFailedPrecondition, "a message after the join");
    if (joined.ok()) return;
    log_("task's join refused: " + joined.message());
    return Drop(id);
  }
  if (frame.type == wire::TaskExecAsk::kType) {
    const Status told = Exec(frame, it->second);
    if (told.ok()) return;
    log_("msa-exec refused: " + told.message());
    return Drop(id);
  }
  const auto answer = Greet(frame, it->second);
  if (answer.ok()) return it->second.channel->SendMessage(*answer, frame.id);
  log_("task's message refused: " + answer.status().message());
  Drop(id);
}

void JobSocket::Answer(std::uint64_t id, const wire::SlurmTaskReady& ready, UniqueFd descriptor) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  if (descriptor) it->second.stream->Pass(std::move(descriptor));
  it->second.channel->SendMessage(ready);
}

void JobSocket::SendFrame(std::uint64_t id, const wire::Frame& frame) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  it->second.channel->Send(wire::Pack(frame.type, frame.id, frame.payload));
  if (it->second.channel->queued() <= kMaxQueued) return;
  log_("a task does not read its answers; connection closed");
  Drop(id);
}

void JobSocket::Drop(std::uint64_t id) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  it->second.channel->Close();
  const bool greeted = it->second.task.has_value() || it->second.joined;
  // Destroyed from the loop: its own handler may be running.
  loop_.Post([dead = std::shared_ptr<FrameChannel>(std::move(it->second.channel))] {});
  clients_.erase(it);
  if (greeted && handlers_.on_closed) handlers_.on_closed(id);
}

}  // namespace msa::jobd
