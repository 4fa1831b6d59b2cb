#pragma once
// Tasks that Slurm starts: each comes by itself (SlurmTaskJoin), waits for its world, gets its environment
// and becomes its program; the node daemon tells of its end.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/clock.h"
#include "msa/base/slurm_messages.h"
#include "msa/base/unique_fd.h"
#include "msa/jobd/task_messages.h"
#include "msa/launch/task.h"

#include "slurm_peer_messages.h"

namespace msa::jobd {

struct SlurmTasksOptions {
  JobId job;
  Incarnation incarnation;
  std::string node;           // for texts and TaskEnd
  std::string job_socket;     // MSA_JOB_SOCKET
  Millis child_wait{10'000};  // for the description of a child that has come
  Millis end_wait{2'000};     // for the node daemon's word on a process that has ended
  // How long rank 0's standard error is kept after it: its step waits for that. Not at all if it ended well
  // and nothing was said on it, nor is written there by children.
  Millis voice_wait{1'000};
};

// A task's first message, and who sent it.
struct SlurmJoin {
  wire::SlurmTaskJoin join;
  pid_t pid = 0;
  std::vector<UniqueFd> descriptors;  // its standard output and error
};

// Of one job. Nothing is started, bound or collected here: that is Slurm's. A process is known by a pidfd
// from its join on, so that a signal never reaches another that got its number. One thread, the loop's;
// handlers run from the loop or from within the calls that name them, and may call any member.
class SlurmTasks final : public launch::TaskRunner {
 public:
  struct Handlers {
    // The answer to a join; its connection has served then. From any member.
    std::function<void(std::uint64_t client, const wire::SlurmTaskReady& ready, UniqueFd channel)> answer;
    // To the head. `joined` from the loop only.
    std::function<void(const SlurmJoined&)> joined;
    std::function<void(const SlurmLost&)> lost;
    std::function<void(const launch::TaskExit&)> on_exit;     // from the loop, OnTaskEnd and OnStepEnd
    std::function<void(const std::string& nspace)> on_heard;  // see Write
    std::function<void(const std::string&)> log;
  };
  SlurmTasks(EventLoop& loop, SlurmTasksOptions options, Handlers handlers);
  ~SlurmTasks() override;
  SlurmTasks(const SlurmTasks&) = delete;
  SlurmTasks& operator=(const SlurmTasks&) = delete;

  // The namespace of a step of Slurm.
  static std::string NamespaceOf(JobId job, Incarnation incarnation, StepId step);

  // It waits until Start, Refuse, or its connection's end. Refused at once where it is not of this job.
  void OnJoin(std::uint64_t client, SlurmJoin join);
  void OnClientGone(std::uint64_t client);
  // The node daemon's word. Unknown processes and steps: ignored.
  void OnTaskEnd(const wire::SlurmTaskEnd& end);
  void OnStepEnd(const wire::SlurmStepEnd& end);
  // The controller refuses a step that the node daemon had accepted: it does not start, unless it has.
  void OnWithdrawn(const wire::SlurmStepVerdict& verdict);
  // The head's.
  void Refuse(const SlurmRefused& refused);
  // Tasks of spawned namespaces that have not come will not.
  void NoMore(const SlurmNoMore& message);
  // What the process is to become: a child that has its answer. kNotFound: it is none.
  Result<wire::TaskExec> Exec(pid_t pid);
  // Copies of rank 0's standard output; invalid if it is not here, or gone.
  UniqueFd OutputOf(const std::string& nspace);
  // Bytes to the standard error of rank 0, as they are. False: it lags; on_heard tells when it has caught up.
  bool Write(const std::string& nspace, const std::string& bytes);
  // A line to the standard error of rank 0, if that is here and its end not long ago. Never waits.
  void Say(const SlurmNotice& notice);

  void Start(std::vector<launch::TaskSpec> tasks, Started on_started) override;
  void MarkConnected(const std::string&, Rank) override {}
  // To the processes alone, not to what they started.
  int Signal(const std::string& nspace, int signal) override;
  // See msa/base/leave_order.h.
  int AskToLeave(const std::string& nspace, std::int32_t exit_code) override;
  void PauseOutput(const std::string&) override {}
  void ResumeOutput(const std::string&) override {}
  void WriteStdin(const std::string&, Rank, std::string, bool) override {}
  // Waiting ones are refused. Does not wait: a process that got SIGKILL is Slurm's to collect.
  void KillAll(const std::string& nspace, std::function<void(int survivors)> on_done) override;
  std::vector<std::string> Inherited(const std::string& nspace, Rank rank) const override;
  void Forget(const std::string& nspace) override;

  std::size_t waiting() const noexcept { return by_client_.size(); }

 private:
  using Key = std::pair<std::string, Rank>;
  // A call of Start, until its tasks run or do not.
  struct Batch {
    Started on_started;
    std::size_t left = 0;
    std::vector<pid_t> started;
    std::vector<launch::StartFailure> failures;
  };
  // A child by its ticket, part and number.
  using ChildKey = std::tuple<std::string, std::uint32_t, std::uint32_t>;
  struct Expected {
    launch::TaskSpec spec;
    std::shared_ptr<Batch> batch;
  };
  struct Task {
    Key key;
    StepId step;
    wire::SlurmTaskJoin join;
    ProcessHandle process;
    UniqueFd out, err;         // of rank 0
    std::uint64_t client = 0;  // 0: it has its answer
    // Of a child: what it becomes, until it has; and those who wait for that.
    std::optional<launch::TaskSpec> spec;
    std::shared_ptr<Batch> batch;
    std::uint32_t component = 0;
    SteadyTime started_at;
    TimerId unreported{};
  };
  // Where rank 0 of a namespace reads what msa has to say.
  struct Voice {
    UniqueFd out, err;
    std::string unsaid;
    bool used = false;    // something was said, or is to be
    bool waits = false;   // Speak is due
    bool lagged = false;  // on_heard is due
    TimerId timer{};
  };

  Status Check(const SlurmJoin& join) const;
  Result<std::unique_ptr<Task>> MakeTask(std::uint64_t client, const SlurmJoin& join);
  Task& Add(std::unique_ptr<Task> task);
  void TellHead();
  void Remove(std::map<Key, std::unique_ptr<Task>>::iterator task);
  void Lose(StepId step, const std::string& reason);
  void AnswerRefusal(std::uint64_t client, const std::string& text);
  void OnProcessGone(Task& task);
  void End(Task& task, int status);
  int SendTo(const std::string& nspace, const std::function<bool(const ProcessHandle&)>& send) const;
  bool StartOne(launch::TaskSpec& spec);
  bool Watch(Task& task);
  void OnChild(std::uint64_t client, SlurmJoin join);
  void StartChild(std::unique_ptr<Task> task, Expected expected);
  void Settle(const std::shared_ptr<Batch>& batch, std::optional<pid_t> started,
              std::optional<launch::StartFailure> failure);
  void FailChildren(const std::function<bool(const ChildKey&)>& which, const std::string& text);
  void Speak(const std::string& nspace);
  void SpeakLater(const std::string& nspace, Voice& voice);
  void DropVoice(const std::string& nspace);

  EventLoop& loop_;
  const SlurmTasksOptions options_;
  const Handlers handlers_;
  std::map<Key, std::unique_ptr<Task>> tasks_;
  std::unordered_map<pid_t, Task*> by_pid_;
  std::unordered_map<std::uint64_t, Task*> by_client_;
  std::vector<Key> fresh_;  // joined, the head was not told
  std::map<ChildKey, Expected> expected_;
  std::map<ChildKey, std::unique_ptr<Task>> early_;  // children that came before their description
  std::map<std::string, Voice> voices_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace msa::jobd
