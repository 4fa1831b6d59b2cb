// The SPANK plugin of msa: hooks of srun, sbatch, salloc, slurmd and slurmstepd (spank.h of Slurm 22.05). In
// slurmstepd it makes a step of Slurm one of msa: see msa/base/slurm_messages.h for who says what. It never
// holds a step up without a limit, and where msa does not run it does nothing.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

extern "C" {
#include <slurm/spank.h>
}

#include "msa/base/slurm_het.h"
#include "msa/base/slurm_messages.h"

#include "node_link.h"
#include "plugin_options.h"
#include "step_facts.h"

namespace {

using namespace msa;         // NOLINT: a plugin's one file
using namespace msa::spank;  // NOLINT

constexpr std::chrono::seconds kSend{5}, kVerdict{30}, kWorld{60};
// A node daemon that is killed is started again by its supervisor within this.
constexpr std::chrono::seconds kRestart{5};
constexpr std::chrono::milliseconds kRetry{50};
// What is there to read already, and what a node daemon takes to see that a job daemon has died: it sees that
// before a task that the death has ended is gone, unless the node is busy.
// On a busy node the word comes later: who was killed waits for it longer.
constexpr std::chrono::milliseconds kNow{1}, kAbort{100}, kKilledAbort{500};

// Slurm loads the plugin once into each process; a task's process is a fork of slurmstepd's.
struct State {
  PluginArguments arguments;
  Options options;
  ComponentCheck components;
  NodeLink link;  // slurmstepd's, of an msa step
  wire::SlurmStepBegin begin;
  bool script = false;
  std::string job_socket;  // once the step is accepted
  bool failed = false;     // a task of it
  bool aborted = false;    // and said so
  // Why the step is not. Said in user_init, where the user's streams stand; and it is the tasks that fail, in
  // task_init: where a hook of slurmstepd fails, srun may end with code 0.
  std::string refusal;
};
State& TheState() {
  static State state;
  return state;
}

int Refuse(const std::string& text) {
  slurm_error("msa: %s", text.c_str());
  return -1;
}

int OnOption(int value, const char* argument, int /*remote*/) {
  const Status set =
      SetOption(TheState().options, static_cast<Option>(value), argument == nullptr ? "" : argument);
  return set.ok() ? 0 : Refuse(set.message());
}

std::optional<std::string> StepVariable(spank_t spank, const char* name) {
  // Values of ours are short; a host list of ten thousand nodes is not.
  char brief[512];
  const spank_err_t got = spank_getenv(spank, name, brief, sizeof brief);
  if (got == ESPANK_SUCCESS) return brief;
  if (got != ESPANK_NOSPACE) return std::nullopt;
  for (std::size_t size = 4096; size <= std::size_t{4} << 20; size *= 8) {
    std::string value(size, '\0');
    const spank_err_t error = spank_getenv(spank, name, value.data(), static_cast<int>(size));
    if (error == ESPANK_NOSPACE) continue;
    if (error != ESPANK_SUCCESS) return std::nullopt;
    value.resize(value.find('\0'));
    return value;
  }
  return std::nullopt;
}

template <class T>
T Item(spank_t spank, spank_item item, T fallback) {
  T value = fallback;
  return spank_get_item(spank, item, &value) == ESPANK_SUCCESS ? value : fallback;
}

// How the options of sbatch and salloc reach the steps of the job, whose own hooks see srun's alone.
struct Carried {
  const char* variable;
  std::string wire::SlurmOptions::*field;
};
constexpr Carried kCarried[] = {
    {"MSA_SLURM_MODULE", &wire::SlurmOptions::module},
    {"MSA_SLURM_NAM", &wire::SlurmOptions::nam},
    {"MSA_SLURM_NAM_REGION", &wire::SlurmOptions::nam_region},
    {"MSA_SLURM_GATEWAYS", &wire::SlurmOptions::gateways},
    {"MSA_SLURM_ON_CHILD_FAILURE", &wire::SlurmOptions::on_child_failure},
};
constexpr const char* kUseVariable = "MSA_SLURM_USE";
constexpr const char* kMpiVariable = "MSA_SLURM_MPI";

const char* UseText(Use use) { return use == Use::kYes ? "yes" : use == Use::kNo ? "no" : "auto"; }

// As Slurm calls in a job what was set with spank_job_control_setenv, which no --export leaves out.
std::string JobsName(const std::string& name) { return "SLURM_SPANK_" + name; }

void Forget(const std::string& name) {
  unsetenv(name.c_str());
  unsetenv(JobsName(name).c_str());
}

// Of an option, where Slurm looks for it.
std::string OptionVariable(const OptionSpec& spec) {
  std::string name = std::string("_SLURM_SPANK_OPTION_msa_") + spec.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// sbatch and salloc inside a job pass its environment on: what it says of that job is not so of the new one.
// Before Slurm looks for options there.
void ForgetOuterJob() {
  for (const Carried& one : kCarried) Forget(one.variable);
  for (const char* name : {kUseVariable, kMpiVariable, wire::kSlurmHetLeader}) Forget(name);
  for (const OptionSpec& spec : OptionSpecs()) Forget(OptionVariable(spec));
}

// Slurm gives srun, and its step, the options of the job as if they were its own. What of them a step has the
// variables tell (kCarried), and an option is one that this srun was given.
void ForgetJobsOptions() {
  if (getenv("SLURM_JOB_ID") == nullptr) return;
  for (const OptionSpec& spec : OptionSpecs()) Forget(OptionVariable(spec));
}

std::optional<std::string> ProcessVariable(const std::string& name) {
  const char* value = getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// What the job's sbatch or salloc, or an srun around this one, has set. `find`: of this process, or of the
// step.
template <class Find>
std::optional<std::string> CarriedValue(const char* name, const Find& find) {
  if (auto value = find(name)) return value;
  return find(JobsName(name));
}

int CarryOptions(spank_t spank) {
  State& state = TheState();
  if (const Status same = state.components.Add(state.options); !same.ok()) return Refuse(same.message());
  const auto carry = [&](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    spank_job_control_setenv(spank, name, value.c_str(), 1);
  };
  for (const Carried& one : kCarried)
    if (const std::string& value = state.options.step.*one.field; !value.empty()) carry(one.variable, value);
  if (state.options.use_given) carry(kUseVariable, UseText(state.options.use));
  if (spank_context() != S_CTX_LOCAL) return 0;
  StepChoice choice =
      ChooseUse(state.options, CarriedValue(kUseVariable, ProcessVariable), state.arguments.use);
  choice.mpi = ProcessVariable("SLURM_MPI_TYPE").value_or("none");
  if (choice.other_mpi() && choice.use == Use::kYes)
    return Refuse("--msa=yes and --mpi=" + choice.mpi +
                  " exclude each other: one of the two starts the MPI; leave --mpi away, or give --msa=no");
  if (const Status kept = CheckNothingLost(state.options, choice); !kept.ok()) return Refuse(kept.message());
  setenv(kMpiVariable, choice.mpi.c_str(), 1);
  return 0;
}

StepItems ReadItems(spank_t spank) {
  StepItems items;
  items.component_job = Item<std::uint32_t>(spank, S_JOB_ID, 0);
  items.step = Item<std::uint32_t>(spank, S_JOB_STEPID, 0);
  items.local_tasks = Item<std::uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT, 0);
  // 0 in Slurm 22.05, and the variable is not there yet where the script begins: msa-slurm-agent tells.
  items.restart_count = Item<std::uint32_t>(spank, S_SLURM_RESTART_COUNT, 0);
  if (const char* cores = Item<char*>(spank, S_JOB_ALLOC_CORES, nullptr)) items.alloc_cores = cores;
  if (const char* version = Item<char*>(spank, S_SLURM_VERSION, nullptr)) items.slurm_version = version;
  return items;
}

// In slurmstepd, as root: the node daemon is told of the step.
void BeginStep(spank_t spank) {
  State& state = TheState();
  const StepItems items = ReadItems(spank);
  if (items.step == kExternStep) return;
  state.script = IsScript(items.step);
  const auto variable = [spank](const std::string& name) { return StepVariable(spank, name.c_str()); };
  StepChoice choice = ChooseUse(state.options, CarriedValue(kUseVariable, variable), state.arguments.use);
  if (!state.script) choice.mpi = variable(kMpiVariable).value_or("none");
  if (choice.use == Use::kNo || choice.other_mpi()) {
    // srun has looked at it already, but not by this node's plugstack.conf.
    if (!state.script) state.refusal = CheckNothingLost(state.options, choice).message();
    return;
  }
  // A script that cannot have msa still runs: it is its steps that are refused.
  const bool asks = AsksForMsa(state.options);
  const bool required = (choice.use == Use::kYes || asks) && !state.script;
  const auto cannot = [&](const std::string& text) {
    if (required || asks) state.refusal = text;
  };
  const Lookup environment = [spank](const char* name) { return StepVariable(spank, name); };
  const std::string node = NodeName(environment);
  auto link = NodeLink::Connect(state.arguments.socket);
  if (!link.ok()) return cannot(NoNodeDaemonText(state.options, node, link.status().message()));
  auto begin = ReadStep(items, environment, node);
  if (!begin.ok()) return cannot(begin.status().message());
  state.begin = std::move(*begin);
  state.begin.user = {Item<uid_t>(spank, S_JOB_UID, 0), Item<gid_t>(spank, S_JOB_GID, 0)};
  state.begin.user_name = environment("SLURM_JOB_USER").value_or("");
  state.begin.required = required;
  state.begin.options = state.options.step;
  for (const Carried& one : kCarried)
    if (std::string& value = state.begin.options.*one.field; value.empty())
      value = CarriedValue(one.variable, variable).value_or("");
  state.begin.daemon_pid = getpid();
  if (const Status sent = link->Send(state.begin, In(kSend)); !sent.ok())
    return cannot("node " + node + ": its node daemon does not listen: " + sent.message());
  state.link = std::move(*link);
}

// The node daemon believes root alone, and slurmstepd has the user's effective uid in user_init. Of this
// thread alone: the others of slurmstepd stay who they are.
class AsRoot {
 public:
  AsRoot() : user_(geteuid()) {
    if (user_ != 0) (void)syscall(SYS_setresuid, -1, 0, -1);
  }
  ~AsRoot() {
    if (user_ != 0) (void)syscall(SYS_setresuid, -1, user_, -1);
  }
  AsRoot(const AsRoot&) = delete;
  AsRoot& operator=(const AsRoot&) = delete;

 private:
  const uid_t user_;
};

// The node daemon, which was there, is away: it may be starting again.
Result<NodeLink> ConnectAgain(Deadline deadline) {
  const AsRoot root;
  for (;;) {
    auto link = NodeLink::Connect(TheState().arguments.socket);
    if (link.ok() || std::chrono::steady_clock::now() + kRetry > deadline) return link;
    std::this_thread::sleep_for(kRetry);
  }
}

Result<wire::SlurmStepVerdict> ReceiveVerdict() {
  State& state = TheState();
  const Deadline deadline = In(kVerdict);
  for (;;) {
    auto verdict = state.link.Receive<wire::SlurmStepVerdict>(deadline);
    if (verdict.ok() || verdict.status().code() != Code::kUnavailable) return verdict;
    std::this_thread::sleep_for(kRetry);
    auto again = ConnectAgain(std::min(deadline, In(kRestart)));
    if (!again.ok()) return verdict;
    state.link = std::move(*again);
    MSA_RETURN_IF_ERROR(state.link.Send(state.begin, In(kSend)));
  }
}

void AwaitVerdict() {
  State& state = TheState();
  if (state.link) {
    const auto verdict = ReceiveVerdict();
    if (verdict.ok() && verdict->accepted) {
      state.job_socket = verdict->job_socket;
      return;
    }
    state.link.Close();
    state.refusal = verdict.ok() ? verdict->message
                                 : "node " + state.begin.node +
                                       ": the node daemon of msa: " + verdict.status().message() +
                                       "; see its log, or give --msa=no to leave the step to Slurm";
  }
  if (state.refusal.empty()) return;
  if (state.script) {
    slurm_info("msa: the script runs without msa: %s", std::exchange(state.refusal, "").c_str());
  } else {
    slurm_error("msa: %s", state.refusal.c_str());
  }
}

int Join(spank_t spank) {
  State& state = TheState();
  // It was said; what Slurm would add to a hook's failure helps nobody.
  if (!state.refusal.empty()) _exit(1);
  if (state.job_socket.empty()) return 0;
  wire::SlurmTaskJoin join;
  join.job = state.begin.job;
  join.step = state.begin.step;
  join.ntasks = state.begin.ntasks;
  const std::string rank = StepVariable(spank, "SLURM_PROCID").value_or("0");
  join.rank = state.script ? 0 : static_cast<std::uint32_t>(strtoul(rank.c_str(), nullptr, 10));
  join.local_id = static_cast<std::uint32_t>(Item<int>(spank, S_TASK_ID, 0));
  int argc = 0;
  char** argv = nullptr;
  if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS) join.argv.assign(argv, argv + argc);
  std::vector<char> cwd(4096);
  if (getcwd(cwd.data(), cwd.size()) != nullptr) join.cwd = cwd.data();
  join.component_job = state.begin.component_job;
  join.cpus_per_task = static_cast<std::uint32_t>(
      strtoul(StepVariable(spank, "SLURM_CPUS_PER_TASK").value_or("1").c_str(), nullptr, 10));
  for (const char* name : wire::kSlurmJoinVariables)
    if (const auto value = StepVariable(spank, name))
      join.environment.push_back(std::string(name) + "=" + *value);
  if (const auto leader = StepVariable(spank, wire::kSlurmHetLeader))
    join.environment.push_back(std::string(wire::kSlurmHetLeader) + "=" + *leader);
  join.ticket = StepVariable(spank, "MSA_SPAWN_TICKET").value_or("");
  join.part = static_cast<std::uint32_t>(
      strtoul(StepVariable(spank, "MSA_SPAWN_PART").value_or("0").c_str(), nullptr, 10));
  // Not the job's, whose first step may have been another srun with an option of its own.
  join.on_child_failure = state.begin.options.on_child_failure;
  if (join.on_child_failure.empty()) join.on_child_failure = "kill";

  const auto failed = [&](const std::string& text) {
    return Refuse("task " + rank + " on " + state.begin.node + ": " + text);
  };
  auto link = NodeLink::Connect(state.job_socket);
  if (!link.ok()) return failed("the job daemon of msa is gone: " + link.status().message());
  if (const Status sent = link->SendWith(join, {STDOUT_FILENO, STDERR_FILENO}, In(kSend)); !sent.ok())
    return failed("the job daemon of msa: " + sent.message());
  UniqueFd descriptor;
  const auto ready = link->Receive<wire::SlurmTaskReady>(In(kWorld), &descriptor);
  if (!ready.ok()) return failed("the job daemon of msa: " + ready.status().message());
  if (!ready->refusal.empty()) return Refuse(ready->refusal);
  for (const std::string& name : ready->unset) spank_unsetenv(spank, name.c_str());
  for (const std::string& pair : ready->set) {
    const std::size_t at = pair.find('=');
    if (at == std::string::npos ||
        spank_setenv(spank, pair.substr(0, at).c_str(), pair.c_str() + at + 1, 1) != ESPANK_SUCCESS)
      return failed("the environment of the task cannot be set");
  }
  // Without close-on-exec: dup2 clears it.
  if (ready->fd >= 0 && descriptor && dup2(descriptor.get(), ready->fd) < 0)
    return failed("no descriptor is left for PMI");
  return 0;
}

void TellBegin(spank_t spank) {
  State& state = TheState();
  // A script is no part of a world: whatever becomes of its job daemon, it goes on.
  if (!state.link || state.job_socket.empty() || state.script) return;
  wire::SlurmTaskBegin begin;
  begin.job = state.begin.job;
  begin.step = state.begin.step;
  begin.local_id = static_cast<std::uint32_t>(Item<int>(spank, S_TASK_ID, 0));
  begin.pid = Item<pid_t>(spank, S_TASK_PID, 0);
  if (!state.link.Send(begin, In(kSend)).ok()) state.link.Close();
}

// A task has failed: if its job daemon has, the node daemon says so, and the user hears it once.
void TellAbort(std::chrono::milliseconds wait) {
  State& state = TheState();
  if (!state.link || state.aborted) return;
  const auto abort = state.link.Receive<wire::SlurmStepAbort>(In(wait));
  if (!abort.ok()) return;
  state.aborted = true;
  slurm_error("msa: %s", abort->message.c_str());
}

void TellEnd(spank_t spank) {
  State& state = TheState();
  if (!state.link || state.job_socket.empty()) return;
  wire::SlurmTaskEnd end;
  end.job = state.begin.job;
  end.step = state.begin.step;
  end.pid = Item<pid_t>(spank, S_TASK_PID, 0);
  end.status = Item<int>(spank, S_TASK_EXIT_STATUS, 0);
  end.first = Item<std::uint32_t>(spank, S_TASK_GLOBAL_ID, 0) == 0;
  // A node daemon that is gone hears of the end by the job daemon, which looks after the process itself.
  if (!state.link.Send(end, In(kSend)).ok()) return state.link.Close();
  if (end.status == 0) return;
  const bool killed = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL;
  TellAbort(std::exchange(state.failed, true) ? kNow : killed ? kKilledAbort : kAbort);
}

void TellJobEnd(spank_t spank) {
  // A node daemon that ends in order takes its socket along.
  if (access(TheState().arguments.socket.c_str(), F_OK) != 0) return;
  auto link = ConnectAgain(In(kRestart));
  if (!link.ok()) return;
  wire::SlurmJobEnd end;
  end.component_job = JobId(Item<std::uint32_t>(spank, S_JOB_ID, 0));
  if (const Status sent = link->Send(end, In(kSend)); !sent.ok())
    slurm_error("msa: the end of job %llu is not told to the node daemon: %s",
                static_cast<unsigned long long>(end.component_job.value), sent.message().c_str());
}

}  // namespace

