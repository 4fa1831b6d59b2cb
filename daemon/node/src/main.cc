// msa-noded: reads options, wires the parts, runs the loop.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/hwloc/machine.h"
#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/process/standard_descriptors.h"
#include "msa/base/exit_code.h"

#include "node_daemon.h"
#include "options.h"
#include "run_as.h"

namespace msa::node {
namespace {

// When jobs that were asked to leave are given up: their kill after 3 s and the sweep of 2 s are over by
// then.
constexpr Millis kStopLimit{8'000};

void StartLog(const Options& options) {
  auto logger = spdlog::stderr_logger_mt("noded");
  logger->set_pattern(fmt::format("%Y-%m-%dT%H:%M:%S.%eZ %l noded {} [%P] %v", options.name),
                      spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(options.log_level));
  spdlog::set_default_logger(std::move(logger));
}

// Blocked before any thread exists, so that all of them leave these to the loop.
Result<UniqueFd> BlockSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&set, signal);
  ::signal(SIGPIPE, SIG_IGN);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return ErrnoError(errno, "block signals");
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return ErrnoError(errno, "signalfd");
  return fd;
}

Status PrepareDirectories(const Options& options, const NodePaths& paths) {
  // Where root's controller is on another host, all users' tasks reach the sockets of their job daemons
  // below.
  const bool shared = ::geteuid() == 0 && options.controller.starts_with(kTlsPrefix);
  MSA_RETURN_IF_ERROR(TakeDirectory(options.dir, shared ? 0755 : 0700));
  // As root, job daemons of users reach their own directory and socket below, and programs the socket of the
  // NAM daemon by the names of nodes; what else is in there is not theirs to list.
  const mode_t mode = ::geteuid() == 0 ? 0711 : 0700;
  MSA_RETURN_IF_ERROR(MakeDirectory(options.dir + "/n", ::geteuid() == 0 ? 0755 : 0700));
  MSA_RETURN_IF_ERROR(MakeDirectory(paths.base(), mode));
  return MakeDirectory(paths.log_directory());
}

Result<NodeDaemon::Options> Prepare(const Options& options, const NodeSpec& spec, const NodePaths& paths) {
  MSA_ASSIGN_OR_RETURN(const Machine machine, Machine::Measure());
  MSA_RETURN_IF_ERROR(machine.WriteXml(paths.topology_xml()));
  JobdManager::Options jobds{
      .node = options.name, .paths = paths, .jobd = options.jobd, .trampoline = options.trampoline};
  MSA_ASSIGN_OR_RETURN(const std::string beside, ExecutableDirectory());
  jobds.run_as = beside + "/msa-noded";
  jobds.pool.least = options.pool;
  jobds.pool.idle = Millis(options.pool_idle_ms);
  jobds.hello_timeout = Millis(options.jobd_start_ms);
  SessionRelay::Options sessions;
  sessions.node = options.name;
  sessions.hold = Millis(options.attach_hold_ms);
  NodeDaemon::Options out{.description = DescribeNode(spec, machine.description()),
                          .paths = paths,
                          .controller = options.controller,
                          .jobds = std::move(jobds),
                          .sessions = std::move(sessions),
                          .far = {},
                          .plugin_socket = options.plugin_socket};
  if (options.controller.starts_with(kTlsPrefix)) out.far = options.far;
  return out;
}

class Signals {
 public:
  Signals(EventLoop& loop, NodeDaemon& daemon, const Options& options, UniqueFd fd)
      : loop_(loop), daemon_(daemon), options_(options), fd_(std::move(fd)) {}
  ~Signals() { loop_.Unwatch(fd_.get()); }

  Status Watch() {
    return loop_.Watch(fd_.get(), EPOLLIN, [this](std::uint32_t) {
      signalfd_siginfo info{};
      while (::read(fd_.get(), &info, sizeof info) == sizeof info) On(static_cast<int>(info.ssi_signo));
    });
  }

 private:
  void On(int signal) {
    if (signal == SIGCHLD) return daemon_.OnChildSignal();
    if (signal == SIGHUP || stopping_) return;
    stopping_ = true;
    const bool quit = signal == SIGINT || options_.quit_jobs_on_term;
    spdlog::info("ends on signal {}; jobs {}", signal, quit ? "end too" : "stay");
    loop_.After(kStopLimit, [this] { loop_.Stop(); });
    daemon_.Stop(quit ? NodeDaemon::End::kQuitJobs : NodeDaemon::End::kLeaveJobs, [this] { loop_.Stop(); });
  }

  EventLoop& loop_;
  NodeDaemon& daemon_;
  const Options& options_;
  UniqueFd fd_;
  bool stopping_ = false;
};

Status Run(Options& options) {
  MSA_RETURN_IF_ERROR(CompleteOptions(options));
  MSA_ASSIGN_OR_RETURN(UniqueFd signals_fd, BlockSignals());
  MSA_ASSIGN_OR_RETURN(const SystemTopology topology, LoadTopologyFile(options.topology));
  MSA_ASSIGN_OR_RETURN(const std::size_t index, topology.SelectNode(options.name));
  const NodePaths paths(options.dir, options.name,
                        ::geteuid() == 0 ? NodePaths::Users::kAll : NodePaths::Users::kOne);
  MSA_RETURN_IF_ERROR(PrepareDirectories(options, paths));
  MSA_ASSIGN_OR_RETURN(
      const LockFile lock,
      LockFile::Acquire(paths.lock(), fmt::format("node daemon {} of '{}'", options.name, options.dir)));
  MSA_RETURN_IF_ERROR(BecomeSubreaper());
  // Whoever holds the lock owns the sockets: what lies there is a dead node daemon's, even if a child that it
  // was about to start still listens for a moment.
  ::unlink(paths.attach_socket().c_str());
  ::unlink(paths.jobd_socket().c_str());
  ::unlink(paths.nam_link().c_str());
  if (!options.plugin_socket.empty()) ::unlink(options.plugin_socket.c_str());
  MSA_ASSIGN_OR_RETURN(NodeDaemon::Options prepared, Prepare(options, topology.nodes[index], paths));
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  NodeDaemon daemon(*loop, std::move(prepared));
  Signals signals(*loop, daemon, options, std::move(signals_fd));
  MSA_RETURN_IF_ERROR(signals.Watch());
  MSA_RETURN_IF_ERROR(daemon.Start());
  MSA_RETURN_IF_ERROR(loop->Run());
  ::unlink(paths.attach_socket().c_str());
  ::unlink(paths.jobd_socket().c_str());
  ::unlink(paths.nam_link().c_str());
  // Shared memory directories go when the last node daemon of this system leaves them empty.
  ::rmdir(paths.shm_node(::geteuid()).c_str());
  ::rmdir(paths.shm_root(::geteuid()).c_str());
  ::rmdir(paths.peer_directory(::geteuid()).c_str());
  return Status::Ok();
}

}  // namespace
}  // namespace msa::node

int main(int argc, char** argv) {
  msa::SecureStandardDescriptors();
  if (argc > 1 && std::string_view(argv[1]) == "--run-as") return msa::node::RunAs(argc, argv);
  auto parsed = msa::node::ParseOptions(argc, argv);
  if (parsed.exit_now) return parsed.exit_code;
  msa::node::StartLog(parsed.options);
  const msa::Status status = msa::node::Run(parsed.options);
  if (status.ok()) return 0;
  spdlog::critical("{}", status.message());
  return msa::ExitCode(status.code());
}
