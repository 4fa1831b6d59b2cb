#pragma once

namespace msa::wire {

// What sbatch and salloc set in the scripts of heterogeneous jobs, and these in their steps: the leader's id.
// A plain job submitted from within such a script may have that of the other.
inline constexpr char kSlurmHetLeader[] = "SLURM_JOB_ID_HET_GROUP_0";

}  // namespace msa::wire
