#include "slurm_errors.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

namespace msa::companion {
namespace {

bool IsUnavailable(int number) {
  switch (number) {
    case SLURM_COMMUNICATIONS_CONNECTION_ERROR:
    case SLURM_COMMUNICATIONS_SEND_ERROR:
    case SLURM_COMMUNICATIONS_RECEIVE_ERROR:
    case SLURM_COMMUNICATIONS_SHUTDOWN_ERROR:
    case SLURM_COMMUNICATIONS_MISSING_SOCKET_ERROR:
    case SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR:
    case SLURMCTLD_COMMUNICATIONS_SEND_ERROR:
    case SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR:
    case SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR:
    case SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT:
    case SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT:
    case ESLURM_IN_STANDBY_MODE:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EAGAIN:
    case EINTR:
      return true;
    default:
      return false;
  }
}

Code CodeOf(int number) {
  if (IsUnavailable(number)) return Code::kUnavailable;
  switch (number) {
    case ESLURM_INVALID_PARTITION_NAME:
    case ESLURM_INVALID_NODE_NAME:
    case ESLURM_INVALID_JOB_ID:
    case ESLURM_ALREADY_DONE:
    case ESLURM_REQUESTED_NODES_NOT_IN_PARTITION:
      return Code::kNotFound;
    case ESLURM_ACCESS_DENIED:
    case ESLURM_JOB_MISSING_REQUIRED_PARTITION_GROUP:
    case ESLURM_USER_ID_MISSING:
    case ESLURM_INVALID_ACCOUNT:
    case ESLURM_INVALID_QOS:
    case ESLURM_RESERVATION_ACCESS:
    case ESLURM_INVALID_WCKEY:
    case ESLURM_PARTITION_NOT_AVAIL:
      return Code::kPermissionDenied;
    case ESLURM_TOO_MANY_REQUESTED_CPUS:
    case ESLURM_INVALID_NODE_COUNT:
    case ESLURM_INVALID_CPU_COUNT:
    case ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE:
    case ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE:
    case ESLURM_INVALID_TIME_LIMIT:
      return Code::kOutOfRange;
    case ESLURM_ACCOUNTING_POLICY:
    case ESLURM_QOS_THRES:
    case ESLURM_SUBMISSIONS_DISABLED:
    case EAGAIN:
      return Code::kResourceExhausted;
    case ESLURM_INVALID_FEATURE:
      return Code::kInvalidArgument;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Status SlurmError(int number, const std::string& what, const std::string& said) {
  const char* text = slurm_strerror(number);
  std::string message = text != nullptr ? text : "unknown error";
  if (!said.empty()) message += " (" + said + ")";
  return {CodeOf(number), what.empty() ? message : what + ": " + message};
}

}  // namespace msa::companion
