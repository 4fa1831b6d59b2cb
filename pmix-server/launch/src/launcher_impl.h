#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "msa/base/clock.h"
#include "msa/launch/task.h"

#include "program.h"
#include "singleton.h"
#include "spawn_task.h"
#include "stream_pipe.h"

namespace msa::launch {

// launcher_start.cc: Start. launcher_watch.cc: output, ends, singletons. launcher_kill.cc: signals and
// KillAll.
class TaskLauncher::Impl {
 public:
  Impl(EventLoop& loop, LauncherOptions options, Handlers handlers);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  using StartCallback = std::function<void(std::vector<pid_t>, std::vector<StartFailure>)>;
  void Start(std::vector<TaskSpec> specs, StartCallback on_started);
  void MarkConnected(const std::string& nspace, Rank rank);
  int Signal(const std::string& nspace, int signal);
  void PauseOutput(const std::string& nspace);
  void ResumeOutput(const std::string& nspace);
  void WriteStdin(const std::string& nspace, Rank rank, std::string data, bool eof);
  std::size_t Count(const std::string& nspace) const;
  void KillAll(const std::string& nspace, std::function<void(int)> on_done);

 private:
  using Key = std::pair<std::string, Rank>;

  struct Task {
    Key key;
    std::uint32_t component = 0;
    pid_t pid = 0;
    UniqueFd pidfd;
    SteadyTime started_at;
    bool executing = false;            // its start was reported
    std::optional<wire::TaskEnd> end;  // collected
    Millis lifetime{0};
    std::unique_ptr<OutputPipe> out;
    std::unique_ptr<OutputPipe> err;
    std::unique_ptr<InputPipe> in;
    TimerId straggler{};   // the wait for grandchildren that keep its pipes
    bool overdue = false;  // that wait is over, but output is paused
    TimerId inspection{};
    int inspections = 0;
    std::string linked_mpi;
    MpiEvidence evidence;
    bool connected = false;
  };

  // What is looked up once per program, not per rank.
  struct Program {
    Lookup lookup;
    std::string linked_mpi;
  };

  // One call of Start, until all its trampolines have exec'ed or failed.
  struct Batch {
    std::vector<TaskSpec> specs;
    std::vector<std::string> paths;      // of the programs, by index of the spec
    std::map<std::size_t, Task*> tasks;  // by index of the spec
    std::vector<StartFailure> failures;
    UniqueFd status;
    StartCallback on_started;
  };

  struct KillJob {
    std::string nspace;
    std::function<void(int)> on_done;
    SteadyTime deadline;
    int round = 0;
    int clean_rounds = 0;
    TimerId timer{};
  };

  // launcher_start.cc
  void StartOne(Batch& batch, std::size_t index, int status_fd, std::map<ProgramQuery, Program>& programs);
  Task& AddTask(const TaskSpec& spec, SpawnedTask spawned, const std::string& linked_mpi);
  void OnStatus(Batch& batch);
  void FinishBatch(Batch& batch);
  void DropFailed(Task& task);
  void Begin(Task& task);

  // launcher_watch.cc
  std::unique_ptr<OutputPipe> MakeOutputPipe(Task& task, UniqueFd fd, wire::Stream stream);
  void OnProcessEnd(Task& task);
  void OnStraggler(Task& task);
  void DeliverIfComplete(Task& task);
  void Deliver(Task& task);
  void Retire(Task& task);
  void Inspect(Task& task);
  void ScheduleInspection(Task& task, Millis at_least);
  enum class Children : std::uint8_t { kNone, kSome };
  // Collects every child that has ended, strays included.
  Children CollectChildren();
  void ArmCollector();

  // launcher_kill.cc
  void KillRound(KillJob& job);
  void FinishKill(KillJob& job, int survivors);
  std::vector<pid_t> FindLeftovers(const std::string& nspace) const;
  bool OnlyOthersRun(const std::string& nspace) const;

  // Runs `work` from the loop, unless this object is gone by then.
  void Post(std::function<void()> work);

  EventLoop& loop_;
  const LauncherOptions options_;
  const Handlers handlers_;
  std::map<Key, std::unique_ptr<Task>> tasks_;
  std::unordered_map<pid_t, Task*> by_pid_;
  std::vector<std::unique_ptr<Task>> delivered_;  // until their callbacks have returned
  std::map<std::string, std::set<pid_t>>
      leaders_;  // of each namespace, ended ones included, until it is killed
  std::list<std::unique_ptr<Batch>> batches_;
  std::list<std::unique_ptr<KillJob>> kills_;
  TimerId collector_{};
  std::set<std::string> paused_;  // namespaces
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace msa::launch