extern "C" {

#pragma GCC visibility push(default)

// A constant of C++ is no symbol unless it was declared as one: Slurm would not find the plugin's name.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(msa, 1)

int slurm_spank_init(spank_t spank, int argc, char** argv) {
  auto arguments = ParseArguments({argv, argv + argc});
  if (!arguments.ok()) return Refuse(arguments.status().message());
  TheState().arguments = std::move(*arguments);
  TheState().options.use = TheState().arguments.use;
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return 0;
  if (context == S_CTX_ALLOCATOR) ForgetOuterJob();
  if (context == S_CTX_LOCAL) ForgetJobsOptions();
  for (const OptionSpec& spec : OptionSpecs()) {
    // Slurm copies the texts and changes none.
    spank_option option{const_cast<char*>(spec.name),  const_cast<char*>(spec.argument),
                        const_cast<char*>(spec.usage), 1,
                        static_cast<int>(spec.option), OnOption};
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
      return Refuse(std::string("option --") + spec.name + " is taken by another plugin");
  }
  return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int /*argc*/, char** /*argv*/) {
  switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
      return CarryOptions(spank);
    case S_CTX_REMOTE:
      BeginStep(spank);
      return 0;
    default:
      return 0;
  }
}

int slurm_spank_user_init(spank_t /*spank*/, int /*argc*/, char** /*argv*/) {
  AwaitVerdict();
  return 0;
}

int slurm_spank_task_init(spank_t spank, int /*argc*/, char** /*argv*/) { return Join(spank); }

int slurm_spank_task_post_fork(spank_t spank, int /*argc*/, char** /*argv*/) {
  TellBegin(spank);
  return 0;
}

int slurm_spank_task_exit(spank_t spank, int /*argc*/, char** /*argv*/) {
  TellEnd(spank);
  return 0;
}

int slurm_spank_exit(spank_t /*spank*/, int /*argc*/, char** /*argv*/) {
  if (TheState().failed) TellAbort(kNow);
  TheState().link.Close();
  return 0;
}

int slurm_spank_job_epilog(spank_t spank, int /*argc*/, char** /*argv*/) {
  TellJobEnd(spank);
  return 0;
}

#pragma GCC visibility pop
}
