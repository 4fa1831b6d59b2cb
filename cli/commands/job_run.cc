#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <climits>

#include "msa/adapters/process/child_process.h"
#include "msa/base/clock.h"

#include "client/system_client.h"
#include "commands/command.h"
#include "commands/print.h"
#include "options/resource_limits.h"
#include "options/run_options.h"
#include "run/backoff.h"
#include "run/run_session.h"
#include "run/stdin_reader.h"
#include "run/token.h"

namespace msa::cli {
namespace {

Result<std::string> WorkingDirectory() {
  char path[PATH_MAX];
  if (::getcwd(path, sizeof path) == nullptr)
    return ErrnoError(errno, "find the working directory; change to one that exists");
  return std::string(path);
}

// Until the controller has it on disk: one that is being restarted meanwhile knows the token.
Result<JobId> SubmitSurely(const Endpoint& endpoint, const JobSpec& spec) {
  constexpr int kAttempts = 10;
  constexpr Millis kPatience{30'000};  // one call may take all of it
  const SteadyTime give_up = SteadyNow() + kPatience;
  MSA_ASSIGN_OR_RETURN(const std::string token, MakeToken());
  Result<JobId> id = Status(Code::kUnavailable, "not tried");
  for (int attempt = 0; attempt < kAttempts && SteadyNow() < give_up; ++attempt) {
    MSA_ASSIGN_OR_RETURN(const auto client, SystemClient::Connect(endpoint));
    id = client->Submit(spec, token);
    if (id.ok() || id.status().code() != Code::kUnavailable) return id;
  }
  return id;
}

}  // namespace

Result<int> JobRun(const Args& args) {
  MSA_ASSIGN_OR_RETURN(std::string cwd, WorkingDirectory());
  MSA_ASSIGN_OR_RETURN(RunRequest request,
                       ParseRun(args, {std::move(cwd), CurrentEnvironment(), OwnLimits()}));
  if (request.help_asked) {
    MSA_RETURN_IF_ERROR(Print(RunHelp()));
    return 0;
  }
  MSA_ASSIGN_OR_RETURN(Endpoint endpoint, FindEndpoint(request.dir));
  if (request.detach) {
    MSA_ASSIGN_OR_RETURN(const JobId id, SubmitSurely(endpoint, request.spec));
    MSA_RETURN_IF_ERROR(Print(fmt::format("submitted job {}\n", id)));
    return 0;
  }
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  RunSession::Options options;
  options.endpoint = std::move(endpoint);
  options.label = request.spec.stdio.label;
  options.wants_stdin = request.spec.stdio.in.empty() && CanBringInput(STDIN_FILENO);
  options.quiet = request.quiet;
  options.verbose = request.verbose;
  options.spec = std::move(request.spec);
  // Threads of gRPC post to the loop as long as the process lives: neither is taken down, main leaves by
  // _exit.
  auto* session = new RunSession(*loop, std::move(options));
  Result<int> code = session->Run();
  if (!code.ok()) PrintError(code.status());
  ::_exit(code.ok() ? *code : ExitCodeOf(code.status().code()));
}

}  // namespace msa::cli
