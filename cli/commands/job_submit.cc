#include <unistd.h>

#include "msa/adapters/process/child_process.h"
#include "msa/base/clock.h"

#include "batch/script_file.h"
#include "batch/submit_options.h"
#include "client/system_client.h"
#include "commands/command.h"
#include "commands/job_waiter.h"
#include "commands/launch.h"
#include "commands/print.h"
#include "commands/slurm.h"
#include "commands/submit_file.h"
#include "options/resource_limits.h"

namespace msa::cli {
namespace {

// A script and what messages call it.
struct Script {
  std::string file;
  std::string text;
};

Result<Script> ReadScript(const SubmitCall& call) {
  if (!call.wrap.empty()) return Script{"wrap", WrapScript(call.wrap)};
  if (call.script.empty() || call.script == "-") {
    if (call.script.empty() && ::isatty(STDIN_FILENO) == 1)
      return Status(Code::kInvalidArgument,
                    "msactl submit needs a script; name its file, or '-' to type it here");
    MSA_ASSIGN_OR_RETURN(std::string text, ReadScriptFile("-"));
    return Script{"stdin", std::move(text)};
  }
  MSA_ASSIGN_OR_RETURN(std::string text, ReadScriptFile(call.script));
  return Script{call.script, std::move(text)};
}

Result<int> SubmitToSlurm(const BackendChoice& choice, TypedCall typed) {
  SubmitCall call;
  call.script = typed.script;
  for (const std::vector<TypedOption>& options : typed.components)
    for (const TypedOption& option : options)
      if (option.name == "wrap" || option.name == "from") call.wrap = option.value;
  // sbatch makes the script of --wrap itself.
  Script script;
  if (call.wrap.empty()) {
    MSA_ASSIGN_OR_RETURN(script, ReadScript(call));
  }
  return SlurmSubmit(choice, std::move(typed), script.file, script.text);
}

}  // namespace

Result<int> JobSubmit(const Args& args) {
  Result<SubmitCall> read = ReadSubmitCall(args);
  if (read.status().code() == Code::kAborted) return read.status();  // asked for its options only
  if (read.ok() && read->help_asked) {
    MSA_RETURN_IF_ERROR(Print(SubmitHelp()));
    return 0;
  }
  TypedCall typed;
  const Status typed_well = ReadTypedSubmit(args, &typed);
  MSA_ASSIGN_OR_RETURN(const BackendChoice choice, ChoiceFor(typed.backend, typed.dir));
  if (choice.slurm()) {
    MSA_RETURN_IF_ERROR(typed_well);
    return SubmitToSlurm(choice, std::move(typed));
  }
  MSA_ASSIGN_OR_RETURN(const SubmitCall call, std::move(read));
  if (!call.from.empty()) return SubmitFile({.file = call.from, .dir = call.dir, .parsable = call.parsable});
  MSA_ASSIGN_OR_RETURN(const Script script, ReadScript(call));
  MSA_ASSIGN_OR_RETURN(std::string cwd, WorkingDirectory());
  MSA_ASSIGN_OR_RETURN(const SubmitRequest request,
                       ReadSubmission(call, script.file, script.text,
                                      {std::move(cwd), CurrentEnvironment(), OwnLimits(), Now()}));
  if (!request.quiet)
    for (const std::string& warning : request.warnings) PrintNote(warning);
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(request.dir));
  MSA_ASSIGN_OR_RETURN(const JobId id, SubmitSurely(endpoint, request.spec));
  if (request.parsable) {
    MSA_RETURN_IF_ERROR(Print(fmt::format("{}\n", id)));
  } else if (!request.quiet) {
    MSA_RETURN_IF_ERROR(Print(fmt::format("submitted job {}\n", id)));
  }
  if (!request.wait) return 0;
  return WaitForJob(endpoint, id, {.quiet = request.quiet});
}

}  // namespace msa::cli
