#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"

#include "client/endpoint.h"
#include "client/types.h"

namespace msa::cli {

// What the command of an allocation is told of it: "MSA_JOB_ID=12", MSA_DIR, MSA_NODELIST and the lines of
// JobVariableLines. Pure but for the working directory.
std::vector<std::string> AllocVariables(const JobInfo& job, const JobSpec& spec, const Endpoint& endpoint);

// The command that runs beside an allocation, in this process's group and on its terminal. One thread, the
// loop's.
class AllocCommand {
 public:
  // `argv` is looked up in PATH; empty: $SHELL. Its environment is this process's, with `variables` for those
  // of an outer job. `on_end` once, with the code as a shell has it. Errors as Spawn.
  static Result<std::unique_ptr<AllocCommand>> Start(EventLoop& loop, std::vector<std::string> argv,
                                                     const std::vector<std::string>& variables,
                                                     std::function<void(int exit_code)> on_end);
  ~AllocCommand();
  AllocCommand(const AllocCommand&) = delete;
  AllocCommand& operator=(const AllocCommand&) = delete;
  void Signal(int signal) { SignalProcess(process_, signal); }

 private:
  AllocCommand(EventLoop& loop, ProcessHandle process) : loop_(loop), process_(std::move(process)) {}
  EventLoop& loop_;
  ProcessHandle process_;
};

}  // namespace msa::cli
