// Tasks of this node: their start, streams and ends.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "msa/job/resource_limits.h"
#include "msa/launch/output_file.h"

#include "member.h"
#include "output_file.h"
#include "task_env.h"

namespace msa::jobd {

const wire::App& Member::AppOf(const Hosted& hosted, Rank rank) const {
  std::uint32_t first = 0;
  const auto& apps = hosted.reg.spec.apps;
  for (const wire::App& app : apps) {
    if (rank.value < first + app.ntasks) return app;
    first += app.ntasks;
  }
  return apps.back();
}

// Logical nodes with a unix address share this machine, and so its cores.
std::uint32_t Member::TasksOnMachine() const {
  const bool local_system = members_.at(options_.self).address.starts_with("unix:");
  std::uint32_t sum = 0;
  for (const auto& [nspace, hosted] : hosted_)
    for (const std::uint32_t index : hosted.reg.spec.rank_member) {
      const auto member = members_.find(index);
      const bool here = index == options_.self || (local_system && member != members_.end() &&
                                                   member->second.address.starts_with("unix:"));
      if (here) ++sum;
    }
  return sum;
}

std::vector<std::string> Member::Environment(const Hosted& hosted, const wire::App& app, Rank rank) {
  const bool is_script = hosted.reg.spec.step == wire::kBatchStep;
  const auto& rank_member = hosted.reg.spec.rank_member;
  TaskEnvironmentOptions o;
  o.job = options_.job;
  o.step = hosted.reg.spec.step;
  o.base = hosted.reg.spec.env;
  o.app = app.env;
  o.member = &members_.at(options_.self);
  o.component = app.component;
  o.rank = rank;
  o.local_rank = static_cast<std::uint32_t>(
      std::count(rank_member.begin(), rank_member.begin() + rank.value, options_.self));
  o.local_size =
      static_cast<std::uint32_t>(std::count(rank_member.begin(), rank_member.end(), options_.self));
  o.world_size = static_cast<std::uint32_t>(rank_member.size());
  for (const auto& [index, member] : members_) o.nodes.push_back(member.node);
  o.system = options_.system;
  if (hosted.reg.spec.mpi_library || is_script) o.mpi_library = options_.mpi_library;
  if (is_script) return ScriptEnvironment(o);
  o.job_socket = options_.job_socket;
  o.pmi_fd = launch::kChannelFd;
  o.parent_nspace = hosted.reg.parent;
  if (auto pmix = host_.ClientEnvironment({hosted.reg.spec.nspace, rank.value}); pmix.ok())
    o.pmix = std::move(*pmix);
  o.open_mpi = {options_.shm_directory, options_.topology_xml,  o.world_size,
                TasksOnMachine(),       options_.machine_cores, options_.network};
  return TaskEnvironment(o);
}

wire::SlurmTaskReady Member::ScriptEnvironmentHere(const std::vector<std::string>& own) const {
  TaskEnvironmentOptions o;
  o.job = options_.job;
  o.base = options_.job_variables;
  o.member = &members_.at(options_.self);
  for (const auto& [index, member] : members_) o.nodes.push_back(member.node);
  o.system = options_.system;
  return SlurmEnvironment(ScriptEnvironment(o), own);
}

Status Member::OpenStreams(const Hosted& hosted, launch::TaskSpec& spec,
                           std::map<std::string, UniqueFd>& files) {
  const wire::StepSpec& step = hosted.reg.spec;
  const wire::Member& self = members_.at(options_.self);
  const PatternValues values{options_.job, step.step,          spec.rank,        options_.self,
                             self.node,    options_.user_name, options_.job_name};
  MSA_ASSIGN_OR_RETURN(const StdioPlan plan, PlanStdio(step.stdio, step.cwd, values));
  const auto open = [&](const Sink& sink, UniqueFd& into) -> Status {
    std::string path = "/dev/null";
    if (sink.kind == SinkKind::kCarry || sink.kind == SinkKind::kFile) return Status::Ok();
    if (sink.kind == SinkKind::kPerTask) {
      MSA_ASSIGN_OR_RETURN(path, ExpandPattern(sink.path, values));
      // Children have ranks of their own: their files stand beside the step's.
      if (hosted.reg.spawn != 0) path += fmt::format(".s{}", hosted.reg.spawn);
    }
    // Tasks that share a file (%N) share its offset.
    auto it = files.find(path);
    if (it == files.end()) {
      MSA_ASSIGN_OR_RETURN(UniqueFd fd,
                           launch::OpenOutputFile(path, step.stdio.append || sink.kind == SinkKind::kDrop
                                                            ? launch::OpenMode::kAppend
                                                            : launch::OpenMode::kTruncate));
      it = files.emplace(path, std::move(fd)).first;
    }
    into.reset(::fcntl(it->second.get(), F_DUPFD_CLOEXEC, 3));
    return into ? Status::Ok() : ErrnoError(errno, "duplicate descriptor of '" + path + "'");
  };
  MSA_RETURN_IF_ERROR(open(plan.out, spec.out));
  MSA_RETURN_IF_ERROR(open(plan.err, spec.err));
  if (spec.rank.value == 0 && hosted.reg.spawn == 0 && !step.stdio.in.empty() && step.stdio.in != "none") {
    MSA_ASSIGN_OR_RETURN(std::string path, ExpandPattern(step.stdio.in, values));
    if (!path.starts_with('/')) path = step.cwd + "/" + path;
    spec.in.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!spec.in) return ErrnoError(errno, "open input file '" + path + "'");
  }
  return Status::Ok();
}

