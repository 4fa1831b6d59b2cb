#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "launcher_impl.h"

namespace msa::launch {
namespace {

// A grandchild that keeps the pipes delays the report of a task's end by this much at most.
constexpr Millis kStragglerWait{200};
// Strays have no pidfd: their zombies are collected at this pace, tasks too where the kernel gives no pidfd.
constexpr Millis kCollectStrays{1000};
constexpr Millis kCollectTasks{20};
// The search for singletons takes at most a twentieth of the time.
constexpr int kInspectionShare = 20;

}  // namespace

TaskLauncher::Impl::Impl(EventLoop& loop, LauncherOptions options, Handlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

TaskLauncher::Impl::~Impl() {
  *alive_ = false;
  Signal("", SIGKILL);
  for (const auto& [key, task] : tasks_) {
    loop_.Cancel(task->straggler);
    loop_.Cancel(task->inspection);
    if (task->pidfd) loop_.Unwatch(task->pidfd.get());
  }
  for (const auto& batch : batches_)
    if (batch->status) loop_.Unwatch(batch->status.get());
  for (const auto& job : kills_) loop_.Cancel(job->timer);
  loop_.Cancel(collector_);
}

void TaskLauncher::Impl::Post(std::function<void()> work) {
  loop_.Post([alive = std::weak_ptr<bool>(alive_), work = std::move(work)] {
    if (!alive.expired()) work();
  });
}

std::size_t TaskLauncher::Impl::Count(const std::string& nspace) const {
  if (nspace.empty()) return tasks_.size();
  return static_cast<std::size_t>(
      std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& t) { return t.first.first == nspace; }));
}

std::unique_ptr<OutputPipe> TaskLauncher::Impl::MakeOutputPipe(Task& task, UniqueFd fd, wire::Stream stream) {
  OutputPipe::Handlers handlers;
  handlers.on_data = [this, &task, stream](std::string data) {
    handlers_.on_output(task.key.first, task.key.second, stream, std::move(data));
  };
  handlers.on_end = [this, &task] { DeliverIfComplete(task); };
  return std::make_unique<OutputPipe>(loop_, std::move(fd), std::move(handlers));
}

void TaskLauncher::Impl::PauseOutput(const std::string& nspace) {
  paused_.insert(nspace);
  for (const auto& [key, task] : tasks_) {
    if (key.first != nspace) continue;
    if (task->out) task->out->Pause();
    if (task->err) task->err->Pause();
  }
}

void TaskLauncher::Impl::ResumeOutput(const std::string& nspace) {
  if (paused_.erase(nspace) == 0) return;
  for (const auto& [key, task] : tasks_) {
    if (key.first != nspace || !task->executing) continue;
    if (task->out) task->out->Resume();
    if (task->err) task->err->Resume();
    if (!task->overdue) continue;
    task->overdue = false;
    task->straggler = loop_.After(Millis(0), [this, t = task.get()] { OnStraggler(*t); });
  }
}

void TaskLauncher::Impl::WriteStdin(const std::string& nspace, Rank rank, std::string data, bool eof) {
  const auto it = tasks_.find({nspace, rank});
  if (it != tasks_.end() && it->second->in) it->second->in->Write(std::move(data), eof);
}

void TaskLauncher::Impl::OnProcessEnd(Task& task) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(task.pid), &info, WEXITED | WNOHANG) != 0 && errno == EINTR)
    continue;
  if (info.si_pid != task.pid) return;
  wire::TaskEnd end;
  end.rank = task.key.second;
  end.component = task.component;
  end.node = options_.node;
  (info.si_code == CLD_EXITED ? end.exit_code : end.signal) = info.si_status;
  end.core_dumped = info.si_code == CLD_DUMPED;
  task.end = std::move(end);
  task.lifetime = std::chrono::duration_cast<Millis>(SteadyNow() - task.started_at);
  loop_.Cancel(task.inspection);
  if (task.pidfd) loop_.Unwatch(task.pidfd.get());
  task.pidfd.reset();
  by_pid_.erase(task.pid);
  if (!task.executing) return;  // Begin goes on
  task.straggler = loop_.After(kStragglerWait, [this, &task] { OnStraggler(task); });
  DeliverIfComplete(task);
}

