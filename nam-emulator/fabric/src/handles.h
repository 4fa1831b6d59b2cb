#pragma once
// Owners of libfabric's objects: each handle has one, made in the line that checks the return code.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdint>
#include <memory>
#include <string>

#include "msa/base/status.h"

namespace msa::nam {

struct FidCloser {
  template <class F>
  void operator()(F* object) const noexcept {
    fi_close(&object->fid);
  }
};
template <class F>
using FidPtr = std::unique_ptr<F, FidCloser>;

struct InfoFreer {
  void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, InfoFreer>;

// The status of a libfabric call that returned `code` (negative) while it did `what`: kUnavailable for a
// lost or refused connection, kPermissionDenied and kOutOfRange where the provider says so,
// kResourceExhausted for a lack of memory or descriptors, else kInternal.
Status FabricError(std::int64_t code, std::string_view what);

// 64 random bits from the kernel.
std::uint64_t RandomBits();

}  // namespace msa::nam
