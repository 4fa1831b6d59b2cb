// Children of a job of Slurm: srun starts msa-exec, which joins by the namespace that it was given as a
// ticket, and is told what to become.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "msa/launch/find_program.h"

#include "slurm_tasks.h"
#include "task_env.h"

namespace msa::jobd {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{2}
                                        << 20;  // the kernel's own limit is 6 MiB with 8 MiB stacks

std::vector<std::string> EnvironmentOf(pid_t pid) {
  std::vector<std::string> out;
  const UniqueFd file(::open(fmt::format("/proc/{}/environ", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return out;
  std::string text;
  char buffer[16384];
  for (ssize_t n = 0; text.size() < kMaxEnvironment && (n = ::read(file.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Of a task without '/' that is looked up there.
std::string PathOf(const std::vector<std::string>& env) {
  for (const std::string& line : env)
    if (line.starts_with("PATH=")) return line.substr(5);
  return {};
}

}  // namespace

void SlurmTasks::OnChild(std::uint64_t client, SlurmJoin join) {
  if (join.join.version != wire::kSlurmPluginVersion || join.join.argv.empty())
    return AnswerRefusal(
        client, "a spawned process speaks another version than msa-jobd; install both of one release");
  auto task = MakeTask(client, join);
  if (!task.ok()) return AnswerRefusal(client, task.status().message());
  const ChildKey key{join.join.ticket, join.join.part, join.join.rank};
  if (auto expected = expected_.extract(key); !expected.empty())
    return StartChild(std::move(*task), std::move(expected.mapped()));
  if (early_.contains(key))
    return AnswerRefusal(client, fmt::format("process {} of part {} of {} has come already", join.join.rank,
                                             join.join.part, join.join.ticket));
  (*task)->unreported = loop_.After(options_.child_wait, [this, key] {
    auto late = early_.extract(key);
    if (late.empty()) return;
    AnswerRefusal(late.mapped()->client,
                  fmt::format("{}: nobody expects process {} of part {} of '{}'", options_.node,
                              std::get<2>(key), std::get<1>(key), std::get<0>(key)));
  });
  early_[key] = std::move(*task);
}

void SlurmTasks::StartChild(std::unique_ptr<Task> task, Expected expected) {
  launch::TaskSpec& spec = expected.spec;
  loop_.Cancel(std::exchange(task->unreported, {}));
  const std::uint64_t client = std::exchange(task->client, 0);
  task->key = {spec.nspace, spec.rank};
  task->component = spec.component;
  const auto failure = [&](const std::string& text) {
    AnswerRefusal(client, text);
    Settle(expected.batch, std::nullopt, launch::StartFailure{spec.rank, text, 125});
  };
  if (tasks_.contains(task->key))
    return failure(fmt::format("task {} of {} is here already", spec.rank, spec.nspace));
  Task& added = Add(std::move(task));
  if (!Watch(added)) {
    Remove(tasks_.find(added.key));
    return failure(fmt::format("task {} of {} cannot be watched", spec.rank, spec.nspace));
  }
  wire::SlurmTaskReady ready;
  ready.set = {"MSA_JOB_SOCKET=" + options_.job_socket};
  if (spec.channel) ready.fd = launch::kChannelFd;
  UniqueFd channel = std::move(spec.channel);
  added.spec = std::move(spec);
  added.batch = std::move(expected.batch);
  handlers_.answer(client, ready, std::move(channel));
}

Result<wire::TaskExec> SlurmTasks::Exec(pid_t pid) {
  const auto it = by_pid_.find(pid);
  if (it == by_pid_.end() || !it->second->spec)
    return Error(Code::kNotFound, "process {} is no spawned child that waits for its program", pid);
  Task& task = *it->second;
  const launch::TaskSpec spec = std::move(*std::exchange(task.spec, std::nullopt));
  const std::shared_ptr<Batch> batch = std::exchange(task.batch, nullptr);
  const launch::Lookup found = launch::FindProgram({spec.argv.at(0), PathOf(spec.env), spec.cwd});
  wire::TaskExec exec;
  if (found.path.empty()) {
    exec.exit_code = found.error.exit_code;
    exec.reason = found.error.message;
    Settle(batch, std::nullopt, launch::StartFailure{spec.rank, found.error.message, found.error.exit_code});
    // The head counts it as one that never started.
    Remove(tasks_.find(task.key));
    return exec;
  }
  exec.program = found.path;
  exec.cwd = spec.cwd;
  exec.argv = spec.argv;
  exec.env = spec.env;
  Settle(batch, task.process.pid, std::nullopt);
  return exec;
}

void SlurmTasks::FailChildren(const std::function<bool(const ChildKey&)>& which, const std::string& text) {
  std::vector<ChildKey> keys;
  for (const auto& [key, expected] : expected_)
    if (which(key)) keys.push_back(key);
  for (const ChildKey& key : keys) {
    auto failed = expected_.extract(key);
    Settle(failed.mapped().batch, std::nullopt, launch::StartFailure{failed.mapped().spec.rank, text, 125});
  }
}

void SlurmTasks::NoMore(const SlurmNoMore& message) {
  FailChildren(
      [&](const ChildKey& key) {
        return std::get<0>(key) == message.nspace && std::get<1>(key) == message.part;
      },
      message.text);
}

std::vector<std::string> SlurmTasks::Inherited(const std::string& nspace, Rank rank) const {
  const auto it = tasks_.find({nspace, rank});
  if (it == tasks_.end()) return {};
  return InheritedEnvironment(EnvironmentOf(it->second->process.pid));
}

void SlurmTasks::Forget(const std::string& nspace) {
  FailChildren([&](const ChildKey& key) { return std::get<0>(key) == nspace; }, "its namespace has ended");
  DropVoice(nspace);
}

}  // namespace msa::jobd
