#pragma once
// What batch jobs and allocations add to the texts about jobs. Pure but for local time.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msa/job/job_spec.h"

#include "output/document.h"

namespace msa::cli {

// "run", "batch", "alloc".
std::string_view ModeName(wire::JobMode mode) noexcept;

// [{"type": "afterok", "job": 3, "delay_seconds": 0, "state": "open"}, ...]; "job" is null for singleton.
Document DependenciesDocument(const JobSpec& spec);

// Lines of `job show`: what the job waits or waited for, if it does.
void AddWaits(const JobSpec& spec, std::vector<std::pair<std::string, std::string>>* lines);

}  // namespace msa::cli
