#pragma once

#include <algorithm>

#include "msa/base/ids.h"

namespace msa::cli {

// A supervisor has a daemon back within 50 ms to 5 s.
inline constexpr Millis kFirstBackoff{50};
inline constexpr Millis kLastBackoff{1000};

// The wait after one of `last`; 0 is before the first.
constexpr Millis NextBackoff(Millis last) {
  return last.count() == 0 ? kFirstBackoff : std::min(last * 2, kLastBackoff);
}

}  // namespace msa::cli
