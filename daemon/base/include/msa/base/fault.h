#pragma once
// Fault points: named places in production code at which a test may let a process die, fail or wait. Off
// unless the environment names them when the process starts: MSA_FAULT="controller.commit.before=kill@3,..."
// with the actions kill (SIGKILL to itself), fail (the point reports an error) and sleep:MS, and @N for the
// N-th pass.

#include <string_view>

#include "msa/base/status.h"

namespace msa {

namespace fault_internal {
extern const bool g_enabled;  // read once from the environment before main
Status Hit(std::string_view point);
}  // namespace fault_internal

// ok() unless the environment names `point`. Costs one branch when off. Any thread.
inline Status Fault(std::string_view point) {
  if (!fault_internal::g_enabled) [[likely]]
    return Status::Ok();
  return fault_internal::Hit(point);
}

}  // namespace msa
