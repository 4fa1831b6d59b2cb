#pragma once
// What libslurm writes on stderr between construction and Text(): it passes the texts of job_submit plugins
// to nobody else. All of it is written to the real stderr in the end.

#include <string>

#include "msa/base/unique_fd.h"

namespace msa::companion {

// One at a time in a process, of which no other thread writes on stderr meanwhile: it would be taken for
// libslurm's.
class SaidOnStderr {
 public:
  SaidOnStderr();
  ~SaidOnStderr();
  SaidOnStderr(const SaidOnStderr&) = delete;
  SaidOnStderr& operator=(const SaidOnStderr&) = delete;

  // The lines so far, without "PROGRAM: error: ", joined by "; ". "" where it could not be caught.
  std::string Text();

 private:
  UniqueFd real_;
  UniqueFd caught_;
};

// The lines of such an output.
std::string LibslurmText(const std::string& output);

}  // namespace msa::companion
