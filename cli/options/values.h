#pragma once
// Values of options as text. Every error is kInvalidArgument and names the value and the expected form; the
// caller adds the option. Pure; any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/topology/size_text.h"

namespace msa::cli {

struct NumberRange {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};
// Decimal digits only.
Result<std::uint64_t> ParseNumber(std::string_view text, NumberRange range);

struct NodeRange {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};
// "4" or "2-8".
Result<NodeRange> ParseNodeRange(std::string_view text);

// srun's time limits: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS, or UNLIMITED. Seconds; 0: no
// limit.
Result<std::uint32_t> ParseTimeLimit(std::string_view text);

// "30", "30s", "5m", "2h", "250ms".
Result<Millis> ParseDuration(std::string_view text);

// "9", "KILL", "SIGKILL", any case.
Result<int> ParseSignal(std::string_view text);

// A job's id: a number from 1 on.
Result<JobId> ParseJobId(std::string_view text);

// A grant's id: a number from 1 on.
Result<std::uint64_t> ParseGrantId(std::string_view text);

}  // namespace msa::cli
