#pragma once
// Numbers of slurm_errno.h.

#include "msa/base/status.h"

namespace msa::companion {

// Code and Slurm's text, "what: TEXT"; `said`: what libslurm wrote on stderr meanwhile, where the texts of
// job_submit plugins come.
Status SlurmError(int number, const std::string& what, const std::string& said = "");

}  // namespace msa::companion
