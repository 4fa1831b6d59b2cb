#pragma once
// The command line of `msactl submit` and the option lines of its script.

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/status.h"
#include "msa/job/job_spec.h"

namespace msa::cli {

// What surrounds the command.
struct SubmitSurroundings {
  std::string cwd;               // absolute
  std::vector<std::string> env;  // "K=V"
  std::vector<wire::ResourceLimit> limits;
  Instant now;
};

// The command line as far as it can be read without the script.
struct SubmitCall {
  std::vector<std::vector<std::string>> components;  // options, as they were typed
  std::string script;                                // "" or "-": standard input
  std::vector<std::string> script_args;
  std::string wrap;     // --wrap; then there is no script
  std::string from;     // --from; then there is neither, and of the options --dir and --parsable alone
  std::string dir;      // likewise
  std::string backend;  // --backend
  bool parsable = false;
  bool help_asked = false;  // nothing else is filled in then
};
// kInvalidArgument: the first thing that is wrong, with value and remedy. Pure; any thread.
Result<SubmitCall> ReadSubmitCall(const std::vector<std::string>& args);

struct SubmitRequest {
  JobSpec spec;
  std::string dir;      // --dir
  std::string backend;  // --backend
  bool wait = false;
  bool parsable = false;
  bool quiet = false;
  std::vector<std::string> warnings;  // for people, one line each
};
// Options of the script, then those of the command line, which replace them. `file` is the script's name in
// messages and, without -J, its base name that of the job. kInvalidArgument, for the script with FILE:LINE.
// Pure but for local time.
Result<SubmitRequest> ReadSubmission(const SubmitCall& call, std::string_view file, std::string_view script,
                                     const SubmitSurroundings& surroundings);

// The script that --wrap makes of a command.
std::string WrapScript(std::string_view command);

// The text of `msactl submit --help`.
std::string SubmitHelp();

}  // namespace msa::cli
