#pragma once
// The exit codes of msa's programs, msactl and daemons alike: one table, as their manual pages have it.

#include "msa/base/status.h"

namespace msa {

// 0 ok, 1 failed, 2 usage, 3 not found, 4 denied, 5 more than there is or than is allowed, 6 wait timed out,
// 7 conflict, 8 daemon unreachable.
constexpr int ExitCode(Code code) noexcept {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kInvalidArgument:
      return 2;
    case Code::kNotFound:
      return 3;
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return 4;
    case Code::kOutOfRange:
    case Code::kResourceExhausted:
      return 5;
    case Code::kDeadlineExceeded:
      return 6;
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
    case Code::kAborted:
      return 7;
    case Code::kUnavailable:
      return 8;
    default:
      return 1;
  }
}

}  // namespace msa
