#pragma once
// The messages between a task and its own job daemon over MSA_JOB_SOCKET (local wire format,
// msa/base/wire.h). Clients are libmsampi and libmsanam. Type numbers are never reused; fields are only
// appended.

#include <cstdint>
#include <string>
#include <vector>

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

// One command of MPI_Comm_spawn or MPI_Comm_spawn_multiple, with the info keys of msa_mpi.h as the program
// wrote them: the job daemon parses them, so that one parser judges what all programs write. Empty: key not
// given.
struct SpawnCommand {
  std::string program;               // the command; with '/' as it is, else looked up in `path`, then in PATH
  std::uint32_t maxprocs = 0;        // the default of `soft`; at least 1
  std::string arch;                  // a module's name, kind or id
  std::string soft;                  // MPI's set of triplets "a", "a:b", "a:b:c", separated by commas
  std::string host;                  // "NODE[:SLOTS],..."
  std::string wdir;                  // relative ones count from SpawnAsk::cwd
  std::string path;                  // directories separated by ':' or blanks
  std::string file;                  // "KEY = VALUE" lines of the keys here; a key of the info wins
  std::string msa_nodes;             // how many nodes the processes spread over
  std::string msa_ppn;               // most processes a node
  std::string msa_wait;              // "90", "5m", "1h30m", "10ms"; how long to wait for nodes
  std::string msa_time;              // likewise; how long the children may run; 0 or empty: as the job
  std::string msa_nam;               // "64M": network attached memory beyond the job's allotment
  std::vector<std::string> unknown;  // further keys that begin with "msa_": named in a warning, once a job
  template <class A>
  void Fields(A& a) {
    a(program, maxprocs, arch, soft, host, wdir, path, file, msa_nodes, msa_ppn, msa_wait, msa_time, msa_nam,
      unknown);
  }
};

// Task -> job daemon, before PMPI_Comm_spawn[_multiple]: may these start, and how many of each? Asked by the
// root alone. Answered by one SpawnVerdict with the frame's id, at once or when nodes come within `msa_wait`
// (the longest of the commands). The connection's end withdraws what is not answered or not used.
struct SpawnAsk {
  static constexpr std::uint16_t kType = 0x0603;
  std::vector<SpawnCommand> commands;
  std::string cwd;          // of the asking task
  std::string search_path;  // its PATH
  template <class A>
  void Fields(A& a) {
    a(commands, cwd, search_path);
  }
};

enum class SpawnRefusal : std::uint8_t {
  kNone = 0,
  kSpawn = 1,      // MPI_ERR_SPAWN: no such program, not enough nodes, the job ends, ...
  kInfoValue = 2,  // MPI_ERR_INFO_VALUE: a key's value is malformed or names what does not exist
};

struct SpawnVerdict {
  static constexpr std::uint16_t kType = 0x0604;
  SpawnRefusal refusal = SpawnRefusal::kNone;
  std::string reason;  // of a refusal, for people: what is free, what was asked, when it could start
  // The permission: bound to the job, the asking process and these commands, used once, gone after 60 s.
  // Given to the launcher as "MSA_SPAWN_TICKET=<ticket>" in the info key `env` of the first command. Empty:
  // refused, or every count is 0 (an empty remote group: nothing is spawned).
  std::string ticket;
  std::string nspace;                 // the children's namespace
  std::vector<std::uint32_t> counts;  // of each command, to be passed as maxprocs; commands of 0 are left out
  std::vector<std::string> programs;  // of each command: to be passed as the command
  std::vector<std::string> wdirs;     // of each command: to be passed as `wdir`; empty: not given
  template <class A>
  void Fields(A& a) {
    a(refusal, reason, ticket, nspace, counts, programs, wdirs);
  }
};

// Task -> job daemon: the ticket will not be used. Not answered.
struct SpawnWithdraw {
  static constexpr std::uint16_t kType = 0x0605;
  std::string ticket;
  template <class A>
  void Fields(A& a) {
    a(ticket);
  }
};

// Task -> job daemon, by rank 0 of either side after MPI_Comm_disconnect of an intercommunicator between two
// namespaces: from now on the death of one does not concern the other. Not answered.
struct Disconnected {
  static constexpr std::uint16_t kType = 0x0606;
  std::string nspace;  // the other side's
  template <class A>
  void Fields(A& a) {
    a(nspace);
  }
};

// A spawned child that Slurm has started (msa-exec) -> its job daemon, as the first message of a connection:
// what am I to become? Answered by one TaskExec.
struct TaskExecAsk {
  static constexpr std::uint16_t kType = 0x0607;
  std::uint32_t version = kProtocolVersion;
  template <class A>
  void Fields(A& a) {
    a(version);
  }
};

struct TaskExec {
  static constexpr std::uint16_t kType = 0x0608;
  std::string program;  // absolute; empty: none, see `reason`
  std::string cwd;      // absolute
  std::vector<std::string> argv;
  std::vector<std::string> env;  // all of it, but for SLURM_*, which it has
  std::int32_t exit_code = 0;    // without a program
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(program, cwd, argv, env, exit_code, reason);
  }
};

}  // namespace msa::wire
