#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

struct SpawnSpec {
  std::vector<std::string> argv;  // argv[0] is the path of the executable
  std::vector<std::string> env;   // "K=V", the whole environment
  std::string cwd = "/";
  int in = -1;  // become descriptors 0, 1, 2 of the child; -1: /dev/null
  int out = -1;
  int err = -1;
  bool new_session = true;  // away from the caller's terminal and its Ctrl-C
};

// A process that was started or found. The descriptor becomes readable when the process has ended.
struct ProcessHandle {
  pid_t pid = 0;
  UniqueFd pidfd;
};

// posix_spawn with default signal dispositions and an empty signal mask; no other descriptor of the caller
// that is close-on-exec reaches the child. kNotFound, kPermissionDenied: the executable, named;
// kResourceExhausted: no process or memory. Any thread.
Result<ProcessHandle> Spawn(const SpawnSpec& spec);

// Watches a process that need not be a child. kNotFound: no such process.
Result<ProcessHandle> OpenProcess(pid_t pid);

// SIGTERM and the like by pidfd: never hits a process that reused the number. False: it has ended.
bool SignalProcess(const ProcessHandle& process, int signal);

// Collects the child if it has ended; nullopt while it runs or if it is not ours. The value is wait(2)'s
// status.
std::optional<int> ReapChild(pid_t pid);

// "exited with code 3", "was killed by signal 9 (Killed)", "... (Segmentation fault, core dumped)".
std::string DescribeWaitStatus(int wait_status);

// Makes the calling process the one to which descendants are reparented (PR_SET_CHILD_SUBREAPER). kInternal:
// refused.
Status BecomeSubreaper();

// The environment of this process, "K=V".
std::vector<std::string> CurrentEnvironment();

// Path of the running executable's directory, without trailing '/'.
Result<std::string> ExecutableDirectory();

}  // namespace msa
