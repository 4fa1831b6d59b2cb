#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/clock.h"
#include "msa/topology/topology.h"

#include "local/daemon_table.h"
#include "local/local_paths.h"

namespace msa::cli {

struct DaemonSpec {
  std::string name;  // "controller", "noded-cn0", "namd-nam0"
  std::vector<std::string> argv;
  int stop_signal = 0;  // ends it, and what it started, in order
  int stop_phase = 0;   // lower phases end first
};

// Starts daemons and starts again whichever ends. Takes over those of a supervisor that was killed. One
// thread, the loop's.
class Supervisor {
 public:
  struct Options {
    std::string table;          // file of DaemonEntry
    std::string log_directory;  // <name>.log of each daemon
    Millis first_backoff{10};   // clients wait meanwhile; it doubles with each end that follows soon
    Millis last_backoff{5000};
    Millis steady_after{
        2000};  // up for so long: it does not fail at its start, the next back-off is the first
    Millis stop_limit{10'000};  // per phase, then SIGKILL
  };
  Supervisor(EventLoop& loop, Options options, std::vector<DaemonSpec> daemons,
             std::function<void(const std::string&)> log);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // A daemon that cannot be started now is tried again: see the log.
  void Start();
  // Ends all, phase by phase; then `done`.
  void Stop(std::function<void()> done);

  // The entries of the table, in the order of the daemons.
  std::vector<DaemonEntry> entries() const;

 private:
  struct Daemon {
    DaemonSpec spec;
    ProcessHandle process;  // pid 0: not running
    DaemonEntry entry;
    SteadyTime since;
    Millis backoff{0};
    std::optional<TimerId> timer;
  };
  void Launch(Daemon& daemon);
  bool Adopt(Daemon& daemon, const std::vector<DaemonEntry>& earlier);
  void Watch(Daemon& daemon);
  void OnEnd(Daemon& daemon);
  void Retry(Daemon& daemon);
  void StopPhase();
  void Save();

  EventLoop& loop_;
  const Options options_;
  const std::function<void(const std::string&)> log_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::function<void()> stopped_;
  bool stopping_ = false;
  int phase_ = 0;
  std::optional<TimerId> kill_timer_;
};

// The daemons of a local system: the controller, a node daemon for each node, a NAM daemon for each with
// network attached memory. `bin` holds the executables.
std::vector<DaemonSpec> LocalDaemons(const LocalPaths& paths, const std::string& bin,
                                     const SystemTopology& topology);

}  // namespace msa::cli
