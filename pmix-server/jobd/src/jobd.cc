#include "jobd.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include <spdlog/spdlog.h>

#include "msa/adapters/process/files.h"
#include "msa/base/fault.h"

#include "exit_record.h"

namespace msa::jobd {
namespace {

constexpr std::uint16_t kSessionOver = 0x04ff;  // between noded and jobd: a client's session has ended

Status ReadTopology(JobdOptions& options) {
  if (options.machine) return Status::Ok();
  // Before hwloc's first call. Its plugins (GPUs, X11, libxml2 with ICU) add nothing to a topology that is
  // given, and loading them takes 2.5 ms of the 11 of this process's start.
  if (!options.topology_xml.empty()) ::setenv("HWLOC_PLUGINS_PATH", "/none", 1);
  auto machine = options.topology_xml.empty() ? Machine::Measure() : Machine::FromXml(options.topology_xml);
  if (!machine.ok()) return machine.status().WithContext("topology");
  options.machine = std::make_shared<const Machine>(std::move(*machine));
  return Status::Ok();
}

}  // namespace

Jobd::~Jobd() = default;

Status Jobd::Preload(JobdOptions& options) {
  MSA_RETURN_IF_ERROR(ReadTopology(options));
  // OpenSSL's own preparation takes a millisecond of the first context's.
  return TlsContext().Warm();
}

Result<std::unique_ptr<Jobd>> Jobd::Create(EventLoop& loop, JobdOptions options) {
  std::unique_ptr<Jobd> jobd(new Jobd(loop, std::move(options)));
  MSA_RETURN_IF_ERROR(jobd->Prepare());
  return jobd;
}

Status Jobd::Prepare() {
  MSA_RETURN_IF_ERROR(MakeDirectory(options_.directory));
  MSA_RETURN_IF_ERROR(ReadTopology(options_));
  machine_ = options_.machine;
  network_ = pmix::DetectNetwork();
  launch::LauncherOptions launcher{options_.trampoline, options_.node};
  launch::TaskLauncher::Handlers tasks;
  tasks.on_output = [this](const std::string& nspace, Rank rank, wire::Stream stream, std::string data) {
    if (SrunSteps::IsRun(nspace)) return sruns_->OnOutput(nspace, data);
    if (member_) member_->OnOutput(nspace, rank, stream, std::move(data));
  };
  tasks.on_exit = [this](const launch::TaskExit& exit) {
    if (SrunSteps::IsRun(exit.nspace)) return sruns_->OnExit(exit);
    if (member_) member_->OnExit(exit);
  };
  tasks.on_stdin = [this](const std::string& nspace, Rank rank, std::size_t taken, bool closed) {
    if (member_) member_->OnStdin(nspace, rank, taken, closed);
  };
  MSA_ASSIGN_OR_RETURN(launcher_, launch::TaskLauncher::Create(loop_, std::move(launcher), std::move(tasks)));
  pmix::PmixHostOptions host;
  host.nspace = fmt::format("msa-jobd.{}", ::getpid());
  host.hostname = options_.node;
  host.directory = options_.directory;
  host.topology_xml = options_.topology_xml;
  host.on_log = [this](pmix::ClientLog log) {
    if (member_)
      member_->OnOutput(log.proc.nspace, Rank(log.proc.rank),
                        log.to_stderr ? wire::Stream::kErr : wire::Stream::kOut, std::move(log.text));
  };
  MSA_ASSIGN_OR_RETURN(host_, pmix::PmixHost::Start(host, loop_, [this](pmix::Upcall upcall) {
                         if (member_ && !leaving_) member_->OnUpcall(std::move(upcall));
                       }));
  NamRelay::Handlers of_nam;
  of_nam.to_controller = [this](std::uint16_t type, const std::string& payload) {
    if (link_) link_->Send(type, 0, payload);
  };
  of_nam.to_task = [this](std::uint64_t client, const wire::Frame& frame) {
    job_socket_->SendFrame(client, frame);
  };
  nam_ = std::make_unique<NamRelay>(std::move(of_nam));
  MSA_ASSIGN_OR_RETURN(job_socket_, JobSocket::Create(loop_, options_.directory + "/job.sock", TaskHandlers(),
                                                      [this](const std::string& text) { Log(text); }));
  NodeLink::Handlers handlers;
  handlers.hello = [this] { return Hello(); };
  handlers.on_frame = [this](wire::Frame frame) { OnNodeFrame(std::move(frame)); };
  handlers.on_up = [this] {
    loop_.Cancel(orphan_timer_);
    if (!launch_) WarmTlsLater();
    nam_->OnLinkUp();
    if (head_ && !leaving_) head_->OnControllerLink();
  };
  handlers.on_down = [this](const std::string& why) { OnNodeDown(why); };
  link_ = std::make_unique<NodeLink>(loop_, options_.noded_socket, std::move(handlers));
  link_->Connect();
  return Status::Ok();
}

JobSocket::Handlers Jobd::TaskHandlers() {
  JobSocket::Handlers handlers;
  handlers.greet = [this](const wire::TaskHello& hello) { return Greet(hello); };
  handlers.on_frame = [this](std::uint64_t client, const wire::TaskHello& task, const wire::Frame& frame) {
    if (!member_ || leaving_) return;
    if (!NamRelay::Takes(frame.type)) return member_->OnTaskFrame(client, task, frame);
    const std::string who = task.nspace.empty()
                                ? fmt::format("a process of job {} on {}", launch_->job, options_.node)
                                : fmt::format("rank {} of {} on {}", task.rank, task.nspace, options_.node);
    nam_->OnTaskFrame(client, who, frame, SteadyNow());
  };
  handlers.on_closed = [this](std::uint64_t client) {
    nam_->OnTaskGone(client);
    if (slurm_) slurm_->OnClientGone(client);
    if (member_ && !leaving_) member_->OnTaskGone(client);
  };
  handlers.on_exec = [this](pid_t pid) -> Result<wire::TaskExec> {
    if (slurm_) return slurm_->Exec(pid);
    return Error(Code::kFailedPrecondition, "Slurm starts no tasks of this job");
  };
  handlers.on_join = [this](std::uint64_t client, SlurmJoin join) { OnSlurmJoin(client, std::move(join)); };
  return handlers;
}

// ------------------------------------------------------------------------------------------ noded

wire::JobdHello Jobd::Hello() const {
  wire::JobdHello hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.cookie = options_.cookie;
  hello.directory = options_.directory;
  if (!launch_) return hello;
  hello.job = launch_->job;
  hello.incarnation = launch_->incarnation;
  hello.member_index = launch_->self_index;
  hello.is_head = head_ != nullptr;
  hello.ended = head_ != nullptr && head_->ended();
  return hello;
}

void Jobd::OnNodeDown(const std::string& why) {
  spdlog::warn("node daemon away: {}", why);
  if (head_) head_->OnSessionsLost();
  if (!launch_ && !leaving_) CheckOrphaned();
}

// A launch over several nodes finds it done; one of a burst, whose job daemon has just started, does not wait
// for it.
void Jobd::WarmTlsLater() {
  loop_.Cancel(tls_timer_);
  tls_timer_ = loop_.After(options_.tls_delay, [this] {
    if (leaving_) return;
    if (const Status warmed = tls_.Warm(); !warmed.ok()) spdlog::error("{}", warmed.message());
  });
}

// Without a job there is nobody to live for once noded stays away or the directory is gone.
void Jobd::CheckOrphaned() {
  loop_.Cancel(orphan_timer_);
  if (launch_ || leaving_ || link_ == nullptr || link_->up()) return;
  const bool directory_gone = ::access(options_.directory.c_str(), F_OK) != 0;
  if (directory_gone || SteadyNow() - link_->down_since() >= options_.orphan_wait)
    return Leave(directory_gone ? "its directory is gone" : "the node daemon is gone");
  orphan_timer_ = loop_.After(std::min(options_.orphan_wait, Millis(500)), [this] { CheckOrphaned(); });
}

void Jobd::OnNodeFrame(wire::Frame frame) {
  if (leaving_) return;
  if (frame.type == wire::JobdQuit::kType) {
    const auto quit = wire::Decode<wire::JobdQuit>(frame.payload);
    return Leave(quit.ok() ? quit->reason : "told to quit");
  }
  if (frame.id != 0) {
    if (head_) return head_->OnSession(frame.id, frame);
    return link_->Send(kSessionOver, frame.id, {});
  }
  if (frame.type == wire::LaunchJob::kType) return OnLaunch(frame);
  if (frame.type == wire::SlurmTaskEnd::kType || frame.type == wire::SlurmStepEnd::kType ||
      frame.type == wire::SlurmStepVerdict::kType)
    return OnSlurmEnd(frame);
  OnControllerFrame(frame);
}

void Jobd::OnControllerFrame(const wire::Frame& frame) {
  if (!launch_) return spdlog::warn("message of type {:#06x} without a job; ignored", frame.type);
  if (frame.type == wire::NamToTask::kType) {
    auto answer = wire::Decode<wire::NamToTask>(frame.payload);
    if (answer.ok()) return nam_->OnToTask(std::move(*answer));
    return spdlog::warn("an answer for a task: {}", answer.status().message());
  }
  if (frame.type == wire::CompanionOrder::kType) return OnCompanionOrder(frame);
  if (head_) return head_->OnController(frame);
  switch (frame.type) {
    case wire::MembersChanged::kType:
      if (const auto changed = wire::Decode<wire::MembersChanged>(frame.payload); changed.ok())
        OnMembership(changed->epoch, changed->members, changed->reason);
      return;
    case wire::CancelJob::kType: {  // only if the head's node is gone
      const auto cancel = wire::Decode<wire::CancelJob>(frame.payload);
      return Leave(cancel.ok() ? "job cancelled: " + cancel->reason : "job cancelled");
    }
    case wire::ExitAck::kType:
      return;  // the head tells
    default:
      return spdlog::warn("message of type {:#06x} is for the head; ignored", frame.type);
  }
}

void Jobd::OnLaunch(const wire::Frame& frame) {
  auto launch = wire::Decode<wire::LaunchJob>(frame.payload);
  if (!launch.ok()) return Fatal(launch.status().message());
  if (launch_) {
    if (launch->job != launch_->job || launch->incarnation != launch_->incarnation)
      spdlog::error("asked to run job {}.{} while it runs {}.{}; ignored", launch->job, launch->incarnation,
                    launch_->job, launch_->incarnation);
    return;
  }
  loop_.Cancel(tls_timer_);
  const std::uint32_t self = launch->self_index;
  const Status status = Launch(std::move(*launch));
  if (status.ok()) return;
  spdlog::error("launch failed: {}", status.message());
  const wire::MemberFailed failed{self, status.message()};
  link_->Send(wire::MemberFailed::kType, 0, wire::Encode(failed));
  Leave(status.message());
}

MemberOptions Jobd::MemberOptionsOf(const wire::LaunchJob& launch) const {
  MemberOptions options;
  options.job = launch.job;
  options.incarnation = launch.incarnation;
  options.self = launch.self_index;
  options.head = launch.head_index;
  options.user = launch.user;
  options.user_name = launch.user_name;
  options.job_name = launch.job_name;
  options.directory = options_.directory;
  options.job_socket = job_socket_->path();
  options.mpi_library = options_.mpi_library;
  options.system = options_.system;
  if (launch.mode == wire::JobMode::kBatch) options.script = ScriptPath();
  options.to_task = [this](std::uint64_t client, const wire::SpawnVerdict& verdict, std::uint64_t id) {
    job_socket_->Send(client, verdict, id);
  };
  options.slurms = launch.slurms;
  if (launch.slurms) options.job_variables = JobVariablesOf(launch);
  options.shm_directory = shm_;
  options.topology_xml = options_.topology_xml;
  cpu_set_t set;
  CPU_ZERO(&set);
  options.machine_cores = ::sched_getaffinity(0, sizeof set, &set) == 0
                              ? static_cast<std::uint32_t>(CPU_COUNT(&set))
                              : machine_->description().cores;
  options.network = network_;
  options.cpus_of = [this](const std::vector<std::uint16_t>& cores) -> Result<std::vector<std::uint16_t>> {
    MSA_ASSIGN_OR_RETURN(const CpuSet cpus, machine_->CpusOf(cores));
    return std::vector<std::uint16_t>(cpus.begin(), cpus.end());
  };
  return options;
}

Status Jobd::Launch(wire::LaunchJob launch) {
  MSA_RETURN_IF_ERROR(Fault("jobd.launch.before"));
  const auto self = std::find_if(launch.members.begin(), launch.members.end(),
                                 [&](const wire::Member& m) { return m.index == launch.self_index; });
  if (self == launch.members.end())
    return Error(Code::kInvalidArgument, "member {} is not among the {} members of job {}", launch.self_index,
                 launch.members.size(), launch.job);
  if (launch.user.uid != ::geteuid())
    return Error(
        Code::kPermissionDenied,
        "job {} is of uid {}, this job daemon runs as uid {}; the node daemon must start it as the user",
        launch.job, launch.user.uid, ::geteuid());
  const bool has_tasks = launch.has_step && launch.mode != wire::JobMode::kAlloc;
  if (has_tasks && (launch.step.apps.empty() || launch.step.rank_member.empty()))
    return Error(Code::kInvalidArgument,
                 "step of job {} has {} programs and {} tasks; expected at least one of each", launch.job,
                 launch.step.apps.size(), launch.step.rank_member.size());
  address_ = self->address;
  shm_ = fmt::format("{}/{}.{}", options_.shm_directory, launch.job, launch.incarnation);
  MSA_RETURN_IF_ERROR(MakeDirectory(shm_));
  PeerMesh::Handlers handlers;
  handlers.on_frame = [this](std::uint32_t from, wire::Frame frame) { OnPeerFrame(from, frame); };
  handlers.on_joined = [this](std::uint32_t index) {
    if (head_) head_->OnMemberJoined(index);
  };
  handlers.on_lost = [this](std::uint32_t index, std::string reason) { OnPeerLost(index, reason); };
  handlers.on_trouble = [this](const std::string& text) { Log(text); };
  MSA_ASSIGN_OR_RETURN(mesh_, PeerMesh::Create(loop_, tls_,
                                               {launch.job, launch.incarnation, launch.self_index,
                                                self->address, launch.secret, options_.peer_limit},
                                               std::move(handlers)));
  mesh_->SetMembers(launch.epoch, launch.members, {});
  const bool is_head = launch.self_index == launch.head_index;
  if (is_head && launch.mode == wire::JobMode::kBatch)
    MSA_RETURN_IF_ERROR(WriteFileAtomically(ScriptPath(), std::exchange(launch.script, {}), 0700));
  if (!is_head) mesh_->Connect(launch.head_index);
  if (launch.slurms) MakeSlurmTasks(launch);
  launch::TaskRunner& runner = slurm_ ? static_cast<launch::TaskRunner&>(*slurm_) : *launcher_;
  member_ = std::make_unique<Member>(loop_, *host_, runner, *mesh_, MemberOptionsOf(launch),
                                     [this](const std::string& text) { Log(text); });
  member_->SetMembers(launch.members);
  epoch_ = launch.epoch;
  if (has_tasks) member_->Register(RegisterOfStep(launch));
  spdlog::info("job {}.{}: member {} of {}{}", launch.job, launch.incarnation, launch.self_index,
               launch.members.size(), is_head ? ", head" : "");
  launch_ = launch;
  launch_->secret.clear();
  launch_->step = {};
  launch_->script.clear();
  if (!is_head) return Status::Ok();
  head_ = std::make_unique<Head>(std::move(launch), static_cast<HeadOutlet&>(*this));
  head_->Start();
  return Status::Ok();
}

// ------------------------------------------------------------------------------------------ peers

void Jobd::OnPeerFrame(std::uint32_t from, const wire::Frame& frame) {
  if (leaving_ || !member_) return;
  if (Head::IsForHead(frame.type)) {
    if (head_) return head_->OnMember(from, frame);
    return Log(fmt::format("member {} takes this one for the head; message of type {:#06x} ignored", from,
                           frame.type));
  }
  const bool from_head = from == launch_->head_index;
  if (frame.type == Membership::kType && from_head) {
    const auto changed = wire::Decode<Membership>(frame.payload);
    if (changed.ok() && !head_) OnMembership(changed->epoch, changed->members, changed->reason);
    if (changed.ok()) member_->SetMembers(changed->members);
    return;
  }
  if (frame.type == JobEnd::kType && from_head) {
    const auto end = wire::Decode<JobEnd>(frame.payload);
    return Leave(end.ok() ? end->reason : "the job is over");
  }
  if (from_head && IsForSlurmTasks(frame.type)) return OnSlurmHead(frame);
  member_->OnFrame(from, frame);
}

void Jobd::OnMembership(Epoch epoch, const std::vector<wire::Member>& members, const std::string& reason) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  mesh_->SetMembers(epoch, members, reason);
  member_->SetMembers(members);
}