Result<launch::TaskSpec> Member::MakeTask(Hosted& hosted, const TaskPlace& place,
                                          const NamespaceStart& message,
                                          std::map<std::string, UniqueFd>& files) {
  const wire::App& app = AppOf(hosted, place.rank);
  launch::TaskSpec spec;
  spec.nspace = hosted.reg.spec.nspace;
  spec.rank = place.rank;
  spec.argv = app.argv;
  const bool is_script = hosted.reg.spec.step == wire::kBatchStep;
  if (is_script) spec.argv[0] = options_.script;
  spec.env = Environment(hosted, app, place.rank);
  spec.cwd = app.cwd.empty() ? hosted.reg.spec.cwd : app.cwd;
  if (!place.cores.empty()) {
    MSA_ASSIGN_OR_RETURN(spec.cpus, options_.cpus_of(place.cores));
  }
  spec.component = app.component;
  spec.limits = hosted.reg.spec.limits;
  if (options_.slurms && hosted.reg.spawn != 0) {
    spec.ticket = spec.nspace;
    spec.part = place.part;
    spec.number = place.number;
  }
  spec.want_stdin = message.want_stdin && place.rank.value == 0;
  MSA_RETURN_IF_ERROR(OpenStreams(hosted, spec, files));
  if (is_script) return spec;  // what it starts itself is no task of ours
  MSA_ASSIGN_OR_RETURN(spec.channel, PmiWorldOf(hosted).Connect(place.rank));
  return spec;
}

// As srun warns: a task that gets less than its user has is told of it.
void Member::TellLoweredLimits(const Hosted& hosted) {
  const wire::StepSpec& step = hosted.reg.spec;
  std::vector<wire::ResourceLimit> own;
  for (const wire::ResourceLimit& wanted : step.limits) {
    rlimit here{};
    if (::getrlimit(static_cast<__rlimit_resource>(wanted.resource), &here) == 0)
      own.push_back({wanted.resource, here.rlim_cur, here.rlim_max});
  }
  for (std::string& line : LoweredLimits(step.limits, own))
    ToHead(TaskNotice{step.nspace, Rank(0), std::move(line), true});
}

void Member::OnOutput(const std::string& nspace, Rank rank, wire::Stream stream, std::string data) {
  const auto it = hosted_.find(nspace);
  if (it == hosted_.end()) return;  // of a process that outlived its namespace
  Debt& debt = output_debts_[it->second.reg.spec.step];
  debt.bytes += data.size();
  ToHead(TaskOutput{nspace, rank, stream, std::move(data)});
  if (debt.bytes < kOutputCredit) return;
  debt.paused = true;
  for (const std::string& name : NamespacesOf(it->second.reg.spec.step)) launcher_.PauseOutput(name);
}

// Posted: what libpmix's thread has told of the task, its connect above all, is in the queue before its end.
void Member::OnExit(const launch::TaskExit& exit) {
  loop_.Post([this, exit, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired()) Ended(exit);
  });
}

void Member::Ended(const launch::TaskExit& exit) {
  TaskEnded ended{exit.nspace, exit.end, false, false, exit.looks_like_singleton, exit.mpi_library};
  const auto it = hosted_.find(exit.nspace);
  if (it != hosted_.end()) {
    if (it->second.pmi) it->second.pmi->Ended(exit.end.rank);
    Client& client = it->second.clients[exit.end.rank.value];
    ended.connected = client.connected || client.pmi_connected;
    ended.finalized = client.connected <= client.finalized && client.pmi_connected <= client.pmi_finalized;
    ended.singleton = ended.singleton && !ended.connected;
    client.ended = true;
  }
  ToHead(ended);
  if (it != hosted_.end()) TellConnections(exit.nspace, it->second);
}

void Member::OnStdin(const std::string& nspace, Rank, std::size_t taken, bool closed) {
  const auto it = hosted_.find(nspace);
  if (it != hosted_.end() && it->second.reg.spawn == 0) ToHead(InputTaken{taken, closed, nspace});
}

}  // namespace msa::jobd
