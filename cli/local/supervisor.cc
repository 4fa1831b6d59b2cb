#include "local/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "msa/adapters/process/files.h"

namespace msa::cli {
namespace {

// A log that has grown beyond this is set aside once, as .1, when its daemon starts.
constexpr off_t kMaxLogBytes = off_t{16} << 20;

Result<UniqueFd> OpenLog(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && info.st_size > kMaxLogBytes)
    ::rename(path.c_str(), (path + ".1").c_str());
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoError(errno, "open log '" + path + "'");
  return fd;
}

}  // namespace

std::vector<DaemonSpec> LocalDaemons(const LocalPaths& paths, const std::string& bin,
                                     const SystemTopology& topology) {
  std::vector<DaemonSpec> out;
  const auto add = [&](const std::string& name, std::vector<std::string> argv) {
    argv.insert(argv.end(), {"--dir", paths.dir(), "--topology", paths.topology()});
    const DaemonEnd end = DaemonEndOf(name);
    out.push_back({name, std::move(argv), end.signal, end.phase});
  };
  add("controller", {bin + "/msa-controllerd"});
  for (const NodeSpec& node : topology.nodes) {
    add("noded-" + node.name, {bin + "/msa-noded", "--name", node.name});
    if (node.nam.value > 0) add("namd-" + node.name, {bin + "/msa-namd", "--name", node.name});
  }
  return out;
}

Supervisor::Supervisor(EventLoop& loop, Options options, std::vector<DaemonSpec> daemons,
                       std::function<void(const std::string&)> log)
    : loop_(loop), options_(std::move(options)), log_(std::move(log)) {
  for (DaemonSpec& spec : daemons) {
    auto daemon = std::make_unique<Daemon>();
    daemon->entry.name = spec.name;
    daemon->spec = std::move(spec);
    daemons_.push_back(std::move(daemon));
  }
}

Supervisor::~Supervisor() {
  for (const auto& daemon : daemons_) {
    if (daemon->timer) loop_.Cancel(*daemon->timer);
    if (daemon->process.pidfd) loop_.Unwatch(daemon->process.pidfd.get());
  }
  if (kill_timer_) loop_.Cancel(*kill_timer_);
}

std::vector<DaemonEntry> Supervisor::entries() const {
  std::vector<DaemonEntry> out;
  for (const auto& daemon : daemons_) out.push_back(daemon->entry);
  return out;
}

void Supervisor::Start() {
  const std::vector<DaemonEntry> earlier = LoadDaemonTable(options_.table);
  for (const auto& daemon : daemons_)
    if (!Adopt(*daemon, earlier)) Launch(*daemon);
  Save();
}

bool Supervisor::Adopt(Daemon& daemon, const std::vector<DaemonEntry>& earlier) {
  const auto it = std::find_if(earlier.begin(), earlier.end(),
                               [&](const DaemonEntry& e) { return e.name == daemon.spec.name; });
  if (it == earlier.end() || !IsAlive(*it)) return false;
  Result<ProcessHandle> process = OpenProcess(it->pid);
  // Between the look and the opening the number may have passed on.
  if (!process.ok() || !IsAlive(*it)) return false;
  daemon.process = *std::move(process);
  daemon.entry = *it;
  daemon.since = SteadyNow();
  log_(fmt::format("{} runs already with pid {}", daemon.spec.name, it->pid));
  Watch(daemon);
  return true;
}

void Supervisor::Launch(Daemon& daemon) {
  daemon.timer.reset();
  const Result<UniqueFd> log = OpenLog(fmt::format("{}/{}.log", options_.log_directory, daemon.spec.name));
  Result<ProcessHandle> process = log.status();
  if (log.ok()) {
    SpawnSpec spec;
    spec.argv = daemon.spec.argv;
    spec.env = CurrentEnvironment();
    spec.out = log->get();
    spec.err = log->get();
    process = Spawn(spec);
  }
  daemon.since = SteadyNow();
  if (!process.ok()) {
    log_(fmt::format("{}: {}", daemon.spec.name, process.status().message()));
    return Retry(daemon);
  }
  daemon.process = *std::move(process);
  daemon.entry.pid = daemon.process.pid;
  daemon.entry.start_ticks = ProcessStartTicks(daemon.process.pid);
  daemon.entry.started_at_ms = ToUnixMillis(Now());
  log_(fmt::format("{} started with pid {}", daemon.spec.name, daemon.process.pid));
  Watch(daemon);
}

void Supervisor::Watch(Daemon& daemon) {
  const Status status =
      loop_.Watch(daemon.process.pidfd.get(), EPOLLIN, [this, &daemon](std::uint32_t) { OnEnd(daemon); });
  if (!status.ok()) log_(fmt::format("{} is not watched: {}", daemon.spec.name, status.message()));
}

void Supervisor::OnEnd(Daemon& daemon) {
  loop_.Unwatch(daemon.process.pidfd.get());
  const std::optional<int> how = ReapChild(daemon.process.pid);
  log_(fmt::format("{} with pid {} {}", daemon.spec.name, daemon.process.pid,
                   how ? DescribeWaitStatus(*how) : "has gone"));
  daemon.process = {};
  daemon.entry.pid = 0;
  if (SteadyNow() - daemon.since >= options_.steady_after) daemon.backoff = Millis(0);
  if (stopping_) {
    StopPhase();
  } else {
    Retry(daemon);
  }
  Save();
}

void Supervisor::Retry(Daemon& daemon) {
  daemon.backoff = daemon.backoff.count() == 0 ? options_.first_backoff
                                               : std::min(daemon.backoff * 2, options_.last_backoff);
  log_(fmt::format("{} starts again in {} ms", daemon.spec.name, daemon.backoff.count()));
  daemon.timer = loop_.After(daemon.backoff, [this, &daemon] {
    daemon.entry.restarts += 1;
    Launch(daemon);
    Save();
  });
}

void Supervisor::Stop(std::function<void()> done) {
  if (std::exchange(stopping_, true)) return;
  stopped_ = std::move(done);
  for (const auto& daemon : daemons_)
    if (daemon->timer) loop_.Cancel(*std::exchange(daemon->timer, std::nullopt));
  phase_ = -1;
  StopPhase();
}

// Goes on to the first phase that has running daemons.
void Supervisor::StopPhase() {
  int next = -1;
  for (const auto& daemon : daemons_)
    if (daemon->process.pid != 0 && (next < 0 || daemon->spec.stop_phase < next))
      next = daemon->spec.stop_phase;
  if (next >= 0 && next == phase_) return;  // the rest of this phase still runs
  if (kill_timer_) loop_.Cancel(*std::exchange(kill_timer_, std::nullopt));
  phase_ = next;
  if (next < 0) {
    loop_.Post(std::exchange(stopped_, nullptr));
    return;
  }
  for (const auto& daemon : daemons_)
    if (daemon->process.pid != 0 && daemon->spec.stop_phase == next)
      SignalProcess(daemon->process, daemon->spec.stop_signal);
  kill_timer_ = loop_.After(options_.stop_limit, [this] {
    kill_timer_.reset();
    for (const auto& daemon : daemons_) {
      if (daemon->process.pid == 0 || daemon->spec.stop_phase != phase_) continue;
      log_(fmt::format("{} with pid {} does not end; it is killed", daemon->spec.name, daemon->process.pid));
      SignalProcess(daemon->process, SIGKILL);
    }
  });
}

void Supervisor::Save() {
  const Status status = WriteFileAtomically(options_.table, FormatDaemonTable(entries()));
  if (!status.ok()) log_("the list of daemons is not written: " + status.message());
}

}  // namespace msa::cli
