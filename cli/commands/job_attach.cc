#include <unistd.h>

#include "commands/invocation.h"
#include "commands/print.h"
#include "options/values.h"
#include "run/run_session.h"

namespace msa::cli {

Result<int> JobAttach(const Args& args) {
  Invocation call({"msactl job attach", "[OPTIONS] JOB",
                   "Watch the output of a running job from now on and return its exit code. Ctrl-C detaches; "
                   "the job goes on."});
  RunSession::Options options;
  call.options()
      .Flag('l', "label", "put 'RANK: ' before each line", &options.label)
      .Flag('q', "quiet", "only errors", &options.quiet);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a job's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(options.watch, ParseJobId(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(options.endpoint, FindEndpoint(call.dir()));
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  // As in `job run`.
  auto* session = new RunSession(*loop, std::move(options));
  Result<int> code = session->Run();
  if (!code.ok()) PrintError(code.status());
  ::_exit(code.ok() ? *code : ExitCodeOf(code.status().code()));
}

}  // namespace msa::cli
