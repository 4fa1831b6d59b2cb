#include <string>

#include "msa/adapters/grpc/status_internal.h"

namespace msa {
namespace {
constexpr std::size_t kMaxMessage = 2048;
}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message = status.message();
  if (message.size() > kMaxMessage) {
    message.resize(kMaxMessage - 3);
    // Not in the middle of a UTF-8 character.
    while (!message.empty() && (static_cast<unsigned char>(message.back()) & 0xc0) == 0x80)
      message.pop_back();
    if (!message.empty() && static_cast<unsigned char>(message.back()) >= 0xc0) message.pop_back();
    message += "...";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return Status::Ok();
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(Code::kUnauthenticated);
  return Status(known ? static_cast<Code>(code) : Code::kUnknown, status.error_message());
}

}  // namespace msa
