#pragma once
// Types of identifiers and quantities. A naked integer never crosses a function's edge as one of these.

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include <fmt/format.h>

namespace msa {

// An integer that knows what it counts. Zero means "none" for ids.
template <class Tag, class Rep>
struct Strong {
  Rep value = 0;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  friend constexpr auto operator<=>(Strong, Strong) = default;
};

using JobId = Strong<struct JobIdTag, std::uint64_t>;    // unique in a system, from 1, never reused
using StepId = Strong<struct StepIdTag, std::uint32_t>;  // within a job, from 0
using Incarnation =
    Strong<struct IncarnationTag, std::uint32_t>;            // a job's launches, from 1; a requeue adds one
using GrantId = Strong<struct GrantIdTag, std::uint64_t>;    // unique in a system, from 1
using ModuleId = Strong<struct ModuleIdTag, std::uint32_t>;  // from the topology file; 0 is a valid module
using Epoch = Strong<struct EpochTag, std::uint64_t>;  // of a job's membership list, grows by one a change
using Rank = Strong<struct RankTag, std::uint32_t>;    // in a namespace, from 0
using Bytes = Strong<struct BytesTag, std::uint64_t>;

using Millis = std::chrono::milliseconds;
// Wall clock with millisecond resolution since the Unix epoch; what is stored and shown.
using Instant = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

// Unix user and group of a request, as the kernel reported them.
struct UserIdentity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  friend auto operator<=>(const UserIdentity&, const UserIdentity&) = default;
};

}  // namespace msa

template <class Tag, class Rep>
struct std::hash<msa::Strong<Tag, Rep>> {
  std::size_t operator()(msa::Strong<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};

template <class Tag, class Rep>
struct fmt::formatter<msa::Strong<Tag, Rep>> : fmt::formatter<Rep> {
  template <class Context>
  auto format(msa::Strong<Tag, Rep> id, Context& ctx) const {
    return fmt::formatter<Rep>::format(id.value, ctx);
  }
};
