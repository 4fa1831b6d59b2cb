#include "msa/adapters/process/child_process.h"

#include "commands/command.h"
#include "commands/launch.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "options/resource_limits.h"
#include "options/run_options.h"

namespace msa::cli {

Result<int> JobAlloc(const Args& args) {
  MSA_ASSIGN_OR_RETURN(std::string cwd, WorkingDirectory());
  Result<RunRequest> read =
      ParseRun(args, {std::move(cwd), CurrentEnvironment(), OwnLimits()}, RunKind::kAlloc);
  if (read.status().code() == Code::kAborted) return read.status();  // asked for its options only
  if (read.ok() && read->help_asked) {
    MSA_RETURN_IF_ERROR(Print(RunHelp(RunKind::kAlloc)));
    return 0;
  }
  TypedCall typed;
  const Status typed_well = ReadTypedAlloc(args, &typed);
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, ChoiceFor(typed.backend, typed.dir));
  if (choice.slurm()) {
    MSA_RETURN_IF_ERROR(typed_well);
    return SlurmAlloc(choice, typed);
  }
  MSA_ASSIGN_OR_RETURN(RunRequest request, std::move(read));
  RunSession::Options options;
  MSA_ASSIGN_OR_RETURN(options.endpoint, FindEndpoint(request.dir));
  options.quiet = request.quiet;
  options.verbose = request.verbose;
  options.command = std::move(request.spec.components.back().argv);
  // The nodes are asked for; what runs there comes later, each time with an environment of its own.
  for (Component& component : request.spec.components) component.argv.clear();
  request.spec.env.clear();
  if (request.no_shell) {
    MSA_ASSIGN_OR_RETURN(options.watch, SubmitSurely(options.endpoint, request.spec));
    MSA_RETURN_IF_ERROR(Print(fmt::format("submitted job {}\n", options.watch)));
    options.until_granted = true;
  } else {
    options.spec = std::move(request.spec);
  }
  RunToEnd(std::move(options));
}

}  // namespace msa::cli
