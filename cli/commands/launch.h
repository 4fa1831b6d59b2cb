#pragma once
// What the commands that start jobs share.

#include <string>

#include "client/endpoint.h"
#include "run/run_session.h"

namespace msa::cli {

// Of this process, absolute.
Result<std::string> WorkingDirectory();

// Until the controller has it on disk: one that is being restarted meanwhile knows the token.
Result<JobId> SubmitSurely(const Endpoint& endpoint, const JobSpec& spec);

// Runs the session and leaves the process with its exit code. Threads of gRPC post to its loop as long as the
// process lives: neither is taken down.
[[noreturn]] void RunToEnd(RunSession::Options options);

}  // namespace msa::cli
