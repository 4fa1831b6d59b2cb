#pragma once
// Slurm's jobs, as squeue lists them, turned into jobs as msactl shows them: a heterogeneous job is one, and
// a companion is shown with the job that it belongs to. Pure; any thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

#include "client/types.h"

namespace msa::cli {

// The names of squeue's fields (-O), in the order in which SlurmRow is read.
std::span<const std::string_view> SlurmJobFields();

// A record of squeue's: a job, a component of a heterogeneous one, a task of an array, or its tasks that
// wait.
struct SlurmRow {
  std::uint64_t job = 0;
  std::uint64_t leader = 0;  // of a heterogeneous job, else `job`
  std::uint32_t offset = 0;
  bool het = false;
  std::uint64_t array_job = 0;
  std::string array_tasks;  // "3", "4-9"; empty: no array
  std::string state;
  std::string user;
  std::uint32_t uid = 0;
  std::string partition;
  std::string account;
  std::string qos;
  std::string reason;
  std::int64_t submit_ms = 0;
  std::int64_t start_ms = 0;  // of one that waits: when Slurm expects it to start
  std::int64_t end_ms = 0;
  std::uint32_t time_limit_s = 0;  // 0: none
  std::uint32_t nodes = 0;
  std::uint32_t cpus = 0;
  std::uint32_t tasks = 0;
  std::vector<std::string> node_list;
  std::uint64_t priority = 0;
  std::string dependency;
  int wait_status = 0;
  bool batch = false;
  std::string head;
  std::string out;
  std::string err;
  std::string directory;
  std::string licenses;
  std::string name;
  std::string comment;
  std::string command;

  std::uint64_t companion_of = 0;  // by name and comment; 0: none
  std::uint64_t request = 0;
};

// kDataLoss: a record without a job's id.
Result<std::vector<SlurmRow>> ReadSlurmRows(const std::vector<std::vector<std::string>>& records);

// Sets companion_of and request of one whose name and comment, "msa:4711.1" and "msa parent=4711 restart=0
// request=1", say the same.
void MarkCompanion(SlurmRow& row);

enum class Companions {
  kFolded,  // told by the job that they belong to
  kRows,    // also jobs of their own, behind it
};
// By id. Components are in the order of their job.
std::vector<JobInfo> FoldJobs(const std::vector<SlurmRow>& rows, Companions companions);

// What a user may write for a job of Slurm: "4711", "4711_3", "4711+1", and, as 'msactl job list' shows it,
// "4711_[4-9%2]".
struct SlurmJobName {
  std::uint64_t job = 0;
  std::string array_task;    // "3"; empty: not said
  std::string list;          // "[4-9%2]": the tasks of an array that wait; empty: not said
  bool component = false;    // "+1": the whole job is meant all the same, unless tasks are signalled
  std::uint32_t offset = 0;  // that 1
};
Result<SlurmJobName> ParseSlurmJob(std::string_view text);
// The jobs that the name means: that one, or the tasks of an array.
std::vector<JobInfo> JobsNamed(const std::vector<JobInfo>& jobs, const SlurmJobName& name);
// Slurm's numbers of what the name means of `job` itself: all its components, or the one that "4711+1" or a
// number of its own names.
std::vector<std::uint64_t> PartsNamed(const JobInfo& job, const SlurmJobName& name);

// What scancel calls it: the label, but of an array's tasks that wait all, without steps and without how many
// may run at once, neither of which it knows.
std::string ScancelName(const JobInfo& job);

// Leaves of those that have ended the `most` newest, by end and id.
void LimitEnded(std::vector<JobInfo>& jobs, std::size_t most);

// JobState of Slurm's word; kRunning for one that is new.
JobState StateOf(std::string_view word);
// As msactl tells the end of a task: 128+N of a signal.
int ExitCodeOfWait(int wait_status);

}  // namespace msa::cli
