#pragma once

#include <sys/types.h>

#include <string>

#include "msa/base/unique_fd.h"
#include "msa/launch/task.h"

#include "program.h"

namespace msa::launch {

struct SpawnedTask {
  pid_t pid = 0;
  UniqueFd pidfd;  // empty: the kernel has none (before 5.3, or refused); poll with waitid
  // Our ends of the pipes, non-blocking; empty where the task got a descriptor of the specification.
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

struct SpawnContext {
  std::string trampoline;
  std::string program;      // as FindProgram found it
  std::uint32_t index = 0;  // returned in ExecFailure
  int status_fd = -1;       // write end of the status pipe
};

// Starts the trampoline as leader of a process group of its own. The descriptors of `spec` stay open here.
// The error is for the user, exit_code 125.
struct SpawnOutcome {
  SpawnedTask task;
  ProgramError error;  // empty message: started
};
SpawnOutcome SpawnTask(const TaskSpec& spec, const SpawnContext& context);

}  // namespace msa::launch
