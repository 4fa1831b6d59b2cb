// The start of a namespace's tasks on this node, in slices: between two of them the loop hears an end.
#include <algorithm>

#include "member.h"

namespace msa::jobd {
namespace {

// A task takes 0.5 to 2 ms of this thread: whoever wants the job to end waits for 30 ms at most.
constexpr std::size_t kSlice = 16;

}  // namespace

void Member::Start(NamespaceStart message) {
  const auto start = std::make_shared<OpenStart>();
  start->result.nspace = message.nspace;
  start->message = std::move(message);
  if (const auto it = hosted_.find(start->message.nspace); it != hosted_.end()) TellLoweredLimits(it->second);
  starts_.push_back(start);
  StartSlice(start);
}

void Member::StartSlice(const std::shared_ptr<OpenStart>& start) {
  const auto hosted = hosted_.find(start->message.nspace);
  std::vector<launch::TaskSpec> tasks;
  const std::size_t end = std::min(start->next + kSlice, start->message.tasks.size());
  for (; start->next < end; ++start->next) {
    const TaskPlace& place = start->message.tasks[start->next];
    if (hosted == hosted_.end() || place.rank.value >= hosted->second.reg.spec.rank_member.size() ||
        hosted->second.reg.spec.apps.empty()) {
      start->result.failures.push_back(
          {place.rank, 125,
           fmt::format("task {} is not of a namespace that is registered here", place.rank)});
      continue;
    }
    auto spec = MakeTask(hosted->second, place, start->message, start->files);
    if (spec.ok())
      tasks.push_back(std::move(*spec));
    else
      start->result.failures.push_back({place.rank, 125, spec.status().message()});
  }
  // An MPI program that it runs by itself is a world of its own by right.
  const bool is_script = hosted != hosted_.end() && hosted->second.reg.spec.step == wire::kBatchStep;
  ++start->under_way;
  launcher_.Start(std::move(tasks),
                  [this, start, is_script, weak = std::weak_ptr<int>(alive_)](
                      const std::vector<pid_t>& started, std::vector<launch::StartFailure> failures) {
                    if (weak.expired()) return;
                    if (is_script) launcher_.MarkConnected(start->message.nspace, Rank(0));
                    OnSliceStarted(start, started.size(), std::move(failures));
                  });
  if (start->next == start->message.tasks.size()) return;
  loop_.Post([this, start, weak = std::weak_ptr<int>(alive_)] {
    if (!weak.expired() && !start->stopped) StartSlice(start);
  });
}

// The first failure is the end of the namespace: no further task of it is started.
void Member::OnSliceStarted(const std::shared_ptr<OpenStart>& start, std::size_t started,
                            std::vector<launch::StartFailure> failures) {
  --start->under_way;
  start->result.started += static_cast<std::uint32_t>(started);
  for (launch::StartFailure& failure : failures)
    start->result.failures.push_back({failure.rank, failure.exit_code, std::move(failure.message)});
  start->stopped = start->stopped || !start->result.failures.empty();
  FinishStart(start);
}

void Member::Signal(const NamespaceSignal& message) {
  if (message.ending) StopStarts(message.nspace);
  if (message.exit_code != 0)
    launcher_.AskToLeave(message.nspace, message.exit_code);
  else
    launcher_.Signal(message.nspace, message.signal);
}

void Member::Kill(const std::string& nspace) {
  StopStarts(nspace);
  launcher_.KillAll(nspace, [](int) {});
}

void Member::StopStarts(const std::string& nspace) {
  const auto open = starts_;
  for (const auto& start : open) {
    if (!nspace.empty() && start->message.nspace != nspace) continue;
    start->stopped = true;
    FinishStart(start);
  }
}

void Member::FinishStart(const std::shared_ptr<OpenStart>& start) {
  const auto& tasks = start->message.tasks;
  if (start->under_way > 0 || (!start->stopped && start->next < tasks.size())) return;
  for (; start->next < tasks.size(); ++start->next) start->result.skipped.push_back(tasks[start->next].rank);
  starts_.remove(start);
  ToHead(start->result);
}

}  // namespace msa::jobd