void Jobd::OnPeerLost(std::uint32_t index, const std::string& reason) {
  if (leaving_ || !member_) return;
  if (index == launch_->head_index) return Fatal("the head of the job is gone: " + reason);
  Log(reason);
  member_->OnMemberLost(index, reason);
  if (head_) head_->OnMemberLost(index, reason);
}

Result<wire::TaskWelcome> Jobd::Greet(const wire::TaskHello& hello) const {
  if (!member_) return Error(Code::kFailedPrecondition, "no job runs here");
  wire::TaskWelcome welcome;
  welcome.job = launch_->job;
  welcome.node = options_.node;
  const Member::World world = member_->WorldOf(hello.nspace);
  welcome.step = world.step;
  welcome.world_size = world.size;
  return welcome;
}

// ------------------------------------------------------------------------------------------ the end

void Jobd::OnTerminate() {
  if (head_ && !head_->ended())
    return head_->Cancel({wire::JobState::kCancelled, 5'000, "the job daemon got SIGTERM"});
  if (!head_) Leave("terminated");
}

// A member that cannot go on: the controller hears of it, the tasks go.
void Jobd::Fatal(const std::string& reason) {
  spdlog::error("{}", reason);
  if (launch_) {
    const wire::MemberFailed failed{launch_->self_index, reason};
    link_->Send(wire::MemberFailed::kType, 0, wire::Encode(failed));
  }
  Leave(reason);
}

void Jobd::Leave(const std::string& reason) {
  if (leaving_) return;
  leaving_ = true;
  spdlog::info("leaving: {}", reason);
  if (member_) member_->StopStarts({});
  if (slurm_) slurm_->KillAll({}, [](int) {});
  if (!companions_) return KillAllAndVanish();
  launcher_->Signal({}, SIGKILL);
  companions_->Close([this] { KillAllAndVanish(); });
  loop_.After(options_.companion_wait, [this] { KillAllAndVanish(); });
}

// Also what is no task: msa-companion has had its time.
void Jobd::KillAllAndVanish() {
  if (std::exchange(vanishing_, true)) return;
  launcher_->KillAll({}, [this](int survivors) {
    if (survivors > 0)
      spdlog::error("{} processes of the job could not be killed; look for state D", survivors);
    // 1 s: the last words of a job are a few frames.
    if (link_ == nullptr) return Vanish();
    nam_->AllGone();  // the job may go on without this node
    link_->Flush(Millis(1'000), [this] { Vanish(); });
  });
}

void Jobd::Vanish() {
  for (const std::string& path : {shm_, options_.directory}) {
    if (path.empty()) continue;
    const Status removed = RemoveTree(path);
    // Under root's node daemon the directory is emptied here, and that one removes it.
    if (!removed.ok() && removed.code() != Code::kPermissionDenied) spdlog::error("{}", removed.message());
  }
  links_.reset();  // their sockets
  mesh_.reset();
  gone_ = true;
  loop_.Stop();
}

void Jobd::JobOver() {
  for (const std::uint32_t index : mesh_->members()) mesh_->SendMessage(index, JobEnd{"the job is over"});
  Leave("the job is over");
}

// ------------------------------------------------------------------------------------------ HeadOutlet

void Jobd::ToMember(std::uint32_t index, std::uint16_t type, std::uint64_t id, std::string payload) {
  mesh_->Send(index, type, id, std::move(payload));
}
void Jobd::ToController(std::uint16_t type, std::string payload) { link_->Send(type, 0, payload); }
void Jobd::ToSession(std::uint64_t session, std::uint16_t type, std::string payload) {
  link_->Send(type, session, payload);
}
void Jobd::EndSession(std::uint64_t session) { link_->Send(kSessionOver, session, {}); }
TimerId Jobd::After(Millis delay, std::function<void()> callback) {
  return loop_.After(delay, std::move(callback));
}
void Jobd::Cancel(TimerId timer) { loop_.Cancel(timer); }
Instant Jobd::WallTime() { return Now(); }
SteadyTime Jobd::SteadyTimeNow() { return SteadyNow(); }
bool Jobd::IsJoined(std::uint32_t member) { return mesh_->connected(member); }
void Jobd::Log(const std::string& text) { spdlog::info("{}", text); }

void Jobd::SaveExitRecord(const std::string& payload) {
  auto saved = jobd::SaveExitRecord(options_.directory + "/exit", payload);
  if (!saved.ok()) return spdlog::error("{}", saved.status().message());
  // The end of most jobs is on the controller's disk before, and this file gone.
  loop_.After(options_.exit_sync,
              [fd = std::make_shared<UniqueFd>(std::move(*saved))] { SyncInBackground(std::move(*fd)); });
}

void Jobd::MembersKnown(Epoch epoch, const std::vector<wire::Member>& members, const std::string& reason) {
  epoch_ = epoch;
  mesh_->SetMembers(epoch, members, reason);
  member_->SetMembers(members);
}

}  // namespace msa::jobd
