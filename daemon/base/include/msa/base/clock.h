#pragma once
// Time enters the core as an argument; these are the sources that main and the adapters use.

#include <chrono>

#include "msa/base/ids.h"

namespace msa {

using SteadyTime = std::chrono::steady_clock::time_point;

// Wall clock, for what is stored and shown. Any thread.
inline Instant Now() { return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now()); }
// Monotonic, for deadlines. Any thread.
inline SteadyTime SteadyNow() { return std::chrono::steady_clock::now(); }

inline std::int64_t ToUnixMillis(Instant at) { return at.time_since_epoch().count(); }
inline Instant FromUnixMillis(std::int64_t ms) { return Instant(Millis(ms)); }

}  // namespace msa
