#pragma once
// When a job may start: --dependency and --begin, as sbatch's. Any thread.

#include <cstdint>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/job/job_spec.h"

namespace msa::cli {

struct DependencyList {
  std::vector<Dependency> dependencies;
  bool any = false;  // separated by '?'
};
// "afterok:1:2,afterany:3", "after:4+5", "singleton"; ',' all of them, '?' one of them. kInvalidArgument
// names the part that is wrong. Pure.
Result<DependencyList> ParseDependencies(std::string_view text);

// "now", "now+1hour", "16:00", "16:00:30", "noon", "midnight", "teatime", "fika", "today", "tomorrow",
// "2026-12-24", "2026-12-24T16:00", "2026-12-24T16:00:00Z", "12/24", "12/24/26", and a day followed by '-',
// 'T' or a blank and a time of day. Unix milliseconds; 0: at once. A time of day that has passed is
// tomorrow's. Local time but for 'Z' (reads TZ).
Result<std::int64_t> ParseBegin(std::string_view text, Instant now);

// The same forms for a time that lies behind, and "now-2hours", "yesterday"; a time of day is the last one
// that was.
Result<std::int64_t> ParsePast(std::string_view text, Instant now);

}  // namespace msa::cli
