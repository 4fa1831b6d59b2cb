#pragma once
// Messages between the job daemons of a job whose tasks Slurm starts (0x057x, see peer_messages.h and
// msa/base/slurm_messages.h).

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"

namespace msa::jobd {

// What tasks run, and where: most of a step run the same.
struct SlurmCommand {
  std::vector<std::string> argv;
  std::string cwd;
  friend bool operator==(const SlurmCommand&, const SlurmCommand&) = default;
  template <class A>
  void Fields(A& a) {
    a(argv, cwd);
  }
};

struct SlurmTask {
  Rank rank;
  std::uint32_t command = 0;  // index into SlurmJoined::commands
  JobId component_job;
  std::uint32_t cpus_per_task = 1;
  std::int32_t pid = 0;
  std::uint32_t local_id = 0;
  bool het = false;  // by its environment the job is a heterogeneous one
  template <class A>
  void Fields(A& a) {
    a(rank, command, component_job, cpus_per_task, pid, local_id, het);
  }
};

// Member -> head: these tasks of a step have come and wait for their world.
struct SlurmJoined {
  static constexpr std::uint16_t kType = 0x0570;
  StepId step;
  std::uint32_t ntasks = 0;  // of the whole step
  std::vector<SlurmCommand> commands;
  std::vector<SlurmTask> tasks;
  std::string on_child_failure;  // of the step, as in SlurmTaskJoin
  template <class A>
  void Fields(A& a) {
    a(step, ntasks, commands, tasks, on_child_failure);
  }
};

// Member -> head: tasks of the step that waited here, or that were to come, will not. Nothing to a world that
// is complete: it hears of each task's end.
struct SlurmLost {
  static constexpr std::uint16_t kType = 0x0571;
  StepId step;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(step, reason);
  }
};

// Head -> member: these of its waiting tasks have no world to go to.
struct SlurmRefused {
  static constexpr std::uint16_t kType = 0x0572;
  StepId step;
  std::vector<Rank> ranks;  // empty: all of the step
  std::string text;         // for the user
  template <class A>
  void Fields(A& a) {
    a(step, ranks, text);
  }
};

// Head -> member of rank 0: a line for the user, to that task's standard error.
struct SlurmNotice {
  static constexpr std::uint16_t kType = 0x0573;
  std::string nspace;
  std::string text;
  template <class A>
  void Fields(A& a) {
    a(nspace, text);
  }
};

// Head -> member of a step's rank 0, whose streams the children's become: run srun for a part of a spawned
// namespace, the tasks of one job of Slurm. A part has one srun.
struct SrunStart {
  static constexpr std::uint16_t kType = 0x0574;
  std::string nspace;  // the children's: their ticket
  std::uint32_t part = 0;
  JobId job;                       // of Slurm; of a heterogeneous one the leader
  std::vector<std::string> hosts;  // of each task, in order of their numbers
  std::string streams;             // namespace whose rank 0 hears and shows what they write
  std::int32_t het_group = -1;     // which component of it; -1: it is none
  template <class A>
  void Fields(A& a) {
    a(nspace, part, job, hosts, streams, het_group);
  }
};

// Member -> head: it has ended. Nothing to children that run: each one's end is told.
struct SrunEnded {
  static constexpr std::uint16_t kType = 0x0575;
  std::string nspace;
  std::uint32_t part = 0;
  std::int32_t exit_code = 0;
  std::string text;  // the last of its standard error
  template <class A>
  void Fields(A& a) {
    a(nspace, part, exit_code, text);
  }
};

// Head -> members: tasks of the part that did not come will not; its srun is to end.
struct SlurmNoMore {
  static constexpr std::uint16_t kType = 0x0576;
  std::string nspace;
  std::uint32_t part = 0;
  std::string text;
  template <class A>
  void Fields(A& a) {
    a(nspace, part, text);
  }
};

}  // namespace msa::jobd
