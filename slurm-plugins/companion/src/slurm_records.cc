#include "slurm_records.h"

#include <errno.h>
#include <pwd.h>

#include <map>
#include <set>

#include <fmt/format.h>

#include "msa/topology/host_list.h"

#include "core_list.h"
#include "slurm_errors.h"

// Exported by libslurm, declared in none of its installed headers.
extern "C" {
char* slurm_job_reason_string(enum job_state_reason reason);
}

namespace msa::companion {
namespace {

std::uint32_t BaseState(const slurm_job_info_t& job) { return job.job_state & JOB_STATE_BASE; }

// Without the flags that slurm_job_state_string would show instead ("COMPLETING").
std::string StateText(std::uint32_t state) {
  static constexpr const char* kNames[] = {"PENDING",   "RUNNING",   "SUSPENDED", "COMPLETED",
                                           "CANCELLED", "FAILED",    "TIMEOUT",   "NODE_FAIL",
                                           "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
  return state < std::size(kNames) ? kNames[state] : fmt::format("STATE_{}", state);
}

std::string ReasonOf(const slurm_job_info_t& job) {
  return Text(slurm_job_reason_string(static_cast<enum job_state_reason>(job.state_reason)));
}

std::uint64_t Time(time_t at) { return at > 0 ? static_cast<std::uint64_t>(at) : 0; }

std::uint32_t LimitSeconds(std::uint32_t minutes) {
  return minutes == INFINITE || minutes == NO_VAL || minutes > UINT32_MAX / 60 ? 0 : minutes * 60;
}

std::uint64_t EndOf(const slurm_job_info_t& job) {
  // Slurm shows a year from its start as the end of a job without a limit.
  return job.time_limit == INFINITE && !IsOver(job) ? 0 : Time(job.end_time);
}

// slurmctld sends names of some jobs only. One thread.
const std::string& UserName(std::uint32_t uid) {
  static std::map<std::uint32_t, std::string> known;
  const auto [at, fresh] = known.try_emplace(uid);
  if (!fresh) return at->second;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    at->second = found->pw_name;
  return at->second;
}

std::vector<std::string> Names(const char* list) {
  auto names = ExpandHostList(Text(list));
  return names.ok() ? std::move(*names) : std::vector<std::string>{};
}

}  // namespace

bool IsOver(const slurm_job_info_t& job) { return BaseState(job) > JOB_SUSPENDED; }

JobFacts FactsOf(const slurm_job_info_t& job) {
  return {.job = JobId(job.job_id),
          .pending = BaseState(job) == JOB_PENDING,
          .preparing =
              BaseState(job) == JOB_RUNNING && (job.job_state & (JOB_CONFIGURING | JOB_POWER_UP_NODE)) != 0,
          .over = IsOver(job),
          .state = StateText(BaseState(job)),
          .reason = ReasonOf(job),
          .detail = Text(job.state_desc),
          .start = Time(job.start_time),
          .end = EndOf(job),
          .time_limit_s = LimitSeconds(job.time_limit),
          .partition = Text(job.partition),
          .account = Text(job.account),
          .qos = Text(job.qos),
          .nodes = {}};
}

ParentFacts ParentOf(const slurm_job_info_t& job) {
  return {.account = Text(job.account),
          .qos = Text(job.qos),
          .partition = Text(job.partition),
          .state = StateText(BaseState(job)),
          .running = BaseState(job) == JOB_RUNNING || BaseState(job) == JOB_SUSPENDED,
          .end = EndOf(job),
          .restarts = job.restart_cnt};
}

wire::SlurmJob RecordOf(const slurm_job_info_t& job) {
  wire::SlurmJob record;
  record.job = JobId(job.job_id);
  const bool component = job.het_job_id != 0 && job.het_job_id != NO_VAL;
  record.leader = JobId(component ? job.het_job_id : job.job_id);
  record.offset = component ? job.het_job_offset : 0;
  if (job.array_job_id != 0 && job.array_job_id != NO_VAL) {
    record.array_job = JobId(job.array_job_id);
    record.array_tasks = job.array_task_str != nullptr ? Text(job.array_task_str)
                         : job.array_task_id != NO_VAL ? fmt::format("{}", job.array_task_id)
                                                       : "";
  }
  record.user = {.uid = job.user_id, .gid = job.group_id};
  record.user_name = job.user_name != nullptr ? Text(job.user_name) : UserName(job.user_id);
  record.account = Text(job.account);
  record.partition = Text(job.partition);
  record.qos = Text(job.qos);
  record.state = StateText(BaseState(job));
  record.over = IsOver(job);
  record.reason = ReasonOf(job);
  record.message = Text(job.state_desc);
  record.nodes = Names(job.nodes);
  record.num_nodes = job.num_nodes;
  record.num_cpus = job.num_cpus;
  record.submit = Time(job.submit_time);
  record.start = Time(job.start_time);
  record.end = EndOf(job);
  record.time_limit_s = LimitSeconds(job.time_limit);
  record.name = Text(job.name);
  record.comment = Text(job.comment);
  record.licenses = Text(job.licenses);
  record.restarts = job.restart_cnt;
  record.exit_status = static_cast<std::int32_t>(job.exit_code);
  return record;
}

Result<std::vector<wire::SlurmNodeCores>> CoresOf(const slurm_job_info_t& job) {
  std::vector<wire::SlurmNodeCores> all;
  if (job.job_resrcs == nullptr) return all;
  int index = 0;
  for (std::string& name : Names(job.nodes)) {
    char text[65536];
    if (slurm_job_cpus_allocated_str_on_node_id(text, sizeof(text), job.job_resrcs, index++) != SLURM_SUCCESS)
      return SlurmError(errno, fmt::format("cores of job {} on node {}", job.job_id, name));
    MSA_ASSIGN_OR_RETURN(std::vector<std::uint16_t> cores, ParseCores(text));
    all.push_back({.node = std::move(name), .cores = std::move(cores)});
  }
  return all;
}

std::vector<NodeFacts> NodesOf(const node_info_msg_t& nodes, const partition_info_msg_t& partitions,
                               std::string_view wanted) {
  const std::string list = fmt::format(",{},", wanted);
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < partitions.record_count; ++i) {
    const partition_info_t& partition = partitions.partition_array[i];
    if (list.find(fmt::format(",{},", Text(partition.name))) == list.npos) continue;
    for (std::string& name : Names(partition.nodes)) names.insert(std::move(name));
  }
  std::vector<NodeFacts> found;
  for (std::uint32_t i = 0; i < nodes.record_count; ++i) {
    const node_info_t& node = nodes.node_array[i];
    if (node.name == nullptr || !names.contains(node.name)) continue;
    const std::uint32_t cores = std::uint32_t{node.sockets} * node.cores;
    found.push_back({.name = node.name,
                     .cores = cores > node.core_spec_cnt ? cores - node.core_spec_cnt : cores,
                     .completing = (node.node_state & NODE_STATE_COMPLETING) != 0});
  }
  return found;
}

}  // namespace msa::companion
