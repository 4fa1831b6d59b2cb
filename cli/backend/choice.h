#pragma once
// Who schedules the jobs that a command speaks of: msa itself, or Slurm. Pure; any thread.

#include <string>
#include <string_view>

#include "msa/base/status.h"

namespace msa::cli {

enum class Backend { kMsa, kSlurm };

// Where it may be said, in the order in which it counts.
struct BackendWords {
  std::string option;       // --backend
  std::string environment;  // MSA_BACKEND
  std::string file;         // of the client file, if the command's system is its own; empty: it says nothing
};

struct BackendChoice {
  Backend backend = Backend::kMsa;
  std::string because;  // "--backend slurm", for messages
  bool slurm() const noexcept { return backend == Backend::kSlurm; }
};

// "msa", "slurm", or "auto" and "": what comes next says it, and at the end msa. kInvalidArgument: another
// word, with where it stands.
Result<BackendChoice> ChooseBackend(const BackendWords& words);

inline constexpr char kBackendHelp[] =
    "who schedules: msa, slurm, or auto (MSA_BACKEND, else the host's client.conf; default)";

}  // namespace msa::cli
