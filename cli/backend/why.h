#pragma once
// Why a job is where it is: Slurm's reason as a sentence, who is before it, and what its user can do. Pure
// but for local time.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/types.h"
#include "output/listing.h"

namespace msa::cli {

struct Blocker {
  std::uint64_t job = 0;
  std::string how;  // "runs until 12:03", "has the higher priority 4711"
};

struct Why {
  std::string word;         // Slurm's; empty of msa's own jobs
  std::string explanation;  // a sentence
  std::vector<Blocker> blocked_by;
  std::string remedy;  // what the user can do; empty: wait
};

// `job` is one of `jobs`, which are Slurm's that wait or run.
Why ExplainSlurm(const JobInfo& job, const std::vector<JobInfo>& jobs);
// Of msa's own scheduler: it words its reasons itself.
Why ExplainMsa(const JobInfo& job);

Details WhyDetails(const JobInfo& job, const Why& why);

// "afterok:12(unfulfilled),afterany:13_*": the jobs that are not there yet.
std::vector<Blocker> BlockersOf(std::string_view dependency);

}  // namespace msa::cli
