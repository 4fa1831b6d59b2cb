// msa-namd: reads options, wires the parts, runs the loop.
#include <dlfcn.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/config/nam_backing.h"
#include "msa/adapters/config/topology_file.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/process/standard_descriptors.h"
#include "msa/adapters/process/worker.h"
#include "msa/base/exit_code.h"

#include "fabric_start.h"
#include "nam_daemon.h"
#include "options.h"

namespace msa::namd {
namespace {

void StartLog(const Options& options) {
  auto logger = spdlog::stderr_logger_mt("namd");
  logger->set_pattern(fmt::format("%Y-%m-%dT%H:%M:%S.%eZ %l namd {} [%P] %v", options.name),
                      spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(options.log_level));
  spdlog::set_default_logger(std::move(logger));
}

// libfabric brings libinfinipath, which installs handlers when it is loaded: a fault would end in exit(1),
// that waits for the fabric's threads, instead of killing this process.
void DropForeignHandlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    Dl_info owner{};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_DFL ||
        action.sa_handler == SIG_IGN)
      continue;
    if (::dladdr(reinterpret_cast<void*>(action.sa_handler), &owner) != 0 && owner.dli_fname != nullptr &&
        std::strstr(owner.dli_fname, "libinfinipath") != nullptr)
      ::signal(signal, SIG_DFL);
  }
}

// Blocked before any thread exists, so that all of them leave these to the loop. SIGXFSZ: a file size limit
// is an error of the call that meets it.
Result<UniqueFd> BlockSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return ErrnoError(errno, "block signals");
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return ErrnoError(errno, "signalfd");
  return fd;
}

// One for each extent and each client.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint64_t Random() {
  std::uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  unsigned int size = 0;
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

Status PrepareDirectories(const Options& options) {
  MSA_RETURN_IF_ERROR(TakeDirectory(options.dir));
  // As root, users reach namd's socket below. libmsanam finds it by the names of nodes, which are no secret;
  // what else is in there is not theirs to list.
  const mode_t mode = ::geteuid() == 0 ? 0711 : 0700;
  MSA_RETURN_IF_ERROR(MakeDirectory(options.dir + "/n", ::geteuid() == 0 ? 0755 : 0700));
  MSA_RETURN_IF_ERROR(MakeDirectory(options.base(), mode));
  return MakeDirectory(options.notes());
}

NamDaemon::Options DaemonOptions(const Options& options, const NodeSpec& spec, Status& over,
                                 EventLoop& loop) {
  NamDaemon::Options daemon;
  daemon.node = options.name;
  daemon.socket = options.socket();
  // In a system of root any user may come, and the kernel says who it is; else the directory keeps others
  // out.
  daemon.socket_mode = ::geteuid() == 0 ? 0666 : 0600;
  daemon.link = options.link();
  daemon.notes = options.notes();
  daemon.capacity = spec.nam;
  daemon.seed = Random() >> 1;
  daemon.hmac = HmacSha256;
  daemon.random = Random;
  daemon.on_over = [&over, &loop](Status why) {
    over = std::move(why);
    loop.Stop();
  };
  return daemon;
}

Status WatchSignals(EventLoop& loop, int fd) {
  return loop.Watch(fd, EPOLLIN, [&loop, fd](std::uint32_t) {
    signalfd_siginfo info{};
    while (::read(fd, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGHUP) continue;
      spdlog::info("ends on signal {}; regions stay", info.ssi_signo);
      loop.Stop();
    }
  });
}

// Between the fabric and the service, which serves it from when the daemon knows it.
class FabricRequests {
 public:
  wire::Frame Serve(const wire::Frame& request) {
    if (Service* const service = service_.load(); service != nullptr)
      return service->Serve({}, request).frame;
    const wire::NamFailed failed{static_cast<std::uint8_t>(Code::kUnavailable),
                                 "NAM daemon is starting; try again"};
    return {wire::NamFailed::kType, 0, request.id, wire::Encode(failed)};
  }
  void ServeBy(Service& service) { service_ = &service; }

 private:
  std::atomic<Service*> service_ = nullptr;
};

