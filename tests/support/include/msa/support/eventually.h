#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace msa::support {

// Waits until `fact` holds, looking every 10 ms; a failure that names the claim if it does not within
// `limit`.
//   ASSERT_TRUE(Eventually(5s, "node bn0 is down", [&] { return State("bn0") == "down"; }));
inline testing::AssertionResult Eventually(std::chrono::milliseconds limit, const std::string& claim,
                                           const std::function<bool()>& fact) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (fact()) return testing::AssertionSuccess();
    if (std::chrono::steady_clock::now() >= deadline)
      return testing::AssertionFailure() << "not within " << limit.count() << " ms: " << claim;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// The same for a fact that costs nothing to look at, every 2 ms, and that the failure shows as it stands in
// the test.
inline bool Eventually(std::chrono::milliseconds limit, const std::function<bool()>& fact) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!fact()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace msa::support
