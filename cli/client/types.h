#pragma once
// What the controller tells, as plain values; the meaning of each field stands in proto/msa/v1.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/messages.h"
#include "msa/job/job_spec.h"

#include "client/slurm_facts.h"

namespace msa::cli {

using wire::JobState;

struct SystemInfo {
  std::string version;
  std::uint32_t pid = 0;
  std::int64_t started_at_ms = 0;
  std::uint32_t modules = 0;
  std::uint32_t nodes = 0;
  std::uint32_t nodes_up = 0;
  std::uint32_t cores = 0;
  std::uint32_t cores_used = 0;
  std::uint32_t jobs_pending = 0;
  std::uint32_t jobs_running = 0;
  std::uint64_t jobs_ended = 0;
  std::string system_name;
  std::string directory;
  std::int64_t store_bytes = 0;
  std::uint64_t nam_user_quota = 0;
  std::uint64_t nam_job_quota = 0;
  std::uint64_t nam_job_default = 0;
};

struct ModuleInfo {
  std::uint32_t id = 0;
  std::string name;
  std::string kind;
  std::uint32_t nodes = 0;
  std::uint32_t nodes_up = 0;
  std::uint32_t cores = 0;
  std::uint32_t cores_free = 0;
  std::uint64_t nam_bytes = 0;
  std::optional<SlurmModuleFacts> slurm;  // with --backend slurm
};

enum class NodeState { kUnknown = 0, kUp = 1, kDown = 2 };

struct NodeInfo {
  std::string name;
  std::string module;
  std::uint32_t module_id = 0;
  NodeState state = NodeState::kUnknown;
  bool drained = false;
  std::string reason;
  std::uint32_t cores = 0;
  std::uint32_t cores_used = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<std::uint64_t> jobs;
  std::int64_t last_heartbeat_ms = 0;
  std::int64_t up_since_ms = 0;
  bool synthetic = false;
  double load = 0;
  std::uint32_t jobd_warm = 0;
  std::string daemon_version;
  std::uint64_t nam_bytes = 0;
  std::uint32_t packages = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t gpus = 0;
  std::string cpu_model;
  std::int64_t clock_offset_ms = 0;
  bool clock_off = false;
  std::optional<SlurmNodeFacts> slurm;  // with --backend slurm
};

struct AllocationInfo {
  std::string node;
  std::string module;
  std::uint32_t component = 0;
  std::vector<std::uint32_t> cores;
  std::uint32_t tasks = 0;
  std::uint64_t grant = 0;
  bool held = false;
};

struct NamespaceInfo {
  std::string name;
  std::string parent;
  std::uint32_t size = 0;
  std::vector<std::string> nodes;
  std::string command;
  bool ended = false;
  std::int32_t exit_code = 0;
  std::vector<std::uint64_t> grants;
};

enum class GrantState { kWaiting = 0, kHeld = 1, kReleased = 2 };

struct GrantInfo {
  std::uint64_t id = 0;
  JobId job;
  std::uint64_t request = 0;
  std::string user;
  GrantState state = GrantState::kWaiting;
  std::vector<AllocationInfo> allocations;
  std::uint32_t slots = 0;
  std::string module;
  std::int64_t asked_at_ms = 0;
  std::int64_t since_ms = 0;
  std::int64_t until_ms = 0;
  std::vector<std::string> namespaces;
  std::string reason;
  JobId slurm_job;  // of Slurm, that holds it or is queued for it; 0: none
};

struct JobInfo {
  JobId id;
  std::string name;
  std::uint32_t uid = 0;
  std::string user;
  JobState state = JobState::kPending;
  std::string reason;
  std::int64_t submitted_at_ms = 0;
  std::int64_t started_at_ms = 0;
  std::int64_t ended_at_ms = 0;
  std::int64_t expected_start_ms = 0;
  std::uint32_t time_limit_s = 0;
  std::int32_t exit_code = 0;
  std::string exit_message;
  std::optional<JobSpec> spec;  // of GetJob
  std::vector<AllocationInfo> allocations;
  std::vector<NamespaceInfo> namespaces;
  Incarnation incarnation;
  bool interactive = false;
  std::vector<std::string> modules;
  std::uint32_t tasks = 0;
  std::uint32_t nodes = 0;
  std::string stdout_path;
  std::string stderr_path;
  std::uint32_t tasks_failed = 0;
  std::string head_node;
  wire::JobMode mode = wire::JobMode::kStep;
  std::optional<SlurmJobFacts> slurm;  // with --backend slurm
  std::vector<std::string> gateways;   // of --gateways, held or once held
};

struct JobEvent {
  JobInfo job;
  std::string head_node;
  std::string attach_address;
  bool final = false;
};

struct JobQuery {
  bool ended = false;
  std::uint32_t limit = 0;
  std::vector<JobId> ids;
  std::string user;
  std::int64_t since_ms = 0;     // of jobs that have ended: that ended then or later
  std::int64_t until_ms = 0;     // of jobs that have ended: that were submitted before; 0: all
  std::vector<JobState> states;  // empty: all
  std::string name;              // empty: all
  bool namespaces = false;       // with JobInfo::namespaces
};

struct GrantQuery {
  JobId job;  // 0: all
  std::string user;
  bool released = false;
  std::vector<std::uint64_t> ids;
};

}  // namespace msa::cli
