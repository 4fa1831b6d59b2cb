#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/clock.h"

namespace msa::support {

// Runs the loop in this thread until `fact` holds; false if it does not within `limit`. A loop that fails,
// fails the test.
inline bool RunUntil(EventLoop& loop, Millis limit, const std::function<bool()>& fact) {
  const SteadyTime deadline = SteadyNow() + limit;
  while (!fact()) {
    if (SteadyNow() >= deadline) return false;
    // 5 ms: facts of other processes raise no event here.
    const Status ran = loop.RunOnce(Millis(5));
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    if (!ran.ok()) return false;
  }
  return true;
}

}  // namespace msa::support
