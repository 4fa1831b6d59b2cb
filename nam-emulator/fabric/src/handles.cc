#include "handles.h"

#include <sys/random.h>

namespace msa::nam {
namespace {

Code CodeOf(int error) {
  switch (error) {
    case FI_EACCES:
    case FI_EPERM:
    case FI_EKEYREJECTED:
    case FI_ENOKEY:
      return Code::kPermissionDenied;
    case FI_ETOOSMALL:
    case FI_ETRUNC:
    case ERANGE:
      return Code::kOutOfRange;
    case FI_ENOMEM:
    case FI_EMFILE:
    case FI_ENOSPC:
    case FI_ENORX:
      return Code::kResourceExhausted;
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_ECANCELED:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETUNREACH:
    case FI_ENETDOWN:
    case FI_ETIMEDOUT:
    case EPIPE:
    case FI_EIO:
    case FI_ENODATA:
    case FI_EADDRNOTAVAIL:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Status FabricError(std::int64_t code, std::string_view what) {
  const int error = static_cast<int>(code < 0 ? -code : code);
  return Error(CodeOf(error), "{}: {} (libfabric error {})", what, fi_strerror(error), error);
}

std::uint64_t RandomBits() {
  std::uint64_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
  }
  return bits;
}

}  // namespace msa::nam
