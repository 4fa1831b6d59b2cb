#include "errors.h"

#include <string>

namespace msa::nam {
namespace {

thread_local std::string last_text;

int ErrorOf(Code code, Precondition precondition) {
  switch (code) {
    case Code::kOk:
      return MSA_NAM_OK;
    case Code::kInvalidArgument:
    case Code::kUnimplemented:
      return MSA_NAM_ERR_ARG;
    case Code::kNotFound:
      return MSA_NAM_ERR_NOT_FOUND;
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return MSA_NAM_ERR_DENIED;
    case Code::kOutOfRange:
      return MSA_NAM_ERR_RANGE;
    case Code::kResourceExhausted:
      return MSA_NAM_ERR_NO_SPACE;
    case Code::kAlreadyExists:
      return MSA_NAM_ERR_EXISTS;
    case Code::kFailedPrecondition:
      return precondition == Precondition::kBusy ? MSA_NAM_ERR_BUSY : MSA_NAM_ERR_STALE;
    case Code::kDeadlineExceeded:
      return MSA_NAM_ERR_TIMEOUT;
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kCancelled:
      return MSA_NAM_ERR_UNAVAILABLE;
    case Code::kUnknown:
      return MSA_NAM_ERR_UNKNOWN;
    case Code::kDataLoss:
      return MSA_NAM_ERR_LOST;
    case Code::kInternal:
      break;
  }
  return MSA_NAM_ERR_INTERNAL;
}

}  // namespace

int Finish(const char* what, const Status& status, Precondition precondition) noexcept {
  if (status.ok()) return MSA_NAM_OK;
  last_text = fmt::format("{}: {}", what, status.message());
  return ErrorOf(status.code(), precondition);
}

Status UnknownOutcome(const Status& cause) {
  return Error(
      Code::kUnknown,
      "it may or may not have been carried out ({}); read the element and decide whether to do it again",
      cause.message());
}

}  // namespace msa::nam

extern "C" {

const char* msa_nam_error_name(int error) {
  static constexpr const char* kNames[] = {
      "MSA_NAM_OK",          "MSA_NAM_ERR_ARG",         "MSA_NAM_ERR_NOT_FOUND", "MSA_NAM_ERR_DENIED",
      "MSA_NAM_ERR_RANGE",   "MSA_NAM_ERR_NO_SPACE",    "MSA_NAM_ERR_EXISTS",    "MSA_NAM_ERR_BUSY",
      "MSA_NAM_ERR_TIMEOUT", "MSA_NAM_ERR_UNAVAILABLE", "MSA_NAM_ERR_STALE",     "MSA_NAM_ERR_UNKNOWN",
      "MSA_NAM_ERR_LOST",    "MSA_NAM_ERR_INTERNAL"};
  return error >= 0 && error <= MSA_NAM_ERR_INTERNAL ? kNames[error] : "unknown error of msa_nam";
}

const char* msa_nam_error_text(void) { return msa::nam::last_text.c_str(); }
}