Result<std::unique_ptr<nam::FabricServer>> StartFabric(const Options& options, const ExtentStore& store,
                                                       FabricRequests& requests) {
  const FabricChoice choice{options.fabric, options.fabric_host, options.fabric_port};
  return StartFabric(choice, store, [&requests](nam::FabricServerOptions server) {
    server.log = [](const std::string& text) { spdlog::warn("fabric: {}", text); };
    return nam::FabricServer::Start(std::move(server), [&requests](const std::string&, wire::Frame request) {
      return requests.Serve(request);
    });
  });
}

// libfabric takes a second and more to start: this host is served meanwhile.
class FabricBesides {
 public:
  FabricBesides(EventLoop& loop, NamDaemon& daemon, std::function<void(Status)> on_failed)
      : daemon_(daemon), on_failed_(std::move(on_failed)), worker_(std::make_unique<Worker>(loop)) {}
  // Keys first, then the thread that serves; the service last.
  ~FabricBesides() {
    worker_.reset();
    daemon_.EndFabric();
  }

  void Start(const Options& options) {
    worker_->Run([this, &options] { made_ = StartFabric(options, daemon_.store(), requests_); },
                 [this] {
                   if (!made_.ok()) return on_failed_(made_.status());
                   daemon_.UseFabric(made_->get());
                   requests_.ServeBy(daemon_.service());
                 });
  }

 private:
  NamDaemon& daemon_;
  const std::function<void(Status)> on_failed_;
  FabricRequests requests_;
  Result<std::unique_ptr<nam::FabricServer>> made_ = std::unique_ptr<nam::FabricServer>();
  std::unique_ptr<Worker> worker_;
};

Status Serve(const Options& options, const NodeSpec& spec, EventLoop& loop,
             std::unique_ptr<ExtentStore> store) {
  Status over;
  NamDaemon daemon(loop, DaemonOptions(options, spec, over, loop), std::move(store));
  MSA_RETURN_IF_ERROR(daemon.Load());
  FabricBesides fabric(loop, daemon, [&over, &loop](Status why) {
    over = std::move(why);
    loop.Stop();
  });
  if (options.fabric == "none")
    daemon.UseFabric(nullptr);
  else
    fabric.Start(options);
  MSA_RETURN_IF_ERROR(daemon.Start());
  MSA_RETURN_IF_ERROR(loop.Run());
  return over;
}

Status Run(Options& options) {
  MSA_RETURN_IF_ERROR(CompleteOptions(options));
  MSA_ASSIGN_OR_RETURN(const UniqueFd signals, BlockSignals());
  RaiseDescriptorLimit();
  nam::FabricServer::Prepare();
  MSA_ASSIGN_OR_RETURN(const SystemTopology topology, LoadTopologyFile(options.topology));
  MSA_ASSIGN_OR_RETURN(const std::size_t index, topology.SelectNode(options.name));
  const NodeSpec& spec = topology.nodes[index];
  if (spec.nam.value == 0)
    return Error(
        Code::kInvalidArgument,
        "node '{}' has no network attached memory in topology file '{}'; give it a line nam = \"1G\"",
        options.name, options.topology);
  if (options.backing.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::string backing, LoadNamBacking(options.topology));
    options.backing = (backing.empty() ? options.dir + "/nam" : backing) + "/" + options.name;
  }
  MSA_RETURN_IF_ERROR(PrepareDirectories(options));
  MSA_ASSIGN_OR_RETURN(
      const LockFile lock,
      LockFile::Acquire(options.lock(), fmt::format("NAM daemon {} of '{}'", options.name, options.dir)));
  ::unlink(options.socket().c_str());  // a dead one's: the lock is ours
  MSA_ASSIGN_OR_RETURN(std::unique_ptr<ExtentStore> store, ExtentStore::Open(options.backing));
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  MSA_RETURN_IF_ERROR(WatchSignals(*loop, signals.get()));
  const Status status = Serve(options, spec, *loop, std::move(store));
  ::unlink(options.socket().c_str());
  return status;
}

}  // namespace
}  // namespace msa::namd

int main(int argc, char** argv) {
  msa::SecureStandardDescriptors();
  msa::namd::DropForeignHandlers();
  auto parsed = msa::namd::ParseOptions(argc, argv);
  if (parsed.exit_now) return parsed.exit_code;
  msa::namd::StartLog(parsed.options);
  const msa::Status status = msa::namd::Run(parsed.options);
  if (status.ok()) return 0;
  spdlog::critical("{}", status.message());
  return msa::ExitCode(status.code());
}
