#pragma once
// What a user submits, and the limits that it is held to.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/nam_region.h"
#include "msa/base/status.h"
#include "msa/job/shared_strings.h"
#include "msa/scheduler/request.h"

namespace msa {

inline constexpr std::size_t kMaxNameBytes = 255;  // job, user and reason texts
inline constexpr std::size_t kMaxEnvironmentBytes = 1u << 20;
inline constexpr std::size_t kMaxArgumentBytes = 1u << 20;  // argv of all components together
inline constexpr std::size_t kMaxPathBytes = 4095;          // PATH_MAX less the NUL
inline constexpr std::size_t kMaxTokenBytes = 64;

struct Component {
  ComponentRequest resources;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "K=V", for this component only
  std::string cwd;               // absolute; empty: the job's
  template <class A>
  void Fields(A& a) {
    a(resources, argv, env, cwd);
  }
};

// Slurm's dependency types.
enum class DependencyKind : std::uint8_t {
  kAfter = 0,     // the other job has started or was cancelled, `delay_s` ago
  kAfterAny = 1,  // has ended
  kAfterOk = 2,   // has ended with code 0
  kAfterNotOk = 3,
  kSingleton = 4,  // no earlier job of this name and user is left
};
enum class DependencyState : std::uint8_t {
  kOpen = 0,
  kMet = 1,
  kNever = 2,  // cannot be met any more
};
struct Dependency {
  DependencyKind kind = DependencyKind::kAfterAny;
  JobId job;                                       // 0 for kSingleton
  std::uint32_t delay_s = 0;                       // of kAfter
  DependencyState state = DependencyState::kOpen;  // the controller's; what a submission says is ignored
  template <class A>
  void Fields(A& a) {
    a(kind, job, delay_s, state);
  }
};
inline constexpr std::size_t kMaxScriptBytes = 4u << 20;  // as Slurm's max_script_size
inline constexpr std::size_t kMaxDependencies = 256;
inline constexpr std::size_t kMaxNamBindings = 256;

struct JobSpec {
  std::string name;  // empty: base name of the first program
  std::vector<Component> components;
  SharedStrings env;               // "K=V"
  std::string cwd;                 // absolute
  std::uint32_t time_limit_s = 0;  // 0: none
  wire::StdioSpec stdio;
  wire::KillPolicy kill_policy = wire::KillPolicy::kMpi;
  bool no_bind = false;
  std::uint32_t immediate_s = 0;  // given up if not started by then; 0: wait
  bool oversubscribe = false;
  wire::OnChildFailure on_child_failure = wire::OnChildFailure::kKill;
  bool no_mpi_library = false;  // tasks run without libmsampi
  std::vector<wire::ResourceLimit> limits;
  wire::JobMode mode = wire::JobMode::kStep;
  std::string script;                    // kBatch: its text, with the "#!" line
  std::vector<std::string> script_args;  // argv[1] on
  std::vector<Dependency> dependencies;
  bool dependency_any = false;       // one of them is enough ('?' between them)
  bool kill_on_invalid_dep = false;  // cancelled when they can never be met; else it waits and says so
  std::int64_t begin_at_ms = 0;      // not before, Unix milliseconds; 0: at once
  Bytes nam;                         // --nam: allotment of network attached memory, reserved; 0: none
  std::vector<wire::NamRegionBinding> nam_regions;  // --nam-region
  std::uint32_t gateways = 0;                       // --gateways: nodes that no other job gets meanwhile
  template <class A>
  void Fields(A& a) {
    a(name, components, env, cwd, time_limit_s, stdio, kill_policy, no_bind, immediate_s, oversubscribe,
      on_child_failure, no_mpi_library, limits, mode, script, script_args, dependencies, dependency_any,
      kill_on_invalid_dep, begin_at_ms, nam, nam_regions, gateways);
  }
};

// The part that the scheduler sees.
JobRequest RequestOf(const JobSpec& spec);

// "afterok:3", "after:4+5" (minutes), "singleton".
std::string DependencyText(const Dependency& dependency);

// Checks limits and fills every default in: name, resources as FillDefaults, and CheckCanEver. Errors as
// these; kInvalidArgument also: over-long name, environment, arguments, script or path, no program or one
// where the job's mode takes none, a relative directory, an unknown letter in a file pattern, dependencies or
// limits that are none. Whether the jobs depended on exist is not looked at.
Status CompleteSpec(JobSpec& spec, const SystemTopology& topology);

}  // namespace msa
