#include "run/alloc_command.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <climits>
#include <fmt/ranges.h>

#include "msa/job/job_variables.h"

namespace msa::cli {
namespace {

void AddOnce(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

bool SetsSame(const std::string& a, const std::string& b) {
  const auto equals = a.find('=');
  return equals != std::string::npos && b.compare(0, equals + 1, a, 0, equals + 1) == 0;
}

int CodeOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace

std::vector<std::string> AllocVariables(const JobInfo& job, const JobSpec& spec, const Endpoint& endpoint) {
  JobVariables told;
  told.name = job.name;
  told.nam_regions = NamRegionsText(spec.nam_regions);
  told.gateways = fmt::format("{}", fmt::join(job.gateways, ","));
  char cwd[PATH_MAX];
  if (::getcwd(cwd, sizeof cwd) != nullptr) told.submit_dir = cwd;
  std::vector<std::string> nodes;
  for (const AllocationInfo& share : job.allocations) {
    if (share.grant != 0) continue;
    if (told.components.size() <= share.component) told.components.resize(share.component + 1);
    JobVariables::Component& component = told.components[share.component];
    component.module = share.module;
    component.ntasks += share.tasks;
    AddOnce(component.nodes, share.node);
    AddOnce(nodes, share.node);
  }
  told.nnodes = static_cast<std::uint32_t>(nodes.size());
  std::vector<std::string> lines = JobVariableLines(told);
  lines.push_back(fmt::format("MSA_JOB_ID={}", job.id));
  lines.push_back(fmt::format("MSA_NODELIST={}", fmt::join(nodes, ",")));
  if (endpoint.socket.starts_with("tls:")) {
    lines.push_back("MSA_DIR=" + endpoint.socket);
  } else if (!endpoint.dir.empty()) {
    lines.push_back("MSA_DIR=" + endpoint.dir);
  }
  return lines;
}

Result<std::unique_ptr<AllocCommand>> AllocCommand::Start(EventLoop& loop, std::vector<std::string> argv,
                                                          const std::vector<std::string>& variables,
                                                          std::function<void(int)> on_end) {
  if (argv.empty()) {
    const char* shell = ::getenv("SHELL");
    argv.emplace_back(shell == nullptr || *shell == '\0' ? "/bin/sh" : shell);
  }
  SpawnSpec spec;
  // A shell looks the command up in PATH and says what is wrong with it, with the codes that everybody knows.
  spec.argv = {"/bin/sh", "-c", "exec \"$@\"", "msactl"};
  spec.argv.insert(spec.argv.end(), argv.begin(), argv.end());
  for (std::string& line : CurrentEnvironment()) {
    const bool replaced = std::any_of(variables.begin(), variables.end(),
                                      [&](const std::string& ours) { return SetsSame(ours, line); });
    const bool of_a_step = line.starts_with("MSA_STEP_ID=") || line.starts_with("MSA_JOB_SOCKET=");
    if (!replaced && !of_a_step && !IsJobVariable(line)) spec.env.push_back(std::move(line));
  }
  spec.env.insert(spec.env.end(), variables.begin(), variables.end());
  spec.cwd.clear();  // where we are
  spec.in = STDIN_FILENO;
  spec.out = STDOUT_FILENO;
  spec.err = STDERR_FILENO;
  spec.new_session = false;
  MSA_ASSIGN_OR_RETURN(ProcessHandle process, Spawn(spec));
  std::unique_ptr<AllocCommand> command(new AllocCommand(loop, std::move(process)));
  AllocCommand* self = command.get();
  MSA_RETURN_IF_ERROR(
      loop.Watch(self->process_.pidfd.get(), EPOLLIN, [self, on_end = std::move(on_end)](std::uint32_t) {
        const auto status = ReapChild(self->process_.pid);
        if (!status) return;
        self->loop_.Unwatch(self->process_.pidfd.get());
        on_end(CodeOf(*status));
      }));
  return command;
}

AllocCommand::~AllocCommand() {
  if (process_.pidfd) loop_.Unwatch(process_.pidfd.get());
}

}  // namespace msa::cli
