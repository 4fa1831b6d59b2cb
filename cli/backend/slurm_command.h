#pragma once
// Runs Slurm's own commands as the user, so that its permissions, plugins and texts hold.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/status.h"

#include "backend/choice.h"

namespace msa::cli {

// Path of a command. kNotFound names it, what asked for it, and the remedy. Reads PATH.
Result<std::string> FindSlurmCommand(const BackendChoice& choice, const std::string& name);

struct SlurmAnswer {
  int exit_code = 0;  // 128+N of a signal
  std::string out;
  std::string err;  // if kept
};
enum class Errors { kShown, kKept };
enum class Times {
  kSeconds,  // since 1970
  kLocal,    // "2026-11-22T15:10:14"
};
struct SlurmCall {
  std::vector<std::string> words;  // "squeue", ...
  int in = -1;                     // becomes its standard input; -1: /dev/null
  Errors errors = Errors::kShown;  // where its standard error goes: to ours, or into the answer
  bool as_typed = false;           // with the environment as it is; else without what changes lists
  Times times = Times::kSeconds;   // unless `as_typed`
  std::optional<Millis> patience;  // after which it is ended (kDeadlineExceeded); none: as long as it takes
  // Gets the first line as soon as it is there, without its newline; its error ends the command.
  std::function<Status(std::string_view)> on_first_line = {};
};
// Waits for its end. Errors: FindSlurmCommand's, of spawning and reading. A code that is not 0 is an answer.
Result<SlurmAnswer> RunSlurm(const BackendChoice& choice, const SlurmCall& call);

enum class Input {
  kOurs,
  kSilent,  // nothing ever comes, and no end of it either
};
// This process becomes the command: signals, standard input and the exit code are its own. Returns the error
// alone.
Status BecomeSlurm(const BackendChoice& choice, const std::vector<std::string>& words,
                   Input input = Input::kOurs);

// For commands that list: without SQUEUE_FORMAT and the like, and with all tasks of an array, however long
// their list is. Pure.
std::vector<std::string> ListingEnvironment(const std::vector<std::string>& env,
                                            Times times = Times::kSeconds);

}  // namespace msa::cli
