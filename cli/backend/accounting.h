#pragma once
// Jobs as sacct tells them, in the form of squeue's records, so that they fold alike. Pure; any thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

#include "backend/slurm_jobs.h"

namespace msa::cli {

// The names of sacct's fields (--format), in the order in which records are read: jobs alone, --allocations.
std::span<const std::string_view> SacctFields();

// kDataLoss: a record without a job's id.
Result<std::vector<SlurmRow>> ReadSacct(const std::vector<std::vector<std::string>>& records);

// Whether sacct's standard error says that this Slurm keeps no accounting (accounting_storage/none).
bool SaysNoAccounting(std::string_view error);

// As sacct takes times: "2026-11-22T15:00:00", local.
std::string SacctTime(std::int64_t unix_ms);

}  // namespace msa::cli
