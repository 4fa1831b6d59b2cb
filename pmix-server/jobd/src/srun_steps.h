#pragma once
// The children of a job of Slurm: srun, run here for each part of a spawned namespace.

#include <functional>
#include <map>
#include <string>

#include "msa/launch/task.h"

#include "slurm_peer_messages.h"

namespace msa::jobd {

struct SrunOptions {
  std::string srun;      // looked up in PATH
  std::string msa_exec;  // what srun starts; becomes the child
};

// Runs under the launcher as namespaces of its own ("srun.<nspace>.<part>"), of which no member knows. One
// thread, the loop's.
class SrunSteps {
 public:
  struct Handlers {
    std::function<void(const SrunEnded&)> ended;  // to the head
    // Standard output of the children, for srun itself; and bytes of srun's standard error. False: enough for
    // now, until Resume.
    std::function<UniqueFd(const std::string& streams)> output;
    std::function<bool(const std::string& streams, const std::string& bytes)> error;
  };
  SrunSteps(launch::TaskRunner& launcher, SrunOptions options, Handlers handlers)
      : launcher_(launcher), options_(std::move(options)), handlers_(std::move(handlers)) {}

  static bool IsRun(const std::string& launcher_nspace) { return launcher_nspace.starts_with("srun."); }
  // A second order for the same part is ignored.
  void Start(const SrunStart& order);
  // Of the launcher.
  void OnOutput(const std::string& run, const std::string& data);
  void OnExit(const launch::TaskExit& exit);
  // The one who reads `streams` has caught up.
  void Resume(const std::string& streams);
  // SIGTERM to the srun of the part: it ends what it has not started.
  void End(const std::string& nspace, std::uint32_t part);
  std::size_t running() const noexcept { return runs_.size(); }

 private:
  struct Run {
    SrunStart order;
    std::string last;    // of its standard error
    bool spoke = false;  // there
  };
  static std::string NameOf(const std::string& nspace, std::uint32_t part);
  launch::TaskSpec SpecOf(const SrunStart& order) const;

  launch::TaskRunner& launcher_;
  const SrunOptions options_;
  const Handlers handlers_;
  std::map<std::string, Run> runs_;  // by the launcher's namespace
};

}  // namespace msa::jobd
