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
  bool queued = false;  // nobody waits for the job, as with --detach
};

enum class RunKind { kRun, kAlloc };

struct RunRequest {
  JobSpec spec;  // of an allocation: the last component's argv is the command, if there is one
  // Of a step inside a job: for each component of `spec` those of the job (--het-group); empty: not said.
  std::vector<std::vector<std::uint32_t>> het_groups;
  JobId job;             // --job; 0: not given
  bool overlap = false;  // --overlap
  std::string job_only;  // an option that was used and that a step cannot have: "--mem"; empty: none
  bool no_shell = false;
  std::string dir;      // --dir
  std::string backend;  // --backend
  bool detach = false;
  bool help_asked = false;  // nothing else is filled in then
  int verbose = 0;
  bool quiet = false;
};

// kInvalidArgument: the first thing that is wrong, with value and remedy. Pure; any thread.
Result<RunRequest> ParseRun(const std::vector<std::string>& args, const RunSurroundings& surroundings,
                            RunKind kind = RunKind::kRun);

// The text of `msactl run --help` and `msactl job alloc --help`.
std::string RunHelp(RunKind kind = RunKind::kRun);

// Splits at words that are ":"; a backslash keeps one as it is ("\:" is the argument ":").
std::vector<std::vector<std::string>> SplitComponents(const std::vector<std::string>& args);

}  // namespace msa::cli
