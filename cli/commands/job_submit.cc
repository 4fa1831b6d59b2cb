#include "commands/invocation.h"
#include "commands/submit_file.h"

namespace msa::cli {

Result<int> JobSubmit(const Args& args) {
  Invocation call(
      {"msactl submit", "[OPTIONS] --from FILE",
       "Queue a job for each line of a file and return; their output goes to msa-<job>.out unless the "
       "line says otherwise.\n"
       "A line holds the options and the program of 'msactl run', quoted as in a shell; '#' begins a "
       "comment."});
  SubmitFileOptions options;
  call.options()
      .Text(0, "from", "FILE", "one submission a line; '-': standard input", &options.file)
      .Flag(0, "parsable", "print the jobs' ids alone, one a line, in the order of the file",
            &options.parsable)
      .Epilogue(
          "example: printf '%s\\n' \"-n 1 ./a 'x y'\" '-m booster -n 4 -o b.out ./b' | msactl submit --from "
          "-");
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  if (options.file.empty())
    return Status(Code::kInvalidArgument, "msactl submit needs --from FILE; see 'msactl submit --help'");
  options.dir = call.dir();
  return SubmitFile(options);
}

}  // namespace msa::cli
