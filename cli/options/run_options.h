#pragma once
// The command line of `msactl run`: components separated by ":" as in srun, each with its options and a
// program.

#include <string>
#include <vector>

#include "msa/base/status.h"
#include "msa/job/job_spec.h"

namespace msa::cli {

// What surrounds the command, so that parsing needs no process.
struct RunSurroundings {
  std::string cwd;               // absolute
  std::vector<std::string> env;  // "K=V"
  std::vector<wire::ResourceLimit> limits = {};
};

struct RunRequest {
  JobSpec spec;
  std::string dir;  // --dir
  bool detach = false;
  bool help_asked = false;  // nothing else is filled in then
  int verbose = 0;
  bool quiet = false;
};

// kInvalidArgument: the first thing that is wrong, with value and remedy. Pure; any thread.
Result<RunRequest> ParseRun(const std::vector<std::string>& args, const RunSurroundings& surroundings);

// The text of `msactl run --help`.
std::string RunHelp();

// Splits at words that are ":"; a backslash keeps one as it is ("\:" is the argument ":").
std::vector<std::vector<std::string>> SplitComponents(const std::vector<std::string>& args);

}  // namespace msa::cli
