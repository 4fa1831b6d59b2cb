#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "msa/adapters/process/child_process.h"

#include "elf_needed.h"
#include "launcher_impl.h"

namespace msa::launch {

void TaskLauncher::Impl::Start(std::vector<TaskSpec> specs, StartCallback on_started) {
  Batch& batch = *batches_.emplace_back(std::make_unique<Batch>());
  batch.specs = std::move(specs);
  batch.paths.resize(batch.specs.size());
  batch.on_started = std::move(on_started);
  std::array<int, 2> ends{-1, -1};
  Status status;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    status = ErrnoError(errno, "make a status pipe; raise 'ulimit -n'");
  batch.status = UniqueFd(ends[0]);
  const UniqueFd writer(ends[1]);
  if (status.ok()) status = loop_.Watch(ends[0], 0, [this, &batch](std::uint32_t) { OnStatus(batch); });
  if (!status.ok()) {
    batch.status.reset();
    for (const TaskSpec& spec : batch.specs)
      batch.failures.push_back(
          {spec.rank, fmt::format("rank {} cannot be started: {}", spec.rank, status.message()), 125});
    Post([this, &batch] { FinishBatch(batch); });
    return;
  }
  // The reader must not wait for what the slowest trampoline has not written yet.
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  std::map<ProgramQuery, Program> programs;
  for (std::size_t index = 0; index < batch.specs.size(); ++index)
    StartOne(batch, index, writer.get(), programs);
  loop_.Modify(ends[0], EPOLLIN);
  if (!tasks_.empty()) ArmCollector();
}

void TaskLauncher::Impl::StartOne(Batch& batch, std::size_t index, int status_fd,
                                  std::map<ProgramQuery, Program>& programs) {
  TaskSpec& spec = batch.specs[index];
  const auto fail = [&](std::string message, std::int32_t code) {
    batch.failures.push_back({spec.rank, std::move(message), code});
  };
  if (tasks_.contains({spec.nspace, spec.rank}))
    return fail(fmt::format("rank {} of {} is running already", spec.rank, spec.nspace), 125);
  const auto [found, is_new] = programs.try_emplace(QueryOf(spec));
  Program& program = found->second;
  if (is_new) {
    program.lookup = FindProgram(found->first);
    if (!program.lookup.path.empty()) program.linked_mpi = LinkedMpi(program.lookup.path);
  }
  if (program.lookup.path.empty()) return fail(program.lookup.error.message, program.lookup.error.exit_code);
  batch.paths[index] = program.lookup.path;
  SpawnOutcome outcome = SpawnTask(spec, {.trampoline = options_.trampoline,
                                          .program = program.lookup.path,
                                          .index = static_cast<std::uint32_t>(index),
                                          .status_fd = status_fd});
  spec.in.reset();
  spec.out.reset();
  spec.err.reset();
  spec.channel.reset();
  if (!outcome.error.message.empty()) return fail(std::move(outcome.error.message), outcome.error.exit_code);
  batch.tasks.emplace(index, &AddTask(spec, std::move(outcome.task), program.linked_mpi));
}

TaskLauncher::Impl::Task& TaskLauncher::Impl::AddTask(const TaskSpec& spec, SpawnedTask spawned,
                                                      const std::string& linked_mpi) {
  const Key key{spec.nspace, spec.rank};
  Task& task = *tasks_.emplace(key, std::make_unique<Task>()).first->second;
  task.key = key;
  task.component = spec.component;
  task.pid = spawned.pid;
  task.pidfd = std::move(spawned.pidfd);
  task.started_at = SteadyNow();
  task.linked_mpi = linked_mpi;
  if (spawned.out) task.out = MakeOutputPipe(task, std::move(spawned.out), wire::Stream::kOut);
  if (spawned.err) task.err = MakeOutputPipe(task, std::move(spawned.err), wire::Stream::kErr);
  if (spawned.in)
    task.in = std::make_unique<InputPipe>(
        loop_, std::move(spawned.in), [this, &task](std::size_t taken, bool closed) {
          handlers_.on_stdin(task.key.first, task.key.second, taken, closed);
        });
  by_pid_[task.pid] = &task;
  // A number that the kernel gives again is no longer that of an ended task.
  for (auto& [nspace, leaders] : leaders_) leaders.erase(task.pid);
  leaders_[spec.nspace].insert(task.pid);
  return task;
}

void TaskLauncher::Impl::OnStatus(Batch& batch) {
  for (;;) {
    ExecFailure failure{};
    const ssize_t n = ::read(batch.status.get(), &failure, sizeof failure);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    const auto found = batch.tasks.find(failure.index);
    if (n != sizeof failure || found == batch.tasks.end()) break;
    const TaskSpec& spec = batch.specs[failure.index];
    ProgramError error = DescribeExecFailure(spec, batch.paths[failure.index], failure);
    batch.failures.push_back({spec.rank, std::move(error.message), error.exit_code});
    DropFailed(*found->second);
    batch.tasks.erase(found);
  }
  FinishBatch(batch);
}

void TaskLauncher::Impl::FinishBatch(Batch& batch) {
  if (batch.status) loop_.Unwatch(batch.status.get());
  const auto it =
      std::find_if(batches_.begin(), batches_.end(), [&](const auto& b) { return b.get() == &batch; });
  const std::unique_ptr<Batch> owned = std::move(*it);
  batches_.erase(it);
  std::vector<pid_t> started;
  for (const auto& [index, task] : batch.tasks) started.push_back(task->pid);
  std::stable_sort(batch.failures.begin(), batch.failures.end(),
                   [](const StartFailure& a, const StartFailure& b) { return a.rank < b.rank; });
  for (const auto& [index, task] : batch.tasks) task->executing = true;
  batch.on_started(std::move(started), std::move(batch.failures));
  for (const auto& [index, task] : batch.tasks) Begin(*task);
}

// It has reported and is leaving: the wait is for the kernel only.
void TaskLauncher::Impl::DropFailed(Task& task) {
  siginfo_t info{};
  if (!task.end)
    while (::waitid(P_PID, static_cast<id_t>(task.pid), &info, WEXITED) != 0 && errno == EINTR) continue;
  leaders_[task.key.first].erase(task.pid);
  if (task.in) task.in->Close();
  Retire(task);
}

void TaskLauncher::Impl::Begin(Task& task) {
  if (!paused_.contains(task.key.first)) {
    if (task.out) task.out->Resume();
    if (task.err) task.err->Resume();
  }
  if (task.end) {  // collected by a round of KillAll or the collector before its start was reported
    task.straggler = loop_.After(Millis(0), [this, &task] { OnStraggler(task); });
    return;
  }
  if (task.pidfd &&
      !loop_.Watch(task.pidfd.get(), EPOLLIN, [this, &task](std::uint32_t) { OnProcessEnd(task); }).ok())
    task.pidfd.reset();
  if (!task.connected) ScheduleInspection(task, Millis(0));
  ArmCollector();
}

Result<std::unique_ptr<TaskLauncher>> TaskLauncher::Create(EventLoop& loop, LauncherOptions options,
                                                           Handlers handlers) {
  if (::access(options.trampoline.c_str(), X_OK) != 0)
    return Error(Code::kInternal,
                 "exec trampoline '{}' cannot be executed: {}; reinstall msa or give --trampoline",
                 options.trampoline, ::strerror(errno));
  MSA_RETURN_IF_ERROR(BecomeSubreaper());
  // A program that closes its stdin early must not end the job daemon. Tasks start with the default again.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  if (::sigaction(SIGPIPE, &ignore, nullptr) != 0) return ErrnoError(errno, "ignore SIGPIPE");
  return std::unique_ptr<TaskLauncher>(
      new TaskLauncher(std::make_unique<Impl>(loop, std::move(options), std::move(handlers))));
}

TaskLauncher::TaskLauncher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TaskLauncher::~TaskLauncher() = default;

void TaskLauncher::Start(std::vector<TaskSpec> tasks,
                         std::function<void(std::vector<pid_t>, std::vector<StartFailure>)> on_started) {
  impl_->Start(std::move(tasks), std::move(on_started));
}
void TaskLauncher::MarkConnected(const std::string& nspace, Rank rank) { impl_->MarkConnected(nspace, rank); }
int TaskLauncher::Signal(const std::string& nspace, int signal) { return impl_->Signal(nspace, signal); }
void TaskLauncher::PauseOutput(const std::string& nspace) { impl_->PauseOutput(nspace); }
void TaskLauncher::ResumeOutput(const std::string& nspace) { impl_->ResumeOutput(nspace); }
void TaskLauncher::WriteStdin(const std::string& nspace, Rank rank, std::string data, bool eof) {
  impl_->WriteStdin(nspace, rank, std::move(data), eof);
}
std::size_t TaskLauncher::running() const noexcept { return impl_->Count(""); }
std::size_t TaskLauncher::running(const std::string& nspace) const { return impl_->Count(nspace); }
void TaskLauncher::KillAll(const std::string& nspace, std::function<void(int)> on_done) {
  impl_->KillAll(nspace, std::move(on_done));
}

}  // namespace msa::launch
