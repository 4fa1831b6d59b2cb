#pragma once
// The scheduler written plainly: every step holds all that is free, every question looks at every node. Slow,
// and what Schedule must agree with.

#include <vector>

#include "msa/scheduler/scheduler.h"

namespace msa::scheduler_test {

// Starts, and for those that wait when they are expected; no reasons.
Plan ReferenceSchedule(const ClusterView& view, const std::vector<PendingJob>& pending, Instant now,
                       const SchedulerOptions& options);

}  // namespace msa::scheduler_test
