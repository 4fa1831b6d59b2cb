#pragma once
// Names and reasons: what people read, and what every text format must be able to carry. Pure; any thread.

#include <string>
#include <string_view>

#include "msa/base/status.h"

namespace msa {

// `what` as in "the job's name". kInvalidArgument: not UTF-8, or with control characters; the text shows the
// bytes escaped.
Status CheckName(std::string_view what, std::string_view text);

// `text` with '?' for each byte that CheckName would refuse.
std::string CleanName(std::string_view text);

// The same of what a user's processes or Slurm give as a reason; no longer than anybody reads.
inline constexpr std::size_t kMaxReasonBytes = 1024;
std::string CleanReason(std::string_view text);

}  // namespace msa
