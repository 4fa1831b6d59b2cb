#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <optional>
#include <thread>

#include "msa/adapters/enrol/enrol.h"
#include "msa/adapters/munge/munge.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/adapters/tls/tcp_socket.h"
#include "msa/base/clock.h"

#include "payload.h"

namespace msa {
namespace {

constexpr Millis kAcceptPause{100};
constexpr Millis kDrain{1000};

class Server final : public EnrolServer {
 public:
  Server(Options options, const CertificateAuthority& authority, Handlers handlers,
         std::unique_ptr<EventLoop> loop)
      : options_(std::move(options)),
        authority_(authority),
        handlers_(std::move(handlers)),
        loop_(std::move(loop)) {}

  ~Server() override {
    loop_->Stop();
    if (thread_.joinable()) thread_.join();
    clients_.clear();
  }

  Status Run() {
    MSA_RETURN_IF_ERROR(loop_->Watch(options_.listener.get(), EPOLLIN, [this](std::uint32_t) { Accept(); }));
    thread_ = std::thread([this] { (void)loop_->Run(); });
    return Status::Ok();
  }

 private:
  struct Client {
    std::unique_ptr<FrameChannel> channel;
    std::string from;
    TimerId timer{};
    bool answered = false;
  };

  void Accept() {
    while (!paused_) {
      if (clients_.size() >= options_.max_connections) return Pause();
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      UniqueFd socket(::accept4(options_.listener.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EAGAIN) return;
        if (errno == ECONNABORTED || errno == EINTR) continue;
        return Pause();
      }
      Take(std::move(socket), from, size);
    }
  }

  void Pause() {
    paused_ = true;
    loop_->Modify(options_.listener.get(), 0);
    loop_->After(kAcceptPause, [this] {
      paused_ = false;
      loop_->Modify(options_.listener.get(), EPOLLIN);
    });
  }

  void Take(UniqueFd socket, const sockaddr_storage& from, socklen_t size) {
    const std::uint64_t id = next_++;
    Client& client = clients_[id];
    client.from = NumberOf(reinterpret_cast<const sockaddr*>(&from), size);
    auto channel = FrameChannel::Create(*loop_, MakePlainStream(std::move(socket)),
                                        {.on_frame = [this, id](wire::Frame frame) { OnFrame(id, frame); },
                                         .on_closed = [this, id](const Status& why) { OnClosed(id, why); }},
                                        wire::kMaxEnrolPayload);
    if (!channel.ok()) {
      clients_.erase(id);
      return;
    }
    client.channel = *std::move(channel);
    client.timer = loop_->After(options_.patience, [this, id] {
      Refuse(clients_.at(id).from,
             Error(Code::kDeadlineExceeded, "no request within {} ms", options_.patience.count()));
      clients_.erase(id);
    });
  }

  void OnClosed(std::uint64_t id, const Status& why) {
    const auto it = clients_.find(id);
    if (it == clients_.end()) return;
    loop_->Cancel(it->second.timer);
    if (!it->second.answered) Refuse(it->second.from, why);
    // The channel is still in its handler's caller.
    loop_->Post([this, id] { clients_.erase(id); });
  }

  void OnFrame(std::uint64_t id, const wire::Frame& frame) {
    Client& client = clients_.at(id);
    if (client.answered) return;
    client.answered = true;
    loop_->Cancel(client.timer);
    PeerIdentity who{.system = options_.system};
    const Result<wire::EnrolRequest> request = Authenticate(frame, who);
    if (!request.ok()) {
      // Not a word to whom nobody vouches for.
      Refuse(client.from, request.status());
      client.channel->Close();
      loop_->Post([this, id] { clients_.erase(id); });
      return;
    }
    const Result<wire::Enrolled> answer = Answer(client.from, *request, who);
    if (answer.ok()) {
      client.channel->SendMessage(*answer);
      if (handlers_.on_enrolled) handlers_.on_enrolled(client.from, who);
    } else {
      client.channel->SendMessage(
          wire::EnrolRefused{static_cast<std::uint8_t>(answer.status().code()), answer.status().message()});
      Refuse(client.from, answer.status().WithContext(fmt::format("uid {} as {}", who.user.uid, ToUri(who))));
    }
    client.channel->CloseWhenDrained(kDrain);
    client.timer = loop_->After(kDrain, [this, id] { clients_.erase(id); });
  }

  Result<wire::EnrolRequest> Authenticate(const wire::Frame& frame, PeerIdentity& who) const {
    if (frame.type != wire::EnrolRequest::kType)
      return Error(Code::kUnauthenticated, "message of type {:#06x} instead of an enrolment", frame.type);
    MSA_ASSIGN_OR_RETURN(auto request, wire::Decode<wire::EnrolRequest>(frame.payload));
    MSA_ASSIGN_OR_RETURN(const MungeCredential proof,
                         MungeDecode(request.credential, {.socket = options_.munge_socket}));
    if (proof.payload != enrol::RequestText(request))
      return Error(Code::kUnauthenticated, "munge credential of uid {} was made for another request",
                   proof.user.uid);
    who.user = proof.user;
    return request;
  }

  Result<wire::Enrolled> Answer(const std::string& from, const wire::EnrolRequest& request,
                                PeerIdentity& who) const {
    if (request.version != wire::kEnrolVersion)
      return Error(Code::kFailedPrecondition,
                   "enrolment version {}, this controller has {}; use one msa throughout", request.version,
                   wire::kEnrolVersion);
    if (request.role != static_cast<std::uint8_t>(PeerRole::kNode) &&
        request.role != static_cast<std::uint8_t>(PeerRole::kUser))
      return Error(Code::kInvalidArgument, "enrolment of role {}; expected 1 (node) or 2 (user)",
                   request.role);
    who.role = static_cast<PeerRole>(request.role);
    who.node = request.node;
    MSA_RETURN_IF_ERROR(handlers_.allow(from, who));
    wire::Enrolled answer;
    MSA_ASSIGN_OR_RETURN(answer.certificate, authority_.Issue(request.request, who, Now(), options_.life));
    answer.authority = authority_.certificate();
    MSA_ASSIGN_OR_RETURN(answer.credential,
                         MungeEncode(enrol::AnswerText(request.request, answer),
                                     {.socket = options_.munge_socket, .only_uid = who.user.uid}));
    return answer;
  }

  void Refuse(const std::string& from, const Status& why) {
    if (handlers_.on_refused) handlers_.on_refused(from, why);
  }

  Options options_;
  const CertificateAuthority& authority_;
  const Handlers handlers_;
  std::unique_ptr<EventLoop> loop_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t next_ = 1;
  bool paused_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<EnrolServer>> EnrolServer::Start(Options options,
                                                        const CertificateAuthority& authority,
                                                        Handlers handlers) {
  MSA_ASSIGN_OR_RETURN(auto loop, EventLoop::Create());
  auto server = std::make_unique<Server>(std::move(options), authority, std::move(handlers), std::move(loop));
  MSA_RETURN_IF_ERROR(server->Run());
  return std::unique_ptr<EnrolServer>(std::move(server));
}

}  // namespace msa
