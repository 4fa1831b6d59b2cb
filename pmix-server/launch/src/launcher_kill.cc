#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "launcher_impl.h"
#include "leftovers.h"
#include "process_table.h"

namespace msa::launch {
namespace {

// A killed process is gone within a millisecond on a quiet node; later rounds wait for those that are busy in
// the kernel.
constexpr int kLongestWaitMillis = 50;
// Of a namespace: a process that forks while /proc is read shows up in the second look.
constexpr int kCleanRounds = 2;

}  // namespace

int TaskLauncher::Impl::Signal(const std::string& nspace, int signal) {
  int groups = 0;
  for (const auto& [key, task] : tasks_) {
    if ((!nspace.empty() && key.first != nspace) || task->end) continue;
    if (::kill(-task->pid, signal) == 0) ++groups;
  }
  return groups;
}

void TaskLauncher::Impl::KillAll(const std::string& nspace, std::function<void(int)> on_done) {
  Signal(nspace, SIGKILL);
  KillJob& job = *kills_.emplace_back(std::make_unique<KillJob>());
  job.nspace = nspace;
  job.on_done = std::move(on_done);
  job.deadline = SteadyNow() + options_.kill_wait;
  job.timer = loop_.After(Millis(0), [this, &job] { KillRound(job); });
}

std::vector<pid_t> TaskLauncher::Impl::FindLeftovers(const std::string& nspace) const {
  const std::vector<ProcessEntry> below = Descendants(::getpid());
  std::vector<pid_t> out;
  if (nspace.empty()) {
    for (const ProcessEntry& process : below) out.push_back(process.pid);
    return out;
  }
  Ownership ownership;
  for (const auto& [name, leaders] : leaders_)
    (name == nspace ? ownership.ours : ownership.others).insert(leaders.begin(), leaders.end());
  ownership.carries_name = [entry = "PMIX_NAMESPACE=" + nspace](pid_t pid) {
    return StartedWith(pid, entry);
  };
  return SelectLeftovers(below, ownership);
}

bool TaskLauncher::Impl::OnlyOthersRun(const std::string& nspace) const {
  bool supported = false;
  const std::vector<pid_t> children = ChildrenOf(::getpid(), supported);
  return supported && std::all_of(children.begin(), children.end(), [&](pid_t pid) {
           const auto it = by_pid_.find(pid);
           return it != by_pid_.end() && it->second->key.first != nspace;
         });
}

void TaskLauncher::Impl::KillRound(KillJob& job) {
  const bool everything = job.nspace.empty();
  // No child at all: nothing below this process either, for a subreaper loses none.
  if (CollectChildren() == Children::kNone) return FinishKill(job, 0);
  if (!everything && OnlyOthersRun(job.nspace)) return FinishKill(job, 0);
  const std::vector<pid_t> found = FindLeftovers(job.nspace);
  for (const pid_t pid : found) ::kill(pid, SIGKILL);
  job.clean_rounds = found.empty() ? job.clean_rounds + 1 : 0;
  if (!everything && job.clean_rounds >= kCleanRounds) return FinishKill(job, 0);
  if (SteadyNow() >= job.deadline) return FinishKill(job, static_cast<int>(found.size()));
  const int wait = std::min(1 << std::min(job.round++, 10), kLongestWaitMillis);
  job.timer = loop_.After(Millis(wait), [this, &job] { KillRound(job); });
}

void TaskLauncher::Impl::FinishKill(KillJob& job, int survivors) {
  const auto it = std::find_if(kills_.begin(), kills_.end(), [&](const auto& k) { return k.get() == &job; });
  const std::unique_ptr<KillJob> owned = std::move(*it);
  kills_.erase(it);
  // What is left of the namespace's leaders serves a later search for its survivors only.
  if (survivors == 0)
    std::erase_if(leaders_, [&](const auto& entry) {
      return (owned->nspace.empty() || entry.first == owned->nspace) && Count(entry.first) == 0;
    });
  owned->on_done(survivors);
}

}  // namespace msa::launch
