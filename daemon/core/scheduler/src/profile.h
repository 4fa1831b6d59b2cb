#pragma once
// What is free from now to the end of time, as steps: by the limits of what runs and what is reserved. A step
// holds what changes at it, not what is free: a pass makes a thousand steps of thousands of nodes.

#include <cstddef>
#include <optional>
#include <vector>

#include "free_set.h"
#include "placer.h"

namespace msa {

// After every step that has a date: what ends without a known end has ended by then.
inline constexpr Instant kSomeday = kNever - Millis(1);
// What is past its limit is about to be ended; a job that starts is taken to run at least as long.
inline constexpr Millis kOverrun{1000};

class Profile {
 public:
  // All arguments outlive the profile.
  Profile(const ClusterView& view, const CoreLayout& layout, Instant now);

  // Free now, reservations not counted.
  const FreeSet& free_now() const { return free_now_; }
  // Free throughout [now, end), reservations counted. Valid until the next call that is not const.
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
    FreeSet free = free_now_;
    for (const Step& step : steps_) {
      Apply(step, free);
      if (passes(free)) return step.at;
    }
    return std::nullopt;
  }
  // Free at the last step that has a date.
  FreeSet FreeAtLast();

  // What a job takes: its cores, and of what is the system's.
  struct Taken {
    const Placement& placement;
    SystemShare system;
  };
  // `taken` is free in FreeUntil(end); end >= now + kOverrun.
  void StartNow(const Taken& taken, Instant end);
  // `taken` is free throughout [start, end), or start is kSomeday and end kNever.
  void Reserve(const Taken& taken, Instant start, Instant end);

  // start + limit; kNever without a limit or beyond the end of time.
  static Instant EndOf(Instant start, const std::optional<Millis>& limit);

 private:
  // Given first, then taken: what one reservation gives back another may take at the same time.
  struct Step {
    Instant at;
    std::vector<Piece> gives;
    std::vector<Piece> takes;
    // FreeSet::by_free of some earlier time in the pass: what is free at a step never grows. Empty: not
    // known.
    std::vector<std::uint32_t> bound;
  };
  struct Kept {
    Instant at;  // the last step counted
    FreeSet free;
  };

  void BuildSteps();
  Step& StepAt(Instant at);  // the step that begins at `at`, made if there is none
  static void Apply(const Step& step, FreeSet& free);
  void Advance(FreeSet& free, std::size_t& applied, std::size_t step) const;
  void Mark(Instant at, FreeSet free);
  std::size_t FirstStepFrom(Instant at) const;
  FreeSet Throughout(const FreeSet& before, std::size_t first, std::size_t end) const;
  std::vector<Piece> PiecesOf(const Taken& taken) const;

  const ClusterView& view_;
  const CoreLayout& layout_;
  Instant now_;
  FreeSet free_now_;
  struct Started {
    Instant end;
    std::vector<Piece> pieces;
  };
  std::vector<Started> started_;  // in this pass, before there were steps
  std::vector<Step> steps_;       // empty until a reservation is needed; then steps_[0].at == now_
  // Answers of FreeUntil. Only a step that takes makes anything scarcer, so there is one for each of these.
  std::vector<Kept> kept_;
  // What is free at the steps where the last requests found their place: the next ones need not add up all
  // that is before.
  std::vector<Kept> marks_;
  std::vector<bool> countable_reserved_;  // by node: memory or GPUs are reserved there at some time
  bool system_reserved_ = false;
};

}  // namespace msa
