#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/clock.h"
#include "msa/support/eventually.h"
#include "msa/support/scratch_directory.h"

namespace msa::test {

using support::Eventually;

struct ControllerSettings {
  std::vector<std::string> arguments;    // besides --dir and --topology
  std::vector<std::string> environment;  // "K=V", besides the test's own
  std::optional<int> file_size_kib;      // RLIMIT_FSIZE: a disk that is full
};

// The real msa-controllerd in a directory of its own.
class ControllerProcess {
 public:
  ControllerProcess() {
    directory_.Write("topology.toml",
                     "[system]\nname = \"test\"\n"
                     "[[module]]\nname = \"cluster\"\nid = 0\n"
                     "[[module.node]]\nnames = \"cn[0-1]\"\ncores = 4\n"
                     "[[module]]\nname = \"booster\"\nid = 1\n"
                     "[[module.node]]\nnames = \"bn0\"\ncores = 8\n");
  }
  ~ControllerProcess() {
    if (process_) Kill();
    if (::testing::Test::HasFailure()) std::fprintf(stderr, "%s", Log().c_str());
  }

  std::string File(const std::string& name) const { return directory_ / name; }
  std::string Address() const { return "unix:" + File("controller.sock"); }
  std::string Log() const { return ReadTail(File("log"), 1 << 20); }

  // Starts it; returns when it listens.
  void Start(const ControllerSettings& settings = {}) {
    Launch(settings);
    ASSERT_TRUE(Eventually(Millis(30'000), [this] { return ConnectUnix(File("controller.sock")).ok(); }))
        << Log();
  }

  void Launch(const ControllerSettings& settings) {
    SpawnSpec spec;
    if (settings.file_size_kib) {
      spec.argv = {"/bin/sh", "-c",
                   "ulimit -f " + std::to_string(*settings.file_size_kib * 2) + " && exec \"$0\" \"$@\""};
    }
    for (const std::string& argument : {std::string(MSA_CONTROLLERD), std::string("--dir"), directory_.path(),
                                        std::string("--topology"), File("topology.toml")}) {
      spec.argv.push_back(argument);
    }
    spec.argv.insert(spec.argv.end(), settings.arguments.begin(), settings.arguments.end());
    spec.env = CurrentEnvironment();
    spec.env.insert(spec.env.end(), settings.environment.begin(), settings.environment.end());
    const UniqueFd log(::open(File("log").c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600));
    spec.err = log.get();
    Result<ProcessHandle> process = Spawn(spec);
    ASSERT_TRUE(process.ok()) << process.status().ToString();
    process_ = *std::move(process);
  }

  pid_t pid() const { return process_->pid; }

  // SIGKILL; returns when it is gone.
  void Kill() {
    SignalProcess(*process_, SIGKILL);
    (void)Wait();
  }
  // Waits for its end and returns wait(2)'s status.
  int Wait() {
    int status = 0;
    ::waitpid(process_->pid, &status, 0);
    process_.reset();
    return status;
  }
  int Terminate() {
    SignalProcess(*process_, SIGTERM);
    return Wait();
  }

 private:
  support::ScratchDirectory directory_;
  std::optional<ProcessHandle> process_;
};

}  // namespace msa::test
