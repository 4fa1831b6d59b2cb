#include "commands/launch.h"

#include <unistd.h>

#include <cerrno>

#include <climits>

#include "msa/base/clock.h"

#include "client/system_client.h"
#include "commands/command.h"
#include "commands/print.h"
#include "run/token.h"

namespace msa::cli {

Result<std::string> WorkingDirectory() {
  char path[PATH_MAX];
  if (::getcwd(path, sizeof path) == nullptr)
    return ErrnoError(errno, "find the working directory; change to one that exists");
  return std::string(path);
}

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

void RunToEnd(RunSession::Options options) {
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  Result<int> code = loop.status();
  if (loop.ok()) code = (new RunSession(**loop, std::move(options)))->Run();
  if (!code.ok()) PrintError(code.status());
  ::_exit(code.ok() ? *code : ExitCodeOf(code.status().code()));
}

}  // namespace msa::cli
