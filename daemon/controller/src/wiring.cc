#include "wiring.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <spdlog/spdlog.h>

#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/grpc/grpc_server_internal.h"
#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/sqlite/sqlite_store.h"
#include "msa/base/clock.h"

#include "member_listener.h"
#include "nam_key.h"
#include "services.h"
#include "shell.h"
#include "slurm_agent.h"

namespace msa {
namespace {

// For calls under way, and for clients to close connections that they keep.
constexpr Millis kShutdownGrace{100};

Result<std::string> SocketPath(const DaemonOptions& options) {
  constexpr std::string_view kUnix = "unix:";
  if (options.listen.empty()) return options.directory + "/controller.sock";
  if (!options.listen.starts_with(kUnix) || options.listen.size() == kUnix.size()) {
    return Error(Code::kInvalidArgument, "--listen '{}' is no address of this daemon; expected unix:PATH",
                 options.listen);
  }
  return options.listen.substr(kUnix.size());
}

ControllerOptions CoreOptions(const DaemonOptions& options, NamKey nam) {
  ControllerOptions out;
  out.node_timeout = options.node_timeout;
  out.owner_grace = options.owner_grace;
  out.operator_uid = ::geteuid();
  out.scheduler.backfill = options.backfill;
  out.slurm = options.slurm;
  out.nam_system = nam.system;
  out.nam_key = nam.key;
  out.sign_lease = MakeLeaseSigner(std::move(nam.key));
  return out;
}

SqliteOptions LoggingStore() {
  SqliteOptions out;
  out.on_migrated = [](const std::string& what) { spdlog::info("{}", what); };
  return out;
}

// What a few transactions take, each of some pages of the store and its log.
constexpr std::uintmax_t kLeastRoom = 128 << 10;

Status CheckRoom(const std::string& directory) {
  std::error_code error;
  const std::uintmax_t free = std::filesystem::space(directory, error).available;
  if (error || free >= kLeastRoom) return Status::Ok();  // what is wrong the store will tell
  return Error(
      Code::kResourceExhausted,
      "the file system of '{}' is full: {} KiB are free, {} KiB needed; free space there or raise the "
      "quota",
      directory, free / 1024, kLeastRoom / 1024);
}

// A connection of each client and node is a descriptor.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// The daemon's parts, in the order in which they stand on each other.
class Daemon {
 public:
  explicit Daemon(const DaemonOptions& options) : options_(options) {}

  ~Daemon() {
    if (stopper_.joinable()) stopper_.join();
    members_.reset();
    server_.reset();
    if (loop_ && signals_) loop_->Unwatch(signals_.get());
  }

  Status Start() {
    const Instant started_at = Now();
    MSA_ASSIGN_OR_RETURN(const std::string socket, SocketPath(options_));
    MSA_ASSIGN_OR_RETURN(SystemTopology topology, LoadTopologyFile(options_.topology));
    MSA_RETURN_IF_ERROR(TakeDirectory(options_.directory));
    MSA_RETURN_IF_ERROR(Lock());
    MSA_ASSIGN_OR_RETURN(store_, OpenSqliteStore(options_.directory + "/state.db", LoggingStore()));
    MSA_ASSIGN_OR_RETURN(loop_, EventLoop::Create());
    MSA_ASSIGN_OR_RETURN(NamKey nam, LoadOrMakeNamKey(options_.directory + "/nam.key"));
    const std::string system_name = topology.system_name;
    const std::uint64_t system = nam.system;
    std::set<std::string> names;
    for (const NodeSpec& node : topology.nodes) names.insert(node.name);
    const std::size_t nodes = topology.nodes.size();
    ControllerOptions core = CoreOptions(options_, std::move(nam));
    core.groups_of = [this](const UserIdentity& user) { return users_.GroupsOf(user); };
    controller_ = std::make_unique<Controller>(std::move(topology), std::move(core));
    shell_ =
        std::make_unique<Shell>(*loop_, *controller_, *store_,
                                Shell::Options{.system_name = system_name,
                                               .heartbeat_interval = options_.heartbeat,
                                               .slurm = options_.slurm,
                                               .check_room = [this] { return CheckRoom(options_.directory); },
                                               .to_slurm_agent =
                                                   [this](const effect::ToSlurmAgent& ask) {
                                                     if (agent_) agent_->Send(ask);
                                                   }});
    MSA_RETURN_IF_ERROR(shell_->Start());
    MSA_RETURN_IF_ERROR(StartAgent());
    MSA_RETURN_IF_ERROR(WatchSignals());
    MSA_RETURN_IF_ERROR(Listen(socket, started_at));
    MSA_RETURN_IF_ERROR(ListenForMembers(system, std::move(names)));
    spdlog::info("controller of system '{}' with {} nodes is ready: pid={} socket={}", system_name, nodes,
                 ::getpid(), socket);
    return Status::Ok();
  }

  Status Run() { return loop_->Run(); }

