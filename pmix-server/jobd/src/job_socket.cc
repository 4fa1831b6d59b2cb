#include "job_socket.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "msa/adapters/process/unix_socket.h"

namespace msa::jobd {
namespace {

// Connections at once: a task opens one; the largest nodes run a few hundred tasks.
constexpr std::size_t kMaxClients = 4096;
// A task has nothing longer to say.
constexpr std::size_t kMaxPayload = 64 * 1024;

}  // namespace

JobSocket::JobSocket(EventLoop& loop, std::string path, Greeter greeter,
                     std::function<void(const std::string&)> log)
    : loop_(loop), path_(std::move(path)), greeter_(std::move(greeter)), log_(std::move(log)) {}

JobSocket::~JobSocket() {
  if (listener_) loop_.Unwatch(listener_.get());
  ::unlink(path_.c_str());
}

Result<std::unique_ptr<JobSocket>> JobSocket::Create(EventLoop& loop, const std::string& path,
                                                     Greeter greeter,
                                                     std::function<void(const std::string&)> log) {
  std::unique_ptr<JobSocket> socket(new JobSocket(loop, path, std::move(greeter), std::move(log)));
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
  MSA_ASSIGN_OR_RETURN(auto channel, FrameChannel::Create(loop_, MakePlainStream(std::move(fd)),
                                                          std::move(handlers), kMaxPayload));
  clients_.emplace(client, std::move(channel));
  return Status::Ok();
}

void JobSocket::OnFrame(std::uint64_t client, const wire::Frame& frame) {
  const auto answer = [&]() -> Result<wire::TaskWelcome> {
    if (frame.type != wire::TaskHello::kType)
      return Error(Code::kUnimplemented, "message of type {:#06x} is not known to this version", frame.type);
    MSA_ASSIGN_OR_RETURN(const wire::TaskHello hello, wire::Decode<wire::TaskHello>(frame.payload));
    if (hello.version != wire::kProtocolVersion)
      return Error(Code::kFailedPrecondition, "protocol version {}, this side speaks {}", hello.version,
                   wire::kProtocolVersion);
    return greeter_(hello);
  }();
  if (answer.ok()) return clients_.at(client)->SendMessage(*answer, frame.id);
  log_("task's message refused: " + answer.status().message());
  Drop(client);
}

void JobSocket::Drop(std::uint64_t client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  it->second->Close();
  // Destroyed from the loop: its own handler may be running.
  loop_.Post([dead = std::shared_ptr<FrameChannel>(std::move(it->second))] {});
  clients_.erase(it);
}

}  // namespace msa::jobd
