#pragma once
// libslurm. Calls block: about a millisecond when slurmctld is idle, up to MessageTimeout (10 s) when it
// hangs; when it is down they say so at once. One thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "msa/base/slurm_agent_messages.h"
#include "msa/base/status.h"

#include "calls.h"

namespace msa::companion {

// Reads slurm.conf, once in a process; libslurm ends the process with a text on stderr where there is none.
void StartSlurm();
// "22.05.8"
std::string SlurmVersion();

// What slurmctld has to say to the owner of a job, on a thread of libslurm's own: `notice` is called there
// and must only post. It also answers slurmctld's pings, without which InactiveLimit would end the job.
class JobListener {
 public:
  static JobListener& Start(std::function<void()> notice);
  std::uint16_t port() const { return port_; }  // 0: it could not be started; jobs are looked at instead

 private:
  std::uint16_t port_ = 0;
};

class SlurmCalls {
 public:
  explicit SlurmCalls(std::uint16_t notice_port) : notice_port_(notice_port) {}
  Reply Do(const Call& call);

 private:
  Reply Do(const AskParent& call);
  Reply Do(const AskPartition& call);
  Reply Do(const AskMine& call);
  Reply Do(const Submit& call);
  Reply Do(const Look& call);
  Reply Do(const Cancel& call);
  Reply Do(const Keep& call);
  Reply Do(const SetEnd& call);
  std::uint16_t notice_port_;
};

// ------------------------------------------------------------------------------------------- for the agent

// All jobs, if any has changed since `since`, which becomes the time of the list. kUnavailable, kInternal.
struct JobList {
  bool changed = false;
  std::vector<wire::SlurmJob> jobs;
};
Result<JobList> LoadJobs(std::int64_t& since);
// kNotFound, kUnavailable, kInternal.
Result<wire::SlurmJobAnswer> LoadJob(JobId job);
// The same; ok if it was over already. A signal other than SIGKILL goes to the job's steps.
Status SignalJob(JobId job, std::int32_t signal);
Status SignalStep(JobId job, StepId step, std::int32_t signal);
// ClusterName as slurmctld has it.
Result<std::string> LoadClusterName();

}  // namespace msa::companion
