#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/slurm_messages.h"
#include "msa/base/wire.h"

#include "node_paths.h"
#include "plugin_socket.h"

namespace msa::node {

// The steps that Slurm has started on this node, between its plugin, the controller and the job daemons: the
// controller is told of them and judges, a step that it accepts begins when the job's daemon is up here, and
// ends with it. A step like one that it has accepted for the same job begins at once: the controller is told
// beside it, and may withdraw it. One thread, the loop's.
class SlurmSteps {
 public:
  struct Outlets {
    // False: there is no session with the controller.
    std::function<bool(wire::Frame)> to_controller;
    std::function<void(const JobKey&, wire::Frame)> to_jobd;
    // What tasks of the job connect to; none: its job daemon is not up.
    std::function<std::optional<std::string>(const JobKey&)> job_socket;
    // A step of the job has begun here, which will need the job's daemon: before the controller has judged
    // it.
    std::function<void(JobId, const UserIdentity&)> expect;
  };
  // Nobody waits for the word that a task has ended well, but for that of rank 0, whose streams the job
  // daemon holds: in the last milliseconds of a short step, and so of its srun, the others need not run.
  static constexpr Millis kEndsLater{25};

  SlurmSteps(EventLoop& loop, PluginSocket::Options options, Outlets outlets, Millis ends_later = kEndsLater);
  ~SlurmSteps();

  // Opens the socket. Errors as ListenUnix.
  Status Listen() { return socket_.Listen(); }

  // A controller has taken this node's registration: it is told all that it may not know.
  void OnRegistered();
  // A message of the controller's. kInvalidArgument: none of those that are for here.
  Status OnController(const wire::Frame& frame);
  // The controller starts the job here: ends of its components are those of a run before.
  void OnLaunch(JobId job);
  // A job daemon has its job.
  void OnHere(const JobKey& key);
  // The controller has a word for the job's daemon, which is to know before how tasks have ended.
  void OnCommand(const JobKey& key) { TellEnds(key); }
  // The job has ended; its job daemon may stay for its output.
  void OnOver(const JobKey& key);
  // The controller ends the job here.
  void OnQuit(const JobKey& key, const std::string& reason);
  // Its job daemon is gone.
  void OnGone(const JobKey& key, const std::string& reason);

 private:
  using StepKey = std::pair<JobId, StepId>;
  struct Step {
    std::size_t parts = 0;                       // connections: one for each component
    JobKey job;                                  // that has accepted it
    std::optional<wire::SlurmStepVerdict> held;  // until its job daemon is up
    bool accepted = false;                       // and told so
    bool asked = false;                          // a part waits, or waited, for the controller
    std::string quit_reason;
    std::map<std::int32_t, ProcessHandle> tasks;  // by pid
    // Of a step that was accepted here: the controller is told a moment later, of one that is over by then
    // not at all.
    TimerId tell{};
    bool told = true;
    std::chrono::steady_clock::time_point accepted_here;
  };
  // Of a component of a job: what the controller has accepted, so that no question is left where it comes
  // again.
  struct Known {
    JobKey job;
    UserIdentity user;
    wire::SlurmOptions options;
    std::vector<std::uint16_t> cores;
    std::uint32_t restart_count = 0;
    std::uint64_t start_time = 0;
    std::set<std::string> nodes;
  };
  PluginSocket::Handlers SocketHandlers();
  void OnBegin(wire::SlurmStepBegin begin);
  void OnTaskBegin(const wire::SlurmTaskBegin& begin);
  void OnTaskEnd(const wire::SlurmTaskEnd& end);
  void OnStepEnd(const wire::SlurmStepEnd& end);
  void OnJobEnd(const wire::SlurmJobEnd& end);
  void OnVerdict(const wire::SlurmStepVerdict& verdict);
  void Release(Step& step);
  bool AcceptHere(Step& step, const wire::SlurmStepBegin& begin);
  void Tell(const StepKey& key, Step& step);
  void TellPart(const Step& step, PluginSocket::Part part);
  void Learn(const wire::SlurmStepVerdict& verdict);
  void Forget(const JobKey& job);
  void Abort(const StepKey& key, Step& step, const std::string& reason);
  void TellEnd(const JobKey& job, wire::Frame frame, bool later);
  void TellEnds(const JobKey& job);

  EventLoop& loop_;
  const std::string node_;
  Outlets outlets_;
  const Millis ends_later_;
  std::map<std::pair<JobId, JobId>, Known> known_;  // by leader and component
  std::map<StepKey, Step> steps_;
  // Ends that a job daemon is told a moment later, in order.
  struct Ends {
    std::vector<wire::Frame> frames;
    TimerId timer{};
  };
  std::map<JobKey, Ends> ends_;
  // Told at each registration until the job begins here again: what was sent when a session broke is lost.
  std::deque<wire::SlurmJobEnd> job_ends_;
  PluginSocket socket_;
};

}  // namespace msa::node
