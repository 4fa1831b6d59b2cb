#pragma once

#include <string>

#include "msa/base/status.h"

#include "commands/command.h"

namespace msa::cli {

struct SubmitFileOptions {
  std::string file;       // "-": standard input
  std::string dir;        // --dir
  bool parsable = false;  // one id a line, in the order of the file, and nothing else
};

// `msactl submit --from FILE`: a job for each line, which holds what stands behind `msactl run`. Nothing is
// sent before all lines are understood. The exit code; errors name FILE:LINE and say how many jobs were
// submitted.
Result<int> SubmitFile(const SubmitFileOptions& options);

}  // namespace msa::cli
