#include "node_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/grpc/frame_bundle.h"
#include "msa/adapters/process/files.h"
#include "msa/base/clock.h"
#include "msa/base/fault.h"

namespace msa::node {
namespace {

// Another node daemon of this host has the socket that Slurm's plugin looks for.
constexpr Millis kPluginRetry{2'000};

// Nobody waits for the beginning of a job, or for the end of a step: who does waits for what follows it, or
// looks at it later. In the last milliseconds of a short step, and so of its srun, a message less.
using Urgency = ControllerSession::Urgency;
Urgency UrgencyOf(const wire::Frame& frame) {
  if (frame.type == wire::SlurmStepEnd::kType || frame.type == wire::JobStarted::kType) return Urgency::kSoon;
  if (frame.type != wire::NamespaceReport::kType) return Urgency::kNow;
  const auto report = wire::Decode<wire::NamespaceReport>(frame.payload);
  return report.ok() && report->ended ? Urgency::kSoon : Urgency::kNow;
}

Bytes FreeMemory() {
  const auto text = ReadFile("/proc/meminfo", 64 * 1024);
  constexpr std::string_view kKey = "MemAvailable:";
  const auto at = text.ok() ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return Bytes();
  const char* from = text->data() + std::min(text->find_first_not_of(' ', at + kKey.size()), text->size());
  std::uint64_t kib = 0;
  std::from_chars(from, text->data() + text->size(), kib);
  return Bytes(kib << 10);
}

}  // namespace

node_control::NodeDescription DescribeNode(const NodeSpec& spec, const MachineDescription& machine) {
  node_control::NodeDescription out;
  out.name = spec.name;
  out.cores = spec.cores != 0 ? spec.cores : machine.cores;
  out.machine_cores = machine.cores;
  out.memory = spec.memory.value != 0 ? spec.memory : machine.memory;
  out.synthetic = spec.synthetic;
  out.packages = spec.synthetic ? spec.packages : machine.packages;
  out.numa_nodes = spec.synthetic ? spec.numa_nodes : machine.numa_nodes;
  out.gpus = spec.synthetic || spec.gpus != 0 ? spec.gpus : machine.gpus;
  out.cpu_model = spec.cpu_model.empty() ? machine.cpu_model : spec.cpu_model;
  out.nam = spec.nam;
  return out;
}

NodeDaemon::NodeDaemon(EventLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      jobds_(loop, options_.jobds, JobdHandlers()),
      sessions_(loop, options_.sessions, jobds_) {}

NodeDaemon::~NodeDaemon() {
  loop_.Cancel(heartbeat_timer_);
  loop_.Cancel(plugin_timer_);
}

JobdManager::Handlers NodeDaemon::JobdHandlers() {
  JobdManager::Handlers handlers;
  handlers.on_report = [this](const JobKey& key, wire::Frame frame) { OnReport(key, std::move(frame)); };
  handlers.on_gone = [this](GoneJob gone) { OnGone(std::move(gone)); };
  handlers.on_ended = [this](const JobKey& key, const std::string& reason) {
    if (slurm_) slurm_->OnGone(key, reason);
  };
  handlers.on_session_frame = [this](const JobKey& key, wire::Frame f) {
    sessions_.OnJobdFrame(key, std::move(f));
  };
  handlers.on_here = [this](const JobKey& key) {
    sessions_.OnHere(key);
    if (slurm_) slurm_->OnHere(key);
  };
  handlers.on_sessions_lost = [this](const JobKey& key, const Status& why) {
    sessions_.OnSessionsLost(key, why);
  };
  handlers.on_drained = [this](const JobKey& key) { sessions_.OnDrained(key); };
  return handlers;
}

Status NodeDaemon::Start() {
  MSA_RETURN_IF_ERROR(sessions_.Listen(options_.paths.attach_socket()));
  MSA_RETURN_IF_ERROR(jobds_.Start());
  MSA_RETURN_IF_ERROR(ListenToNamd());
  if (!options_.plugin_socket.empty()) MSA_RETURN_IF_ERROR(ListenToPlugin(options_.plugin_socket));
  ControllerSession::Options session;
  session.address = options_.controller;
  attach_address_ = "unix:" + options_.paths.attach_socket();
  if (options_.far) {
    MSA_RETURN_IF_ERROR(OpenDoor());
    session.connect = [this](std::function<void(Result<UniqueFd>)> done) { door_->Connect(std::move(done)); };
  }
  controller_ = std::make_unique<ControllerSession>(loop_, std::move(session), ControllerHandlers());
  controller_->Start();
  return Status::Ok();
}

ControllerSession::Handlers NodeDaemon::ControllerHandlers() {
  ControllerSession::Handlers handlers;
  handlers.make_registration = [this] { return MakeRegistration(); };
  handlers.on_registered = [this](node_control::Registered registered) {
    OnRegistered(std::move(registered));
  };
  handlers.on_start_job = [this](node_control::StartJob start) {
    if (const Status fault = Fault("noded.start_job"); !fault.ok())
      return OnGone({{start.job, start.incarnation}, fault.message(), false, {}, 0, false});
    if (slurm_) slurm_->OnLaunch(start.job);
    jobds_.Assign(std::move(start));
  };
  handlers.on_to_jobd = [this](node_control::ToJobd command) { OnToJobd(std::move(command)); };
  handlers.on_quit_job = [this](const node_control::QuitJob& command) { OnQuitJob(command); };
  handlers.on_to_namd = [this](const node_control::ToNamd& command) {
    if (nam_) nam_->Send(command.frame);
  };
  handlers.on_to_slurm = [this](const node_control::ToSlurm& command) {
    if (!slurm_) return;
    if (const Status taken = slurm_->OnController(command.frame); !taken.ok())
      spdlog::warn("dropped: {}", taken.message());
  };
  handlers.on_disconnected = [this](const Status& why) {
    loop_.Cancel(heartbeat_timer_);
    unsent_.Clear();  // told again with the rest
    // What namd had asked for others is lost, and it shall know.
    if (nam_) nam_->Reset();
    spdlog::warn("controller at {}: {}; connecting again", options_.controller, why.message());
  };
  handlers.on_refused = [this](const Status& why, Millis retry) {
    if (last_refusal_ == why.message()) return;
    last_refusal_ = why.message();
    spdlog::warn("controller at {}: {}; next attempt in {} ms", options_.controller, why.message(),
                 retry.count());
  };
  return handlers;
}

// Towards other hosts: the controller, and clients of the jobs here.
Status NodeDaemon::OpenDoor() {
  const FarOptions& far = *options_.far;
  MSA_ASSIGN_OR_RETURN(door_, ControllerDoor::Create(loop_, {.controller = options_.controller,
                                                             .node = options_.description.name,
                                                             .controller_uid = far.controller_uid,
                                                             .munge_socket = far.munge_socket}));
  MSA_RETURN_IF_ERROR(door_->Serve(
      fmt::format("{}:{}", far.host, far.port), [this](UniqueFd connection, const PeerIdentity& who) {
        sessions_.Take(std::move(connection), Peer{{.pid = 0, .user = who.user}, ToUri(who)});
      }));
  attach_address_ = fmt::format("{}{}@{}:{}", kTlsPrefix, options_.description.name, far.host, far.port);
  return Status::Ok();
}

Status NodeDaemon::ListenToNamd() {
  if (options_.description.nam.value == 0) return Status::Ok();
  NamLink::Handlers handlers;
  // Without a controller nothing is kept: namd says it anew after the registration.
  handlers.on_frame = [this](wire::Frame frame) {
    if (controller_) (void)controller_->Send(node_control::FromNamd{std::move(frame)});
  };
  handlers.on_gone = [this](const std::string& reason) {
    if (controller_) (void)controller_->Send(node_control::NamdGone{reason});
  };
  nam_ = std::make_unique<NamLink>(
      loop_, NamLink::Options{.node = options_.description.name, .path = options_.paths.nam_link()},
      std::move(handlers));
  return nam_->Listen();
}

Status NodeDaemon::ListenToPlugin(const std::string& path) {
  SlurmSteps::Outlets outlets;
  outlets.to_controller = [this](wire::Frame frame) {
    const auto urgency = UrgencyOf(frame);
    return controller_ && controller_->Send(node_control::FromSlurm{std::move(frame)}, urgency).ok();
  };
  outlets.to_jobd = [this](const JobKey& key, wire::Frame frame) { jobds_.Deliver(key, std::move(frame)); };
  outlets.job_socket = [this](const JobKey& key) { return jobds_.JobSocket(key); };
  outlets.expect = [this](JobId job, const UserIdentity& user) {
    if (!jobds_.FindJob(job)) jobds_.Expect(user);
  };
  PluginSocket::Options options;
  options.node = options_.description.name;
  options.path = path;
  auto steps = std::make_unique<SlurmSteps>(loop_, std::move(options), std::move(outlets));
  const std::string directory = path.substr(0, path.rfind('/'));
  if (::access(directory.c_str(), F_OK) != 0) MSA_RETURN_IF_ERROR(MakeDirectory(directory, 0755));
  MSA_RETURN_IF_ERROR(steps->Listen().WithContext("socket for Slurm's plugin"));
  spdlog::info("Slurm's plugin finds this node daemon at '{}'", path);
  slurm_ = std::move(steps);
  return Status::Ok();
}

void NodeDaemon::OpenPluginSocket() {
  const Status listening = ListenToPlugin(wire::kSlurmPluginSocket);
  if (listening.ok()) return slurm_->OnRegistered();
  spdlog::error("{}; steps of Slurm on this node are not msa's; next attempt in {} ms", listening.message(),
                kPluginRetry.count());
  loop_.Cancel(plugin_timer_);
  plugin_timer_ = loop_.After(kPluginRetry, [this] { OpenPluginSocket(); });
}

void NodeDaemon::Stop(End end, std::function<void()> done) {
  const std::string reason = fmt::format("the node daemon of {} ends", options_.description.name);
  if (end == End::kQuitJobs)
    jobds_.QuitAll(reason, std::move(done));
  else
    jobds_.QuitWarm(reason, std::move(done));
}

node_control::RegisterNode NodeDaemon::MakeRegistration() {
  node_control::RegisterNode out;
  out.daemon_version = MSA_VERSION;
  out.protocol_version = wire::kProtocolVersion;
  out.description = options_.description;
  out.attach_address = attach_address_;
  out.jobd_address = options_.far ? fmt::format("tcp:{}:%P{}", options_.far->host, options_.far->jobd_ports)
                                  : options_.paths.peer_address_pattern();
  out.jobds = jobds_.States();
  // Jobs that ended here while the controller was away: listed, so that their end comes to it as such.
  for (const auto& [key, entry] : reports_.entries()) {
    const bool listed = std::any_of(out.jobds.begin(), out.jobds.end(), [&key = key](const auto& state) {
      return state.job == key.job && state.incarnation == key.incarnation;
    });
    if (entry.gone && !listed)
      out.jobds.push_back({key.job, key.incarnation, entry.gone->member_index, entry.gone->is_head, true});
  }
  out.pid = static_cast<std::uint32_t>(::getpid());
  return out;
}

void NodeDaemon::OnRegistered(node_control::Registered registered) {
  last_refusal_.clear();
  heartbeat_interval_ = std::clamp(registered.heartbeat_interval, Millis(10), Millis(60'000));
  spdlog::info("registered with system '{}' at {}, heartbeat every {} ms", registered.system_name,
               options_.controller, heartbeat_interval_.count());
  unsent_.Clear();
  if (nam_) nam_->Reset();  // namd connects again at once, and this controller gets its hello
  std::set<JobKey> keep;
  for (const node_control::JobdState& state : registered.keep) keep.insert({state.job, state.incarnation});
  for (const node_control::JobdState& state : jobds_.States()) {
    const JobKey key{state.job, state.incarnation};
    if (keep.contains(key)) continue;
    const std::string reason = fmt::format("the controller does not know job {} on this node", key.job);
    if (slurm_) slurm_->OnQuit(key, reason);
    jobds_.QuitUnlessEnded(key, reason);
  }
  std::vector<JobKey> forget;
  for (const auto& [key, entry] : reports_.entries()) {
    if (!keep.contains(key)) {
      forget.push_back(key);
      continue;
    }
    for (const wire::Frame& frame : entry.frames)
      (void)controller_->Send(node_control::FromJobd{key.job, key.incarnation, frame});
    if (entry.gone) SendGone(*entry.gone);
  }
  for (const JobKey& key : forget) {
    reports_.Forget(key);
    jobds_.ForgetExit(key);
  }
  if (slurm_)
    slurm_->OnRegistered();
  else if (registered.slurm)
    OpenPluginSocket();
  loop_.Cancel(heartbeat_timer_);
  SendHeartbeat();
}

void NodeDaemon::OnToJobd(node_control::ToJobd command) {
  const JobKey key{command.job, command.incarnation};
  reports_.OnCommand(key, command.frame);
  command.frame.id = 0;
  // The job's end is on the controller's disk. What its job daemon leaves is told by JobdGone later.
  if (command.frame.type == wire::ExitAck::kType) {
    reports_.Forget(key);
    if (slurm_) slurm_->OnOver(key);
  }
  if (slurm_) slurm_->OnCommand(key);
  jobds_.Deliver(key, std::move(command.frame));
}

void NodeDaemon::OnQuitJob(const node_control::QuitJob& command) {
  const JobKey key{command.job, command.incarnation};
  reports_.Forget(key);
  if (slurm_) slurm_->OnQuit(key, command.reason);
  jobds_.QuitUnlessEnded(key, command.reason);
}

void NodeDaemon::OnReport(const JobKey& key, wire::Frame frame) {
  frame.id = 0;
  // A job daemon repeats its exit record until ExitAck: what is on its way is kept, not lost with a broken
  // session.
  reports_.Add(key, frame);
  if (!controller_->connected()) return;
  if (unsent_.empty()) loop_.Post([this] { FlushReports(); });
  unsent_.Add(key, std::move(frame));
}

void NodeDaemon::FlushReports() {
  for (auto& [key, frames] : unsent_.Take()) {
    if (!controller_->connected()) continue;
    const bool urgent = std::any_of(frames.begin(), frames.end(),
                                    [](const wire::Frame& one) { return UrgencyOf(one) == Urgency::kNow; });
    (void)controller_->Send(
        node_control::FromJobd{key.job, key.incarnation, node_control::Bundle(std::move(frames))},
        urgent ? Urgency::kNow : Urgency::kSoon);
  }
}

void NodeDaemon::OnGone(GoneJob gone) {
  sessions_.OnGone(gone);
  if (slurm_) slurm_->OnGone(gone.key, gone.reason);
  FlushReports();  // its last words come first
  if (gone.acknowledged) return reports_.Forget(gone.key);
  if (controller_ && controller_->connected()) SendGone(gone);
  // A clean end was asked for by the controller, which needs no second telling.
  if (gone.clean && gone.exit_record.empty())
    reports_.Forget(gone.key);
  else
    reports_.SetGone(std::move(gone));
}

void NodeDaemon::SendGone(const GoneJob& gone) {
  if (!gone.exit_record.empty())
    (void)controller_->Send(node_control::FromJobd{
        gone.key.job, gone.key.incarnation, {wire::JobExit::kType, 0, 0, gone.exit_record}});
  (void)controller_->Send(
      node_control::JobdGone{gone.key.job, gone.key.incarnation, gone.reason, gone.clean});
}

void NodeDaemon::SendHeartbeat() {
  // A controller that is stuck gets no growing queue of heartbeats.
  constexpr std::size_t kMaxQueued = std::size_t{1} << 20;
  node_control::Heartbeat beat;
  double load = 0;
  if (::getloadavg(&load, 1) == 1) beat.load = load;
  beat.jobd_warm = jobds_.warm();
  beat.memory_free = FreeMemory();
  beat.clock_ms = ToUnixMillis(Now());
  if (Fault("noded.heartbeat").ok() && controller_->queued() < kMaxQueued) (void)controller_->Send(beat);
  heartbeat_timer_ = loop_.After(heartbeat_interval_, [this] { SendHeartbeat(); });
}

}  // namespace msa::node
