#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>

#include "client/channel_internal.h"

namespace msa::cli {
namespace {
// Lists of 10,000 jobs; a JobSpec with a full environment and arguments is below 3 MiB.
constexpr int kMaxMessageBytes = 64 << 20;
}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(UniqueFd socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
}

Status ToStatus(const grpc::Status& status, std::string_view peer) {
  if (status.ok()) return Status::Ok();
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(Code::kUnauthenticated);
  auto own = known ? static_cast<Code>(code) : Code::kUnknown;
  std::string message = status.error_message();
  if (own == Code::kUnavailable && !message.starts_with("the "))
    message = fmt::format("{} went away: {}", peer, message);
  // Our own deadline, not a wait that the peer says is over.
  if (own == Code::kDeadlineExceeded && message == "Deadline Exceeded") {
    own = Code::kUnavailable;
    message = fmt::format("{} does not answer; see 'msactl cluster status' and 'msactl doctor'", peer);
  }
  if (message.empty()) message = fmt::format("{} answered {} without a text", peer, CodeName(own));
  return Status(own, std::move(message));
}

}  // namespace msa::cli
