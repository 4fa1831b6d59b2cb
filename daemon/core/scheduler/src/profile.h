#pragma once
// What is free from now to the end of time, as steps: by the limits of what runs and what is reserved.

#include <cstddef>
#include <optional>
#include <vector>

#include "free_set.h"
#include "placer.h"

namespace msa {

// After every step that has a date: what ends without a known end has ended by then.
inline constexpr Instant kSomeday = kNever - Millis(1);

class Profile {
 public:
  // All arguments outlive the profile.
  Profile(const ClusterView& view, const CoreLayout& layout, Instant now);

  // Free now, reservations not counted.
  const FreeSet& free_now() const { return free_now_; }
  // Free throughout [now, end), reservations counted.
  const FreeSet& FreeUntil(Instant end);
  // The earliest start of `request` and where. kSomeday: only when a job without limit ends.
  // nullopt: not even when everything has ended, on nodes that are usable.
  struct Slot {
    Instant start;
    Placement placement;
  };
  std::optional<Slot> Earliest(const JobRequest& request, const Placer& placer);
  // The first step whose free set passes, reservations counted.
  template <class Passes>
  std::optional<Instant> FirstTime(Passes passes) {
    BuildSteps();
    for (const Step& step : steps_)
      if (passes(step.free)) return step.at;
    return std::nullopt;
  }
  // Free at the last step that has a date.
  const FreeSet& FreeAtLast();

  void StartNow(const Placement& placement, Instant end);
  void Reserve(const Placement& placement, Instant start, Instant end);

  // start + limit; kNever without a limit or beyond the end of time.
  static Instant EndOf(Instant start, const std::optional<Millis>& limit);

 private:
  struct Step {
    Instant at;
    FreeSet free;
  };

  void BuildSteps();
  std::size_t StepAt(Instant at);  // the step that begins at `at`, made if there is none
  void BuildPrefixes();

  const ClusterView& view_;
  const CoreLayout& layout_;
  Instant now_;
  FreeSet free_now_;
  std::vector<RunningJob> started_;  // in this pass
  std::vector<Step> steps_;          // empty until a reservation is needed; then steps_[0].at == now_
  std::vector<FreeSet> prefixes_;    // prefixes_[i] = intersection of steps 0..i; empty: to be built
};

}  // namespace msa
