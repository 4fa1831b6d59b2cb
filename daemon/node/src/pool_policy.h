#pragma once

#include <cstdint>
#include <deque>

#include "msa/base/clock.h"

namespace msa::node {

// How many warm job daemons are worth keeping, and when one more may be started. Launches that come one at a
// time find `least` of them, and their refill waits until the launch is through; launches that come faster
// than the pool fills raise the number up to `most`, and what the next one needs is started at once.
class PoolPolicy {
 public:
  struct Options {
    std::uint32_t least = 2;  // 0: no pool at all
    std::uint32_t most = 8;   // a warm job daemon costs 3 MiB of its own
    Millis window{1'000};     // what came within it is expected to come again
    Millis idle{10'000};      // without any launch: back to `least`
    Millis delay{30};         // a launch takes 10: its processes get the cores first
  };
  explicit PoolPolicy(Options options);

  void OnAssigned(SteadyTime now);
  // Warm job daemons to keep.
  std::uint32_t Target(SteadyTime now) const;
  // No start for the pool before, given how many are warm.
  SteadyTime RefillAfter(std::uint32_t warm) const;
  // When Target falls back to `least`.
  SteadyTime ShrinkAt() const { return last_ + options_.idle; }

 private:
  bool IsBurst() const { return recent_.size() > options_.least; }

  Options options_;
  std::deque<SteadyTime> recent_;  // at most `most` + 1, as of the last assignment
  std::uint32_t highest_ = 0;      // target of this burst
  SteadyTime last_{};
};

}  // namespace msa::node
