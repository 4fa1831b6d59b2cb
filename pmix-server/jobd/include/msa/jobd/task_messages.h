#pragma once
// The messages between a task and its own job daemon over MSA_JOB_SOCKET (local wire format,
// msa/base/wire.h). Clients are libmsampi and libmsanam. Type numbers are never reused; fields are only
// appended.

#include <cstdint>
#include <string>

#include "msa/base/ids.h"
#include "msa/base/messages.h"

namespace msa::wire {

// First message of a task's connection.
struct TaskHello {
  static constexpr std::uint16_t kType = 0x0601;
  std::uint32_t version = kProtocolVersion;
  std::string nspace;  // PMIX_NAMESPACE; empty: the caller does not know it
  Rank rank;
  template <class A>
  void Fields(A& a) {
    a(version, nspace, rank);
  }
};

// The answer. A hello that is refused (another user, no job here) gets its connection closed.
struct TaskWelcome {
  static constexpr std::uint16_t kType = 0x0602;
  std::uint32_t version = kProtocolVersion;
  JobId job;
  StepId step;
  std::string node;
  std::uint32_t world_size = 0;  // of the hello's namespace; of the step if it named none
  template <class A>
  void Fields(A& a) {
    a(version, job, step, node, world_size);
  }
};

}  // namespace msa::wire
