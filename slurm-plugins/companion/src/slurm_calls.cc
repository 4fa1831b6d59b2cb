#include "slurm_calls.h"

#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "said_on_stderr.h"
#include "slurm_errors.h"
#include "slurm_records.h"

namespace msa::companion {
namespace {

// libslurm knocks for nine seconds where nobody listens; a ping of each slurmctld says so at once.
Status SomebodyListens() {
  constexpr int kMostSlurmctlds = 8;
  int error = SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR;
  for (int i = 0; i < kMostSlurmctlds; ++i) {
    errno = 0;
    if (slurm_ping(i) == SLURM_SUCCESS) return Status::Ok();
    if (i == 0 && errno != 0) error = errno;
  }
  return SlurmError(error, "").code() == Code::kUnavailable
             ? SlurmError(error, "")
             : SlurmError(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, "");
}

Result<JobsPtr> Load(JobId job) {
  job_info_msg_t* jobs = nullptr;
  if (slurm_load_job(&jobs, static_cast<std::uint32_t>(job.value), SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
    return SlurmError(errno, fmt::format("job {}", job));
  return JobsPtr(jobs);
}

// The record itself: of a leader all components come.
const slurm_job_info_t* Find(const job_info_msg_t& jobs, JobId job) {
  for (std::uint32_t i = 0; i < jobs.record_count; ++i)
    if (jobs.job_array[i].job_id == job.value) return &jobs.job_array[i];
  return nullptr;
}

char* Writable(const std::string& text) { return text.empty() ? nullptr : const_cast<char*>(text.c_str()); }

Status Update(job_desc_msg_t& update, const std::string& what) {
  SaidOnStderr said;
  if (slurm_update_job(&update) == SLURM_SUCCESS) return Status::Ok();
  const int error = errno;
  return SlurmError(error, what, said.Text());
}

void Fill(job_desc_msg_t& job, const Submit& call) {
  job.account = Writable(call.account);
  job.qos = Writable(call.qos);
  job.partition = Writable(call.partition);
  job.features = Writable(call.features);
  job.user_id = getuid();
  job.group_id = getgid();
  // A node that fails takes the processes on it, not the others.
  job.kill_on_node_fail = 0;
  job.requeue = 0;
  job.min_nodes = call.size.min_nodes;
  if (call.size.max_nodes > 0) job.max_nodes = call.size.max_nodes;
  if (call.size.tasks > 0) job.num_tasks = job.min_cpus = call.size.tasks;
  if (call.size.tasks_per_node > 0)
    job.ntasks_per_node = static_cast<std::uint16_t>(call.size.tasks_per_node);
  job.threads_per_core = 1;  // a slot is a core
  if (call.size.whole_nodes) job.shared = JOB_SHARED_NONE;
  if (call.time_limit_min > 0) job.time_limit = call.time_limit_min;
}

}  // namespace

void StartSlurm() { slurm_init(nullptr); }

std::string SlurmVersion() {
  return fmt::format("{}.{:02}.{}", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
                     SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER), SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
}

namespace {
std::function<void()>& Notice() {
  static std::function<void()> notice;
  return notice;
}
}  // namespace

JobListener& JobListener::Start(std::function<void()> notice) {
  static JobListener listener;
  Notice() = std::move(notice);
  static constexpr slurm_allocation_callbacks_t kCallbacks{
      .job_complete = [](srun_job_complete_msg_t*) { Notice()(); },
      .timeout = [](srun_timeout_msg_t*) {},
      .user_msg = [](srun_user_msg_t*) {},
      .node_fail = [](srun_node_fail_msg_t*) { Notice()(); },
      .job_suspend = [](suspend_msg_t*) {},
  };
  if (slurm_allocation_msg_thr_create(&listener.port_, &kCallbacks) == nullptr) listener.port_ = 0;
  return listener;
}

Reply SlurmCalls::Do(const Call& call) {
  if (const Status status = SomebodyListens(); !status.ok()) return status;
  return std::visit([this](const auto& one) { return Do(one); }, call);
}

Reply SlurmCalls::Do(const AskParent& call) {
  MSA_ASSIGN_OR_RETURN(const JobsPtr jobs, Load(call.job));
  const slurm_job_info_t* job = Find(*jobs, call.job);
  if (job == nullptr) return Error(Code::kNotFound, "job {}: slurmctld does not know it", call.job);
  return Answer(ParentOf(*job));
}

Reply SlurmCalls::Do(const AskPartition& call) {
  node_info_msg_t* raw = nullptr;
  if (slurm_load_node(0, &raw, SHOW_ALL) != SLURM_SUCCESS) return SlurmError(errno, "load Slurm's nodes");
  const NodesPtr nodes(raw);
  partition_info_msg_t* raw_partitions = nullptr;
  if (slurm_load_partitions(0, &raw_partitions, SHOW_ALL) != SLURM_SUCCESS)
    return SlurmError(errno, "load Slurm's partitions");
  const PartitionsPtr partitions(raw_partitions);
  return Answer(PartitionFacts{.nodes = NodesOf(*nodes, *partitions, call.partition)});
}

Reply SlurmCalls::Do(const AskMine& call) {
  job_info_msg_t* raw = nullptr;
  if (slurm_load_job_user(&raw, getuid(), SHOW_ALL) != SLURM_SUCCESS) {
    const int error = errno;
    // A user without jobs.
    if (error == ESLURM_INVALID_JOB_ID) return Answer(JobFacts{});
    return SlurmError(error, "load this user's jobs");
  }
  const JobsPtr jobs(raw);
  for (std::uint32_t i = 0; i < jobs->record_count; ++i) {
    const slurm_job_info_t& job = jobs->job_array[i];
    if (!IsOver(job) && ParseMark(Text(job.name), Text(job.comment)) == call.mark)
      return Answer(FactsOf(job));
  }
  return Answer(JobFacts{});
}

Reply SlurmCalls::Do(const Submit& call) {
  const std::string name = JobName(call.mark);
  const std::string comment = JobComment(call.mark);
  const std::string exclude = fmt::format("{}", fmt::join(call.exclude, ","));
  job_desc_msg_t job;
  slurm_init_job_desc_msg(&job);
  Fill(job, call);
  job.name = Writable(name);
  job.comment = Writable(comment);
  job.exc_nodes = Writable(exclude);
  // Slurm wants one, though no script runs in it.
  std::string directory = "/";
  job.work_dir = directory.data();
  job.other_port = notice_port_;
  resource_allocation_response_msg_t* response = nullptr;
  SaidOnStderr said;
  if (slurm_allocate_resources(&job, &response) != SLURM_SUCCESS || response == nullptr) {
    const int error = errno;
    return SlurmError(error, "", said.Text());
  }
  JobFacts facts{.job = JobId(response->job_id), .pending = response->node_cnt == 0};
  slurm_free_resource_allocation_response_msg(response);
  return Answer(std::move(facts));
}

Reply SlurmCalls::Do(const Look& call) {
  MSA_ASSIGN_OR_RETURN(const JobsPtr jobs, Load(call.job));
  const slurm_job_info_t* job = Find(*jobs, call.job);
  if (job == nullptr) return Error(Code::kNotFound, "job {}: slurmctld does not know it", call.job);
  JobFacts facts = FactsOf(*job);
  if (!facts.pending && !facts.over) {
    MSA_ASSIGN_OR_RETURN(facts.nodes, CoresOf(*job));
  }
  return Answer(std::move(facts));
}

Reply SlurmCalls::Do(const Cancel& call) {
  if (slurm_kill_job(static_cast<std::uint32_t>(call.job.value), SIGKILL, 0) != SLURM_SUCCESS)
    return SlurmError(errno, fmt::format("cancel job {}", call.job));
  return Answer();
}

Reply SlurmCalls::Do(const Keep& call) {
  job_desc_msg_t update;
  slurm_init_job_desc_msg(&update);
  const std::string nodes = fmt::format("{}", fmt::join(call.nodes, ","));
  update.job_id = static_cast<std::uint32_t>(call.job.value);
  update.req_nodes = Writable(nodes);
  MSA_RETURN_IF_ERROR(Update(update, fmt::format("shrink job {} to {}", call.job, nodes)));
  return Answer();
}

Reply SlurmCalls::Do(const SetEnd& call) {
  job_desc_msg_t update;
  slurm_init_job_desc_msg(&update);
  update.job_id = static_cast<std::uint32_t>(call.job.value);
  update.end_time = static_cast<time_t>(call.end);
  MSA_RETURN_IF_ERROR(Update(update, fmt::format("set the end of job {}", call.job)));
  return Answer();
}

Result<JobList> LoadJobs(std::int64_t& since) {
  MSA_RETURN_IF_ERROR(SomebodyListens());
  job_info_msg_t* raw = nullptr;
  if (slurm_load_jobs(static_cast<time_t>(since), &raw, SHOW_ALL) != SLURM_SUCCESS) {
    const int error = errno;
    if (error == SLURM_NO_CHANGE_IN_DATA) return JobList{};
    return SlurmError(error, "load Slurm's jobs");
  }
  const JobsPtr jobs(raw);
  JobList list{.changed = true, .jobs = {}};
  list.jobs.reserve(jobs->record_count);
  for (std::uint32_t i = 0; i < jobs->record_count; ++i) list.jobs.push_back(RecordOf(jobs->job_array[i]));
  since = jobs->last_update;
  return list;
}

Result<wire::SlurmJobAnswer> LoadJob(JobId job) {
  MSA_RETURN_IF_ERROR(SomebodyListens());
  MSA_ASSIGN_OR_RETURN(const JobsPtr jobs, Load(job));
  const slurm_job_info_t* record = Find(*jobs, job);
  if (record == nullptr) return Error(Code::kNotFound, "job {}: slurmctld does not know it", job);
  wire::SlurmJobAnswer answer;
  answer.job = RecordOf(*record);
  if (!answer.job.over && answer.job.state != "PENDING") {
    MSA_ASSIGN_OR_RETURN(answer.cores, CoresOf(*record));
  }
  return answer;
}

Status SignalJob(JobId job, std::int32_t signal) {
  MSA_RETURN_IF_ERROR(SomebodyListens());
  if (slurm_kill_job(static_cast<std::uint32_t>(job.value), static_cast<std::uint16_t>(signal), 0) ==
      SLURM_SUCCESS)
    return Status::Ok();
  const int error = errno;
  if (error == ESLURM_ALREADY_DONE) return Status::Ok();
  return SlurmError(error, fmt::format("signal {} to job {}", signal, job));
}

Status SignalStep(JobId job, StepId step, std::int32_t signal) {
  MSA_RETURN_IF_ERROR(SomebodyListens());
  if (slurm_kill_job_step(static_cast<std::uint32_t>(job.value), step.value,
                          static_cast<std::uint16_t>(signal)) == SLURM_SUCCESS)
    return Status::Ok();
  const int error = errno;
  if (error == ESLURM_ALREADY_DONE) return Status::Ok();
  return SlurmError(error, fmt::format("signal {} to step {} of job {}", signal, step, job));
}

Result<std::string> LoadClusterName() {
  MSA_RETURN_IF_ERROR(SomebodyListens());
  slurm_conf_t* conf = nullptr;
  if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) return SlurmError(errno, "load Slurm's configuration");
  std::string name = Text(conf->cluster_name);
  slurm_free_ctl_conf(conf);
  return name;
}

}  // namespace msa::companion