 private:
  Status Lock() {
    Result<LockFile> lock = LockFile::Acquire(options_.directory + "/controller.lock", "msa-controllerd");
    if (lock.ok()) {
      lock_ = std::make_unique<LockFile>(*std::move(lock));
    } else if (lock.status().code() == Code::kAlreadyExists) {
      return Error(Code::kAlreadyExists, "{}; stop it, or give another --dir", lock.status().message());
    }
    return lock.status();
  }

  Status StartAgent() {
    if (!options_.slurm) return Status::Ok();
    std::string program = options_.slurm_agent;
    if (program.empty()) {
      MSA_ASSIGN_OR_RETURN(const std::string beside, ExecutableDirectory());
      program = beside + "/msa-slurm-agent";
    }
    agent_ = std::make_unique<SlurmAgent>(*loop_, std::move(program),
                                          [this](Event event) { shell_->Handle(std::move(event)); });
    agent_->Start();
    return Status::Ok();
  }

  Status Listen(const std::string& socket, Instant started_at) {
    edge_ = std::make_unique<RpcEdge>(RpcEdge{.loop = *loop_,
                                              .shell = *shell_,
                                              .users = users_,
                                              .operator_uid = ::geteuid(),
                                              .directory = options_.directory,
                                              .version = MSA_VERSION,
                                              .started_at = started_at});
    services_.push_back(MakeJobService(*edge_));
    services_.push_back(MakeTopologyService(*edge_));
    services_.push_back(MakeNodeControlService(*edge_));
    services_.push_back(MakeRegionService(*edge_));
    std::vector<grpc::Service*> served;
    for (const auto& service : services_) served.push_back(service->service());
    // Root's controller serves every user; the kernel says which one calls (SO_PEERCRED).
    GrpcServer::Options server{.path = socket, .mode = ::geteuid() == 0 ? 0666U : 0600U};
    MSA_ASSIGN_OR_RETURN(server_, GrpcServer::Start(*loop_, std::move(server), served));
    edge_->caller = [this](const grpc::ServerContextBase& context) { return server_->Caller(context); };
    edge_->caller_process = [this](const grpc::ServerContextBase& context) {
      return server_->CallerProcess(context);
    };
    return Status::Ok();
  }

  Status ListenForMembers(std::uint64_t system, std::set<std::string> nodes) {
    if (options_.listen_tls.empty()) return Status::Ok();
    MemberListener::Options options;
    options.address = std::string(kTlsPrefix) + options_.listen_tls;
    options.authority = options_.directory + "/authority.pem";
    options.system = system;
    options.munge_socket = options_.munge_socket;
    options.life = std::chrono::duration_cast<std::chrono::seconds>(options_.certificate_life);
    options.check_node = [nodes = std::move(nodes)](const std::string& node) {
      if (nodes.contains(node)) return Status::Ok();
      return Error(Code::kNotFound, "the controller's topology file has no node '{}'", node);
    };
    MSA_ASSIGN_OR_RETURN(
        members_, MemberListener::Start(std::move(options), [this](UniqueFd fd, const PeerIdentity& who) {
          server_->Take(std::move(fd), Peer{{.pid = 0, .user = who.user}, ToUri(who)});
        }));
    spdlog::info("serves other hosts at {}", options_.listen_tls);
    return Status::Ok();
  }

  Status WatchSignals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTERM);
    ::sigaddset(&set, SIGINT);
    signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return ErrnoError(errno, "signalfd");
    return loop_->Watch(signals_.get(), EPOLLIN, [this](std::uint32_t) {
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) Stop(info);
    });
  }

  // The loop goes on until every call has ended: their handlers need it.
  void Stop(const signalfd_siginfo& info) {
    if (stopper_.joinable()) return;
    agent_.reset();
    spdlog::info("signal {} of pid {}: ending; jobs go on", info.ssi_signo, info.ssi_pid);
    members_.reset();
    server_->StopAccepting();
    for (const auto& service : services_) service->Stop();
    shell_->Stop();
    stopper_ = std::thread([this] {
      server_->Shutdown(kShutdownGrace);
      loop_->Stop();
    });
  }

  const DaemonOptions options_;
  std::unique_ptr<LockFile> lock_;
  std::unique_ptr<JobStore> store_;
  std::unique_ptr<EventLoop> loop_;
  UserNames users_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<Shell> shell_;
  std::unique_ptr<SlurmAgent> agent_;  // tells the shell
  std::unique_ptr<RpcEdge> edge_;
  std::vector<std::unique_ptr<RpcService>> services_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<MemberListener> members_;  // gives connections to server_
  UniqueFd signals_;
  std::thread stopper_;
};

}  // namespace

Status RunController(const DaemonOptions& options) {
  RaiseDescriptorLimit();
  Daemon daemon(options);
  MSA_RETURN_IF_ERROR(daemon.Start());
  const Status status = daemon.Run();
  spdlog::info("controller ended");
  return status;
}

}  // namespace msa
