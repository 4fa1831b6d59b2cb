#include "slurm_step.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "msa/base/wire.h"

#include "slurm_task.h"

namespace msa::jobd {

SlurmStep::SlurmStep(JobdHarness& job, SlurmStepSpec spec) : job_(job), spec_(std::move(spec)) {
  if (spec_.ntasks == 0) spec_.ntasks = static_cast<std::uint32_t>(spec_.rank_node.size());
}

SlurmStep::~SlurmStep() {
  for (const auto& [rank, pid] : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

std::string SlurmStep::Path(const char* stream, std::uint32_t rank) const {
  return fmt::format("{}/step{}.{}.{}", job_.directory(), spec_.step, stream, rank);
}

std::string SlurmStep::Read(const char* stream, std::uint32_t rank) const {
  std::ifstream in(Path(stream, rank));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string SlurmStep::AllErr() const {
  std::string all;
  for (std::uint32_t rank = 0; rank < spec_.rank_node.size(); ++rank) all += Err(rank);
  return all;
}

void SlurmStep::BeTask(std::uint32_t rank) {
  const int out = ::open(Path("out", rank).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int err = ::open(Path("err", rank).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  wire::SlurmTaskJoin join;
  join.job = JobId(7);
  join.step = StepId(spec_.step);
  join.rank = rank;
  join.ntasks = spec_.ntasks;
  join.local_id = static_cast<std::uint32_t>(
      std::count(spec_.rank_node.begin(), spec_.rank_node.begin() + rank, spec_.rank_node[rank]));
  join.argv = spec_.argv_of.contains(rank) ? spec_.argv_of[rank] : spec_.argv;
  join.cwd = job_.directory();
  join.component_job = JobId(spec_.component_of.contains(rank) ? spec_.component_of[rank] : 7);
  BeSlurmTask(std::move(join),
              {job_.RunDirectory(spec_.rank_node[rank]) + "/job.sock", spec_.env, Path("joined", rank)});
}

void SlurmStep::StartRank(std::uint32_t rank) {
  const pid_t pid = ::fork();
  if (pid == 0) BeTask(rank);
  pids_[rank] = pid;
  codes[rank] = -1;
}

void SlurmStep::Start() {
  for (std::uint32_t rank = 0; rank < spec_.rank_node.size(); ++rank) StartRank(rank);
}

bool SlurmStep::Poll() {
  for (auto it = pids_.begin(); it != pids_.end();) {
    int status = 0;
    if (::waitpid(it->second, &status, WNOHANG) != it->second) {
      ++it;
      continue;
    }
    codes[it->first] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (spec_.tell_ends)
      job_.ToNode(spec_.rank_node[it->first],
                  wire::SlurmTaskEnd{JobId(7), StepId(spec_.step), it->second, status});
    it = pids_.erase(it);
  }
  if (!pids_.empty() || std::exchange(told_, true) || !spec_.tell_ends) return pids_.empty();
  for (const std::string& node : std::set<std::string>(spec_.rank_node.begin(), spec_.rank_node.end()))
    EndStepOn(node);
  return true;
}

void SlurmStep::EndStepOn(const std::string& node) {
  std::set<std::uint64_t> components = {7};
  for (const auto& [rank, component] : spec_.component_of) components.insert(component);
  for (const std::uint64_t component : components)
    job_.ToNode(node, wire::SlurmStepEnd{JobId(7), JobId(component), StepId(spec_.step)});
}

void SlurmStep::Kill(std::uint32_t rank, int signal) { ::kill(pids_.at(rank), signal); }

bool SlurmStep::Joined(std::uint32_t rank) const { return ::access(Path("joined", rank).c_str(), F_OK) == 0; }

bool SlurmStep::UntilOver() {
  return job_.Until([this] { return Poll(); });
}

}  // namespace msa::jobd
