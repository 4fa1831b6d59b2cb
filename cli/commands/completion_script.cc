#include "commands/cluster_directory.h"
#include "commands/command.h"
#include "commands/print.h"
#include "completion/complete.h"
#include "options/parser.h"

namespace msa::cli {
namespace {

struct Shell {
  std::string name;
  std::string how;  // to use it now
};

Result<int> PrintScript(const Shell& shell, const Args& args) {
  OptionParser parser(
      "msactl completion " + shell.name, "[OPTIONS]",
      fmt::format(
          "Print the script that completes commands, options, modules, nodes and jobs in {}. An installed\n"
          "msa has it in place already; else: {}",
          shell.name, shell.how));
  MSA_ASSIGN_OR_RETURN(const Args operands, parser.Parse(args));
  if (parser.help_asked()) {
    MSA_RETURN_IF_ERROR(Print(parser.Help()));
    return 0;
  }
  if (!operands.empty())
    return Error(Code::kInvalidArgument, "msactl completion {}: '{}' is too much; expected nothing",
                 shell.name, operands[0]);
  MSA_RETURN_IF_ERROR(Print(CompletionScript(shell.name)));
  return 0;
}

}  // namespace

Result<int> CompletionBash(const Args& args) {
  return PrintScript({"bash", "source <(msactl completion bash)"}, args);
}
Result<int> CompletionZsh(const Args& args) {
  return PrintScript({"zsh", "source <(msactl completion zsh)"}, args);
}
Result<int> CompletionFish(const Args& args) {
  return PrintScript({"fish", "msactl completion fish | source"}, args);
}

}  // namespace msa::cli
