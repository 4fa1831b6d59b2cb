#pragma once
// Resource limits that a submission hands on to its tasks, by srun's names. Pure; any thread.

#include <array>
#include <cstdint>
#include <optional>
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
// The kernel's numbers of asm-generic/resource.h, which x86, ARM, POWER and RISC-V share.
inline constexpr std::array<NamedLimit, 10> kNamedLimits = {{{"AS", 9},
                                                             {"CORE", 4},
                                                             {"CPU", 0},
                                                             {"DATA", 2},
                                                             {"FSIZE", 1},
                                                             {"MEMLOCK", 8},
                                                             {"NOFILE", 7},
                                                             {"NPROC", 6},
                                                             {"RSS", 5},
                                                             {"STACK", 3}}};
inline constexpr std::int32_t kResources = 16;                  // RLIM_NLIMITS
inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};  // RLIM_INFINITY

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
