#include "slurm_tasks.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <climits>

#include "msa/base/leave_order.h"
#include "msa/base/slurm_het.h"

#include "task_env.h"

namespace msa::jobd {
namespace {

// A reader that lags: what is said to it is bounded.
constexpr std::size_t kMostUnsaid = 64 * 1024;
constexpr Millis kSpeakAgain{20};

// A terminal that is writable (srun --pty) may take less than a line and wait with the rest: a description of
// its own may be non-blocking, the program's may not. A terminal that may not be opened stays as it is.
void PreferOwnDescription(UniqueFd& terminal) {
  if (::isatty(terminal.get()) == 0) return;
  UniqueFd own(::open(fmt::format("/proc/self/fd/{}", terminal.get()).c_str(),
                      O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own) terminal = std::move(own);
}

// SIGTERM with an order to leave, as sigqueue(3) sends it.
bool OrderToLeave(const ProcessHandle& process, std::int32_t exit_code) {
  siginfo_t info{};
  info.si_signo = SIGTERM;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = MsaLeaveOrder(exit_code);
  return process.pidfd && ::syscall(SYS_pidfd_send_signal, process.pidfd.get(), info.si_signo, &info, 0) == 0;
}

}  // namespace

SlurmTasks::SlurmTasks(EventLoop& loop, SlurmTasksOptions options, Handlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

SlurmTasks::~SlurmTasks() {
  for (const auto& [key, task] : tasks_) {
    loop_.Unwatch(task->process.pidfd.get());
    loop_.Cancel(task->unreported);
  }
  for (const auto& [key, task] : early_) loop_.Cancel(task->unreported);
  for (const auto& [nspace, voice] : voices_) loop_.Cancel(voice.timer);
}

std::string SlurmTasks::NamespaceOf(JobId job, Incarnation incarnation, StepId step) {
  return fmt::format("msa.{}.{}.{}", job, incarnation, step);
}

// ------------------------------------------------------------------------------------------ joins

Status SlurmTasks::Check(const SlurmJoin& join) const {
  const wire::SlurmTaskJoin& task = join.join;
  if (task.version != wire::kSlurmPluginVersion)
    return Error(Code::kFailedPrecondition,
                 "msa_spank.so speaks version {} of its protocol, msa-jobd {}; install both of one release",
                 task.version, wire::kSlurmPluginVersion);
  if (task.job != options_.job)
    return Error(Code::kInvalidArgument, "task {} is of job {}, this job daemon serves job {}", task.rank,
                 task.job, options_.job);
  if (task.ntasks == 0 || task.rank >= task.ntasks)
    return Error(Code::kOutOfRange, "step {} has {} tasks, and no task {}", task.step, task.ntasks,
                 task.rank);
  if (task.argv.empty())
    return Error(Code::kInvalidArgument, "task {} of step {} names no program", task.rank, task.step);
  const auto known =
      tasks_.find({NamespaceOf(options_.job, options_.incarnation, task.step), Rank(task.rank)});
  if (known != tasks_.end())
    return Error(Code::kAlreadyExists, "step {} has a task {} already (pid {})", task.step, task.rank,
                 known->second->process.pid);
  return Status::Ok();
}

void SlurmTasks::OnJoin(std::uint64_t client, SlurmJoin join) {
  if (!join.join.ticket.empty()) return OnChild(client, std::move(join));
  if (const Status fit = Check(join); !fit.ok()) return AnswerRefusal(client, fit.message());
  auto task = MakeTask(client, join);
  if (!task.ok()) {
    AnswerRefusal(client, task.status().message());
    return Lose(join.join.step, task.status().message());
  }
  (*task)->key = {NamespaceOf(options_.job, options_.incarnation, (*task)->step), Rank(join.join.rank)};
  // The others' are closed here: a step ends when nobody holds a stream of it.
  if (join.join.rank == 0 && join.descriptors.size() >= 2) {
    (*task)->out = std::move(join.descriptors[0]);
    (*task)->err = std::move(join.descriptors[1]);
  }
  fresh_.push_back((*task)->key);
  Add(std::move(*task));
  if (fresh_.size() > 1) return;
  // The tasks of a node come together: one message for them.
  loop_.Post([this, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired()) TellHead();
  });
}

Result<std::unique_ptr<SlurmTasks::Task>> SlurmTasks::MakeTask(std::uint64_t client, const SlurmJoin& join) {
  auto process = OpenProcess(join.pid);
  if (!process.ok())
    return process.status().WithContext(
        fmt::format("{}: task {} of step {}", options_.node, join.join.rank, join.join.step));
  auto task = std::make_unique<Task>();
  task->step = join.join.step;
  task->join = join.join;
  task->process = std::move(*process);
  task->client = client;
  return task;
}

SlurmTasks::Task& SlurmTasks::Add(std::unique_ptr<Task> task) {
  Task& added = *task;
  if (added.client != 0) by_client_[added.client] = &added;
  by_pid_[added.process.pid] = &added;
  tasks_[added.key] = std::move(task);
  return added;
}

void SlurmTasks::TellHead() {
  std::map<std::pair<StepId, std::uint32_t>, SlurmJoined> all;
  for (const Key& key : std::exchange(fresh_, {})) {
    const auto it = tasks_.find(key);
    if (it == tasks_.end()) continue;
    const Task& task = *it->second;
    SlurmJoined& joined = all[{task.step, task.join.ntasks}];
    joined.step = task.step;
    joined.ntasks = task.join.ntasks;
    joined.on_child_failure = task.join.on_child_failure;
    SlurmCommand command{task.join.argv, task.join.cwd};
    if (joined.commands.empty() || joined.commands.back() != command)
      joined.commands.push_back(std::move(command));
    const std::string het = fmt::format("{}={}", wire::kSlurmHetLeader, options_.job);
    const auto& environment = task.join.environment;
    joined.tasks.push_back({key.second, static_cast<std::uint32_t>(joined.commands.size() - 1),
                            task.join.component_job, task.join.cpus_per_task, task.process.pid,
                            task.join.local_id,
                            std::find(environment.begin(), environment.end(), het) != environment.end()});
  }
  for (const auto& [step, joined] : all) handlers_.joined(joined);
}

void SlurmTasks::AnswerRefusal(std::uint64_t client, const std::string& text) {
  wire::SlurmTaskReady ready;
  ready.refusal = text;
  handlers_.answer(client, ready, {});
}

void SlurmTasks::Refuse(const SlurmRefused& refused) {
  std::vector<Key> keys;
  for (const auto& [key, task] : tasks_) {
    if (task->step != refused.step || task->client == 0) continue;
    const bool named =
        std::find(refused.ranks.begin(), refused.ranks.end(), key.second) != refused.ranks.end();
    if (refused.ranks.empty() || named) keys.push_back(key);
  }
  for (const Key& key : keys) {
    const auto it = tasks_.find(key);
    const std::uint64_t client = it->second->client;
    Remove(it);
    AnswerRefusal(client, refused.text);
  }
}

void SlurmTasks::OnClientGone(std::uint64_t client) {
  std::erase_if(early_, [&](const auto& child) {
    if (child.second->client == client) loop_.Cancel(child.second->unreported);
    return child.second->client == client;
  });
  const auto it = by_client_.find(client);
  if (it == by_client_.end()) return;
  const Task& task = *it->second;
  const StepId step = task.step;
  const std::string reason = fmt::format("{}: task {} of step {} ended before its world was complete",
                                         options_.node, task.key.second, step);
  Remove(tasks_.find(task.key));
  Lose(step, reason);
}

void SlurmTasks::Lose(StepId step, const std::string& reason) { handlers_.lost({step, reason}); }

void SlurmTasks::Remove(std::map<Key, std::unique_ptr<Task>>::iterator it) {
  Task& task = *it->second;
  loop_.Cancel(task.unreported);
  loop_.Unwatch(task.process.pidfd.get());
  if (task.client != 0) by_client_.erase(task.client);
  if (task.batch)
    Settle(std::exchange(task.batch, nullptr), std::nullopt,
           launch::StartFailure{task.key.second,
                                fmt::format("task {} ended before it became its program", task.key.second),
                                125});
  if (const auto at = by_pid_.find(task.process.pid); at != by_pid_.end() && at->second == &task)
    by_pid_.erase(at);
  // From the loop: the handler of its pidfd may be running.
  loop_.Post([dead = std::shared_ptr<Task>(std::move(it->second))] {});
  tasks_.erase(it);
}

// ------------------------------------------------------------------------------------------ starts

void SlurmTasks::Start(std::vector<launch::TaskSpec> specs, Started on_started) {
  const auto batch = std::make_shared<Batch>();
  batch->on_started = std::move(on_started);
  batch->left = specs.size() + 1;
  for (launch::TaskSpec& spec : specs) {
    if (!spec.ticket.empty()) {
      const ChildKey key{spec.ticket, spec.part, spec.number};
      auto early = early_.extract(key);
      if (early.empty())
        expected_[key] = {std::move(spec), batch};
      else
        StartChild(std::move(early.mapped()), {std::move(spec), batch});
      continue;
    }
    const auto it = tasks_.find({spec.nspace, spec.rank});
    if (StartOne(spec))
      Settle(batch, it->second->process.pid, std::nullopt);
    else
      Settle(batch, std::nullopt,
             launch::StartFailure{
                 spec.rank, fmt::format("task {} ended before its world was complete", spec.rank), 125});
  }
  Settle(batch, std::nullopt, std::nullopt);
}

void SlurmTasks::Settle(const std::shared_ptr<Batch>& batch, std::optional<pid_t> started,
                        std::optional<launch::StartFailure> failure) {
  if (started) batch->started.push_back(*started);
  if (failure) batch->failures.push_back(std::move(*failure));
  if (--batch->left > 0) return;
  loop_.Post([batch] { batch->on_started(batch->started, batch->failures); });
}

bool SlurmTasks::Watch(Task& task) {
  const Status watched =
      loop_.Watch(task.process.pidfd.get(), EPOLLIN, [this, &task](std::uint32_t) { OnProcessGone(task); });
  if (!watched.ok()) handlers_.log(watched.message());
  task.started_at = SteadyNow();
  return watched.ok();
}

bool SlurmTasks::StartOne(launch::TaskSpec& spec) {
  const auto it = tasks_.find({spec.nspace, spec.rank});
  if (it == tasks_.end() || it->second->client == 0) return false;
  Task& task = *it->second;
  if (!Watch(task)) return false;
  task.component = spec.component;
  if (task.err) {
    Voice& voice = voices_[spec.nspace];
    voice.out = std::move(task.out);
    voice.err = std::move(task.err);
    PreferOwnDescription(voice.err);
  }
  const std::uint64_t client = std::exchange(task.client, 0);
  by_client_.erase(client);
  wire::SlurmTaskReady ready = SlurmEnvironment(spec.env, task.join.environment);
  if (spec.channel) ready.fd = launch::kChannelFd;
  handlers_.answer(client, ready, std::move(spec.channel));
  return true;
}

int SlurmTasks::SendTo(const std::string& nspace,
                       const std::function<bool(const ProcessHandle&)>& send) const {
  int reached = 0;
  for (const auto& [key, task] : tasks_)
    if ((nspace.empty() || key.first == nspace) && task->client == 0 && send(task->process)) ++reached;
  return reached;
}

int SlurmTasks::Signal(const std::string& nspace, int signal) {
  return SendTo(nspace, [&](const ProcessHandle& process) { return SignalProcess(process, signal); });
}

int SlurmTasks::AskToLeave(const std::string& nspace, std::int32_t exit_code) {
  return SendTo(nspace, [&](const ProcessHandle& process) { return OrderToLeave(process, exit_code); });
}

void SlurmTasks::KillAll(const std::string& nspace, std::function<void(int)> on_done) {
  FailChildren([&](const ChildKey& key) { return nspace.empty() || std::get<0>(key) == nspace; },
               "its namespace is ended");
  Signal(nspace, SIGKILL);
  std::vector<Key> waiting;
  for (const auto& [key, task] : tasks_)
    if ((nspace.empty() || key.first == nspace) && task->client != 0) waiting.push_back(key);
  for (const Key& key : waiting) {
    const auto it = tasks_.find(key);
    const std::uint64_t client = it->second->client;
    const std::string text = fmt::format("step {} is ended", it->second->step);
    Remove(it);
    AnswerRefusal(client, text);
  }
  loop_.Post([on_done = std::move(on_done)] { on_done(0); });
}

// ------------------------------------------------------------------------------------------ ends

void SlurmTasks::OnTaskEnd(const wire::SlurmTaskEnd& end) {
  const auto it = by_pid_.find(end.pid);
  if (it == by_pid_.end() || it->second->join.job != end.job || it->second->step != end.step) return;
  if (it->second->client != 0) return OnClientGone(it->second->client);
  End(*it->second, end.status);
}

// The process is a zombie now, or was collected: slurmstepd tells the node daemon, and that this one.
void SlurmTasks::OnProcessGone(Task& task) {
  loop_.Unwatch(task.process.pidfd.get());
  task.unreported = loop_.After(options_.end_wait, [this, &task] {
    handlers_.log(fmt::format("task {} of {} has ended; nobody told how within {} ms", task.key.second,
                              task.key.first, options_.end_wait.count()));
    task.unreported = {};
    End(task, 0);
  });
}

void SlurmTasks::End(Task& task, int status) {
  launch::TaskExit exit;
  exit.nspace = task.key.first;
  exit.end.rank = task.key.second;
  exit.end.component = task.component;
  exit.end.node = options_.node;
  if (WIFSIGNALED(status)) {
    exit.end.signal = WTERMSIG(status);
    exit.end.core_dumped = WCOREDUMP(status);
  } else {
    exit.end.exit_code = WEXITSTATUS(status);
  }
  exit.lifetime = std::chrono::duration_cast<Millis>(SteadyNow() - task.started_at);
  if (task.key.second.value == 0)
    if (const auto voice = voices_.find(task.key.first);
        voice != voices_.end() && status == 0 && !voice->second.used) {
      DropVoice(task.key.first);
    } else if (voice != voices_.end()) {
      loop_.Cancel(voice->second.timer);
      voice->second.timer =
          loop_.After(options_.voice_wait, [this, nspace = task.key.first] { DropVoice(nspace); });
    }
  Remove(tasks_.find(task.key));
  handlers_.on_exit(exit);
}

void SlurmTasks::OnWithdrawn(const wire::SlurmStepVerdict& verdict) {
  std::string_view reason = verdict.message;
  const std::string name = fmt::format("step {}.{}: ", verdict.job, verdict.step);
  if (reason.starts_with(name)) reason.remove_prefix(name.size());
  Lose(verdict.step, std::string(reason));
}

void SlurmTasks::OnStepEnd(const wire::SlurmStepEnd& end) {
  const std::string reason =
      fmt::format("{}: slurmstepd of step {} is gone; see slurmd's log there", options_.node, end.step);
  std::vector<Key> left;
  for (const auto& [key, task] : tasks_)
    if (task->join.job == end.job && task->step == end.step && task->join.component_job == end.component_job)
      left.push_back(key);
  for (const Key& key : left) {
    const auto it = tasks_.find(key);
    if (it == tasks_.end()) continue;
    if (const std::uint64_t client = it->second->client; client != 0) {
      Remove(it);
      AnswerRefusal(client, reason);
      continue;
    }
    // Nobody would tell of its end, and nobody waits for it.
    SignalProcess(it->second->process, SIGKILL);
    End(*it->second, SIGKILL);
  }
  if (end.job != options_.job) return;  // a companion's, where children ran
  Lose(end.step, reason);
}

// ------------------------------------------------------------------------------------------ words

void SlurmTasks::Say(const SlurmNotice& notice) {
  if (!voices_.contains(notice.nspace) || !Write(notice.nspace, "msa: " + notice.text + "\n"))
    handlers_.log(fmt::format("not told to the user of {}: {}", notice.nspace, notice.text));
}

bool SlurmTasks::Write(const std::string& nspace, const std::string& bytes) {
  const auto it = voices_.find(nspace);
  if (it == voices_.end()) return true;  // nobody reads it
  Voice& voice = it->second;
  voice.used = true;
  if (voice.unsaid.size() > kMostUnsaid) return false;
  voice.unsaid += bytes;
  voice.lagged = voice.lagged || voice.unsaid.size() > kMostUnsaid;
  if (!voice.waits) Speak(nspace);
  const auto still = voices_.find(nspace);
  return still == voices_.end() || still->second.unsaid.size() <= kMostUnsaid;
}

// The description is shared with the program, unless it is a terminal's: it must not become non-blocking, so
// poll(2) is asked first. A pipe that is writable takes PIPE_BUF bytes.
void SlurmTasks::Speak(const std::string& nspace) {
  const auto it = voices_.find(nspace);
  if (it == voices_.end()) return;
  Voice& voice = it->second;
  voice.waits = false;
  while (!voice.unsaid.empty()) {
    pollfd ready{voice.err.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) {
      SpeakLater(nspace, voice);
      break;
    }
    if ((ready.revents & POLLOUT) == 0) return DropVoice(nspace);  // the reader has gone
    const ssize_t n =
        ::write(voice.err.get(), voice.unsaid.data(), std::min<std::size_t>(voice.unsaid.size(), PIPE_BUF));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      SpeakLater(nspace, voice);
      break;
    }
    if (n <= 0) return DropVoice(nspace);
    voice.unsaid.erase(0, static_cast<std::size_t>(n));
  }
  if (voice.lagged && voice.unsaid.size() < kMostUnsaid / 2) {
    voice.lagged = false;
    handlers_.on_heard(nspace);
  }
}

void SlurmTasks::SpeakLater(const std::string& nspace, Voice& voice) {
  voice.waits = true;
  loop_.After(kSpeakAgain, [this, nspace, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired()) Speak(nspace);
  });
}

void SlurmTasks::DropVoice(const std::string& nspace) {
  const auto it = voices_.find(nspace);
  if (it == voices_.end()) return;
  const bool lagged = it->second.lagged;
  loop_.Cancel(it->second.timer);
  voices_.erase(it);
  if (lagged) handlers_.on_heard(nspace);
}

UniqueFd SlurmTasks::OutputOf(const std::string& nspace) {
  const auto it = voices_.find(nspace);
  if (it == voices_.end() || !it->second.out) return {};
  it->second.used = true;
  return UniqueFd(::fcntl(it->second.out.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace msa::jobd
