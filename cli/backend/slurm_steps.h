#pragma once
// Steps of jobs that run, as `squeue --steps` lists them. Pure; any thread.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// The names of squeue's fields (--steps -O), in the order in which records are read.
std::span<const std::string_view> SlurmStepFields();

struct SlurmStep {
  std::string id;  // "7.0", "7.batch"; of an array "7_3.0", of a component its own job's number
  std::vector<std::string> node_list;
  std::string name;
  // Made by srun, so that signals and sattach reach its tasks: no batch script, "extern" or "interactive".
  bool of_srun() const;
};
// kDataLoss: a record without an id.
Result<std::vector<SlurmStep>> ReadSlurmSteps(const std::vector<std::vector<std::string>>& records);

// Those of srun alone, by their numbers. With the label of one task of an array, "14_1", that task's: the
// number of its last one is the array's, of which squeue lists all.
std::vector<SlurmStep> StepsOfSrun(const std::vector<SlurmStep>& steps, std::string_view label = {});

// "7.0 (solver, cn0); 7.1 (io, cn[0-1])", the first ten.
std::string ListSteps(const std::vector<SlurmStep>& steps);

}  // namespace msa::cli