void TaskLauncher::Impl::OnStraggler(Task& task) {
  for (OutputPipe* pipe : {task.out.get(), task.err.get()})
    if (pipe != nullptr && pipe->open()) pipe->DrainAndClose();
  const bool complete = !(task.out && task.out->open()) && !(task.err && task.err->open());
  task.overdue = !complete;
  if (complete) Deliver(task);
}

void TaskLauncher::Impl::DeliverIfComplete(Task& task) {
  if (!task.end || (task.out && task.out->open()) || (task.err && task.err->open())) return;
  Deliver(task);
}

void TaskLauncher::Impl::Deliver(Task& task) {
  loop_.Cancel(task.straggler);
  if (task.in && task.in->open()) {
    task.in->Close();
    handlers_.on_stdin(task.key.first, task.key.second, 0, true);
  }
  TaskExit exit;
  exit.nspace = task.key.first;
  exit.end = *task.end;
  exit.lifetime = task.lifetime;
  exit.looks_like_singleton = !task.connected && task.evidence.initialised;
  exit.mpi_library = task.evidence.library.empty() ? task.linked_mpi : task.evidence.library;
  Retire(task);
  handlers_.on_exit(exit);
}

// Callbacks of the task may be on the stack: it goes in the loop's next round.
void TaskLauncher::Impl::Retire(Task& task) {
  by_pid_.erase(task.pid);
  const auto it = tasks_.find(task.key);
  delivered_.push_back(std::move(it->second));
  tasks_.erase(it);
  if (delivered_.size() == 1) Post([this] { delivered_.clear(); });
}

void TaskLauncher::Impl::MarkConnected(const std::string& nspace, Rank rank) {
  const auto it = tasks_.find({nspace, rank});
  if (it == tasks_.end()) return;
  it->second->connected = true;
  loop_.Cancel(it->second->inspection);
}

void TaskLauncher::Impl::ScheduleInspection(Task& task, Millis at_least) {
  const std::string& library = task.evidence.library.empty() ? task.linked_mpi : task.evidence.library;
  const Millis lived = std::chrono::duration_cast<Millis>(SteadyNow() - task.started_at);
  Millis due = InspectionDue(task.inspections++, library);
  while (due <= lived) due = InspectionDue(task.inspections++, library);
  task.inspection = loop_.After(std::max(due - lived, at_least), [this, &task] { Inspect(task); });
}

void TaskLauncher::Impl::Inspect(Task& task) {
  const SteadyTime begin = SteadyNow();
  MpiEvidence evidence = InspectProcesses(task.pid);
  if (!evidence.library.empty()) task.evidence.library = std::move(evidence.library);
  task.evidence.initialised = evidence.initialised;
  if (task.evidence.initialised) return;  // what it has done it has done
  ScheduleInspection(task, std::chrono::duration_cast<Millis>((SteadyNow() - begin) * kInspectionShare));
}

TaskLauncher::Impl::Children TaskLauncher::Impl::CollectChildren() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return Children::kNone;
    }
    if (info.si_pid == 0) return Children::kSome;
    const auto it = by_pid_.find(info.si_pid);
    if (it != by_pid_.end())
      OnProcessEnd(*it->second);
    else
      ::waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
  }
}

void TaskLauncher::Impl::ArmCollector() {
  loop_.Cancel(collector_);
  const bool all_watched = std::all_of(by_pid_.begin(), by_pid_.end(),
                                       [](const auto& t) { return static_cast<bool>(t.second->pidfd); });
  collector_ = loop_.After(all_watched ? kCollectStrays : kCollectTasks, [this] {
    if (CollectChildren() == Children::kSome) ArmCollector();
  });
}

}  // namespace msa::launch
