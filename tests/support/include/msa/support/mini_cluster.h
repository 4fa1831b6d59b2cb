#pragma once
// A real local system in a directory of its own: `msactl cluster up` with the binaries of this build.

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "msa/base/status.h"
#include "msa/support/json.h"
#include "msa/support/process.h"
#include "msa/support/scratch_directory.h"

namespace msa::support {

// Where the binaries and the test programs of this build lie; MSA_TEST_BIN_DIR names other binaries,
// installed ones say.
std::string BinaryPath(const std::string& name);   // "msactl", "msa-controllerd", ...
std::string ProgramPath(const std::string& name);  // "mpi_hello", "task", ... of tests/support/programs

std::string ReadFile(const std::string& path);  // empty if it is not there

struct MiniClusterOptions {
  std::string topology = {};                    // text of the topology file; empty: msactl's default system
  std::vector<std::string> up = {};             // further options of `cluster up`
  std::map<std::string, std::string> env = {};  // environment of `cluster up`, and so of all daemons
  uid_t uid = 0;                                // other than 0: run everything as this user (root only)
  bool without_home = false;                    // no HOME; else one other than 0 has one of his own
  std::string bin = {};                         // directory of the binaries; empty: this build's
  // Every user may use it (root only): its directory has mode 0755, and the binaries are copied to where all
  // users reach them.
  bool all_users = false;
  std::map<int, unsigned long> up_limits = {};  // RLIMIT_x: soft and hard limit of all daemons
};

struct ProcessEntry {
  pid_t pid = 0;
  std::string command;  // arguments joined by blanks
};

class MiniCluster {
 public:
  // The system is up: every node has reported. The error holds what `cluster up` said.
  static Result<std::unique_ptr<MiniCluster>> Start(MiniClusterOptions options = {});
  // Takes the system down and the directory away.
  ~MiniCluster();
  MiniCluster(const MiniCluster&) = delete;
  MiniCluster& operator=(const MiniCluster&) = delete;

  const std::string& dir() const noexcept { return dir_; }
  const ScratchDirectory& scratch() const noexcept { return scratch_; }

  // "msactl ARGUMENTS" with MSA_DIR set to this system.
  Command Msactl(std::vector<std::string> arguments) const;
  // The same as this user, who needs no account, in a directory of his own: scratch()/<uid>. Of a system for
  // all users.
  Command MsactlAs(uid_t uid, std::vector<std::string> arguments) const;
  // A copy of a program of tests/support/programs that all users may run. Of a system for all users.
  std::string ProgramForAll(const std::string& name) const;
  Outcome Run(std::vector<std::string> arguments, Millis timeout = Millis(120'000)) const;
  // `-f json` of a listing, parsed; null if it failed.
  Json Query(std::vector<std::string> arguments) const;

  // Daemons by what they are called in the logs: "controller", "supervisor", "noded-cn0", "namd-nam0"; 0 if
  // it does not run.
  pid_t Daemon(const std::string& name) const;
  // Processes whose arguments or environment name this system's directory: daemons, tasks and what they
  // started.
  std::vector<ProcessEntry> Processes() const;
  // SIGKILL, then waits until the supervisor has started another one. kDeadlineExceeded after 60 s.
  Status KillDaemon(const std::string& name) const;
  // All job daemons that run a job or wait in the pool, of one node ("" of all).
  std::vector<pid_t> JobDaemons(const std::string& node = "") const;

  // `cluster down`. The directory stays for Leftovers().
  Outcome Down() const;
  // What should not be there when no job runs: tasks, run directories of jobs, shared memory; after Down()
  // any process and any socket. Empty: clean.
  std::vector<std::string> Leftovers() const;

  // Slots in use, of all nodes.
  int SlotsUsed() const;

 private:
  explicit MiniCluster(MiniClusterOptions options);
  std::vector<std::string> LeftoverFiles(bool down) const;

  MiniClusterOptions options_;
  ScratchDirectory scratch_;
  std::string dir_;
  std::string shm_;  // this system's directory in /dev/shm, learnt from a job daemon's arguments
};

}  // namespace msa::support
