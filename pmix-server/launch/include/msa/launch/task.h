#pragma once
// Starting and watching the tasks of a job on one node. A task is posix_spawn'ed as the trampoline
// `msa-exec`, which sets process group, binding, limits, working directory and signals, and execs the
// program.

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::launch {

// Under which number a task finds TaskSpec::channel. Above 9, which a shell script may open by number, and
// above 10 to 19, which shells take for themselves.
inline constexpr int kChannelFd = 20;

struct TaskSpec {
  std::string nspace;
  Rank rank;
  std::vector<std::string> argv;  // argv[0] without '/' is looked up in PATH of `env`
  std::vector<std::string> env;   // whole environment, "K=V"
  std::string cwd;
  std::vector<std::uint16_t> cpus;  // CPUs as the kernel numbers them, to bind to; empty: not bound
  // Where the streams go. A valid descriptor is handed to the task; otherwise a pipe is made for out and err,
  // and for `in` a pipe if want_stdin, else /dev/null.
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
  UniqueFd channel;  // valid: the task and all it starts inherit it as kChannelFd
  bool want_stdin = false;
  std::uint32_t component = 0;  // for TaskEnd
  // Those of the submission; what is not named is as the launcher's own. Values above its hard limits are
  // lowered to them.
  std::vector<wire::ResourceLimit> limits;
  // Of a task that comes by itself, as a spawned child under Slurm does: by which it is known.
  std::string ticket;
  std::uint32_t part = 0;
  std::uint32_t number = 0;
};

// How a task that did not start failed.
struct StartFailure {
  Rank rank;
  std::string message;  // "program './a' not found in /home/u (component 0); ..." ready for the user
  std::int32_t exit_code =
      127;  // 127 not found, 126 not executable or a bad working directory, 125 other (as a shell and env(1))
};

struct TaskExit {
  std::string nspace;
  wire::TaskEnd end;
  Millis lifetime{0};
  // It mapped an MPI library and initialised it, as far as could be seen, yet never reached our PMIx server.
  bool looks_like_singleton = false;
  std::string mpi_library;  // "libmpi.so.40", "libmpich.so.12", empty: none seen
};

struct LauncherOptions {
  std::string trampoline;  // path of msa-exec
  std::string node;        // for messages and TaskEnd
  Millis kill_wait{5000};  // how long KillAll keeps looking for leftovers
};

// The tasks of namespaces on this node, whoever makes their processes. One thread, the loop's.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  using Started = std::function<void(std::vector<pid_t> started, std::vector<StartFailure> failures)>;

  // Starts tasks; `on_started` once, when every one has exec'ed or failed to. Tasks that did start are
  // running then, whatever happened to the others. No output or exit of these tasks is delivered before it.
  virtual void Start(std::vector<TaskSpec> tasks, Started on_started) = 0;

  // The rank has reached the PMIx server (ends the search for singletons).
  virtual void MarkConnected(const std::string& nspace, Rank rank) = 0;

  // To every task of `nspace` (empty: of all). Returns how many got it.
  virtual int Signal(const std::string& nspace, int signal) = 0;

  // SIGTERM, as Signal, because of a failure with this exit code, 1 to 255. Tasks whose codes somebody else
  // counts leave with it if they can.
  virtual int AskToLeave(const std::string& nspace, std::int32_t) { return Signal(nspace, SIGTERM); }

  // Stops (or resumes) reading the pipes of the namespace's tasks: back-pressure towards the programs. Exits
  // whose output is not delivered wait too. Also of tasks that start later, until it is resumed.
  virtual void PauseOutput(const std::string& nspace) = 0;
  virtual void ResumeOutput(const std::string& nspace) = 0;

  // Appends to the stdin pipe of a task; `eof` closes it after these bytes. Unknown task: ignored.
  virtual void WriteStdin(const std::string& nspace, Rank rank, std::string data, bool eof) = 0;

  // SIGKILL to every task of the namespace (empty: of all). `on_done` with the number of survivors.
  virtual void KillAll(const std::string& nspace, std::function<void(int survivors)> on_done) = 0;

  // What a process that the task spawns inherits of its environment, besides what its namespace's has.
  virtual std::vector<std::string> Inherited(const std::string& nspace, Rank rank) const = 0;

  // Every task of the namespace has ended, on all nodes, and nothing of it will be said any more.
  virtual void Forget(const std::string& nspace) = 0;
};

// The tasks of one job daemon. One thread, the loop's. At most one per process: it makes the process a child
// subreaper, so that everything a task leaves behind comes back to it, collects every child of the process
// that ends, and ignores SIGPIPE. Handlers run from the loop only, never inside a call of a member; they may
// call any member.
//
// Each task leads its own process group in the session of the launcher: a signal to the group reaches all
// that the task starts, unless that takes a group of its own. It dies with the launcher's thread
// (PR_SET_PDEATHSIG).
//
// A singleton is a task that never reached our server while it, or a process below it, had initialised MPI by
// itself. The maps of the processes are looked at after 10, 20, 40, ... ms, every 500 ms later (2 s after 10
// s), until MarkConnected; evidence is, for Open MPI, the mapped component mca_ess_singleton as the only one
// of its framework or a child `orted --singleton-died-pipe`, for MPICH the UCX transports (libuct_*) that
// MPI_Init loads in a process to which nobody gave PMI_FD or PMI_PORT. A program that links MPI and does not
// initialise it shows none of these. Programs linked to MPICH, whose MPI_Init takes 20 ms, are looked at
// every 4 ms in their first 250 ms.
class TaskLauncher final : public TaskRunner {
 public:
  struct Handlers {
    // Bytes of a task's stdout or stderr pipe, in order; at most wire::kStdioChunkBytes.
    std::function<void(const std::string& nspace, Rank rank, wire::Stream stream, std::string data)>
        on_output;
    // Exactly once for each started task, after its pipes have been read to their end (or, if a grandchild
    // keeps them open, 200 ms after the task's end) and delivered.
    std::function<void(const TaskExit&)> on_exit;
    // The task took or refused bytes of stdin: `taken` bytes since the last call; closed: it will take no
    // more.
    std::function<void(const std::string& nspace, Rank rank, std::size_t taken, bool closed)> on_stdin;
  };
  // kInternal: no trampoline there, prctl refused.
  static Result<std::unique_ptr<TaskLauncher>> Create(EventLoop& loop, LauncherOptions options,
                                                      Handlers handlers);
  // SIGKILL to the tasks' groups; no handler runs any more.
  ~TaskLauncher() override;

  void Start(std::vector<TaskSpec> tasks, Started on_started) override;
  void MarkConnected(const std::string& nspace, Rank rank) override;
  // To the process group of each task.
  int Signal(const std::string& nspace, int signal) override;
  void PauseOutput(const std::string& nspace) override;
  void ResumeOutput(const std::string& nspace) override;
  void WriteStdin(const std::string& nspace, Rank rank, std::string data, bool eof) override;
  std::vector<std::string> Inherited(const std::string&, Rank) const override { return {}; }
  void Forget(const std::string&) override {}

  std::size_t running()
      const noexcept;  // tasks whose start is under way or done and whose on_exit is to come
  std::size_t running(const std::string& nspace) const;

  // To the tasks and to every process that descends from one (daemonised, own session, own group: all that
  // were reparented to this subreaper), until none is left or kill_wait has passed. The survivors are
  // processes in uninterruptible sleep. For one namespace its leftovers included.
  void KillAll(const std::string& nspace, std::function<void(int survivors)> on_done) override;

 private:
  class Impl;
  explicit TaskLauncher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa::launch
