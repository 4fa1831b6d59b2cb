#pragma once
// Resource limits that a submission hands on to its tasks, by srun's names. Pure; any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/status.h"

namespace msa {

struct NamedLimit {
  std::string_view name;  // "NOFILE"
  std::int32_t resource;  // RLIMIT_NOFILE
};
// AS, CORE, CPU, DATA, FSIZE, MEMLOCK, NOFILE, NPROC, RSS, STACK.
std::span<const NamedLimit> NamedLimits();

// "NOFILE"; of one that has no name here "number 11".
std::string LimitName(std::int32_t resource);
// Any case, with or without "RLIMIT_".
std::optional<std::int32_t> FindLimit(std::string_view name);
// "1024" or "unlimited".
std::string LimitText(std::uint64_t value);

// kInvalidArgument: a number that is no resource, one that stands there twice, a soft limit above its hard
// one.
Status CheckLimits(const std::vector<wire::ResourceLimit>& limits);

// A line for each soft limit of `wanted` that is above the hard limit in `own`, to which it is lowered.
std::vector<std::string> LoweredLimits(const std::vector<wire::ResourceLimit>& wanted,
                                       const std::vector<wire::ResourceLimit>& own);

}  // namespace msa
