#pragma once
// Whether a task initialised MPI by itself. The rule and its reasons stand at TaskLauncher.

#include <sys/types.h>

#include <string>
#include <string_view>

#include "msa/base/ids.h"

namespace msa::launch {

struct MpiEvidence {
  std::string library;       // soname of the MPI that is mapped; empty: none
  bool initialised = false;  // as a singleton
};

// The evidence in the text of one /proc/PID/maps. `initialised` of MPICH is subject to the environment, see
// below.
MpiEvidence ClassifyMaps(std::string_view maps);

// Looks at the process and at all below it. Costs about 0.1 ms per process.
MpiEvidence InspectProcesses(pid_t task);

// How long after the start the n-th look (from 0) at a task is due. `library`: what its program names as its
// MPI.
Millis InspectionDue(int n, std::string_view library);

}  // namespace msa::launch
