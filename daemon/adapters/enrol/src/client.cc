#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "msa/adapters/enrol/enrol.h"
#include "msa/adapters/munge/munge.h"
#include "msa/adapters/tls/tcp_socket.h"

#include "payload.h"

namespace msa {
namespace {

Status WaitFor(int fd, short events, SteadyTime deadline, const std::string& address) {
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(deadline - SteadyNow()).count();
    if (left <= 0)
      return Error(Code::kUnavailable, "controller at '{}' does not answer the enrolment in time", address);
    pollfd polled{fd, events, 0};
    const int rc = ::poll(&polled, 1, static_cast<int>(std::min<long long>(left, 60'000)));
    if (rc > 0) return Status::Ok();
    if (rc < 0 && errno != EINTR) return ErrnoError(errno, "poll");
  }
}

Status SendAll(int fd, std::string_view bytes, SteadyTime deadline, const std::string& address) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      MSA_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, deadline, address));
    } else if (errno != EINTR) {
      return Error(Code::kUnavailable, "controller at '{}' closed the connection", address);
    }
  }
  return Status::Ok();
}

Result<wire::Frame> Receive(int fd, SteadyTime deadline, const std::string& address) {
  wire::FrameReader reader(wire::kMaxEnrolPayload);
  for (;;) {
    MSA_ASSIGN_OR_RETURN(auto frame, reader.Next());
    if (frame) return *std::move(frame);
    char buffer[4096];
    const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count > 0) {
      reader.Append({buffer, static_cast<std::size_t>(count)});
    } else if (count < 0 && errno == EAGAIN) {
      MSA_RETURN_IF_ERROR(WaitFor(fd, POLLIN, deadline, address));
    } else if (count == 0 || errno != EINTR) {
      return Error(Code::kUnauthenticated,
                   "controller at '{}' does not accept this host's munge credential; have both hosts the "
                   "same munge key and "
                   "time? its log says more",
                   address);
    }
  }
}

// munge proves that the answer comes from the controller's user, and for this request.
Result<Credentials> Check(const EnrolOptions& options, const CertificateRequest& request,
                          const wire::Frame& frame) {
  if (frame.type == wire::EnrolRefused::kType) {
    MSA_ASSIGN_OR_RETURN(const auto refused, wire::Decode<wire::EnrolRefused>(frame.payload));
    return Status(static_cast<Code>(refused.code), refused.message);
  }
  if (frame.type != wire::Enrolled::kType)
    return Error(Code::kUnauthenticated,
                 "'{}' answers with a message of type {:#06x}; is this a controller's port?", options.address,
                 frame.type);
  MSA_ASSIGN_OR_RETURN(const auto answer, wire::Decode<wire::Enrolled>(frame.payload));
  MSA_ASSIGN_OR_RETURN(const MungeCredential proof,
                       MungeDecode(answer.credential, {.socket = options.munge_socket}));
  if (proof.payload != enrol::AnswerText(request.request, answer))
    return Error(Code::kUnauthenticated, "the answer of '{}' was made for another request", options.address);
  if (proof.user.uid != options.controller_uid)
    return Error(Code::kUnauthenticated, "'{}' is run by uid {}, the controller by uid {}", options.address,
                 proof.user.uid, options.controller_uid);
  return Credentials{.key = request.key, .certificate = answer.certificate, .authority = answer.authority};
}

}  // namespace

Result<Credentials> Enrol(const EnrolOptions& options) {
  const SteadyTime deadline = SteadyNow() + options.patience;
  MSA_ASSIGN_OR_RETURN(const CertificateRequest request, MakeCertificateRequest());
  wire::EnrolRequest message{
      .role = static_cast<std::uint8_t>(options.role), .node = options.node, .request = request.request};
  MSA_ASSIGN_OR_RETURN(message.credential,
                       MungeEncode(enrol::RequestText(message), {.socket = options.munge_socket}));
  MSA_ASSIGN_OR_RETURN(const UniqueFd socket, ConnectTcp(options.address, deadline));
  MSA_RETURN_IF_ERROR(SendAll(socket.get(), wire::Pack(message), deadline, options.address));
  MSA_ASSIGN_OR_RETURN(const wire::Frame frame, Receive(socket.get(), deadline, options.address));
  return Check(options, request, frame);
}

}  // namespace msa
