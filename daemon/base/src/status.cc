#include "msa/base/status.h"

#include <cerrno>
#include <cstring>

namespace msa {

std::string_view CodeName(Code code) noexcept {
  static constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<std::size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN";
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, fmt::format("{}: {}", context, message_));
}

std::string Status::ToString() const {
  return ok() ? std::string("OK") : fmt::format("{}: {}", CodeName(code_), message_);
}

Status ErrnoError(int error_number, std::string_view what) {
  const auto code = [&] {
    switch (error_number) {
      case ENOENT:
        return Code::kNotFound;
      case EACCES:
      case EPERM:
        return Code::kPermissionDenied;
      case EEXIST:
        return Code::kAlreadyExists;
      case ENOSPC:
      case EDQUOT:
      case EMFILE:
      case ENFILE:
      case ENOMEM:
        return Code::kResourceExhausted;
      case ECONNREFUSED:
      case ECONNRESET:
      case EPIPE:
        return Code::kUnavailable;
      case ETIMEDOUT:
        return Code::kDeadlineExceeded;
      default:
        return Code::kInternal;
    }
  }();
  char buffer[128];
  return Status(code, fmt::format("{}: {}", what, strerror_r(error_number, buffer, sizeof buffer)));
}

}  // namespace msa
