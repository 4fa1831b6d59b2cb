#pragma once
// What job_submit, inside slurmctld, reads of the system. Pure; any thread.

#include <string>

#include "msa/topology/topology.h"

namespace msa::cli {

// The text of msa_job_submit.conf, with the lines of slurm.conf that belong to it as comments. `granule`: a
// licence stands for so much network attached memory; not 0.
std::string SiteFileText(const SystemTopology& topology, Bytes granule);

}  // namespace msa::cli
