#pragma once
// Sentences about a job of Slurm, for people.

#include <cstdint>
#include <string>
#include <string_view>

#include "msa/base/ids.h"

namespace msa::companion {

// "90 s", "1500 ms".
std::string SpanText(Millis span);

// Why it waits: `reason` in words, and what slurmctld wrote beside it.
std::string PendingText(std::string_view reason, std::string_view detail);

// "; Slurm expects to start it at 2026-01-02T03:04:05Z", or nothing: `expected` is not known (0), is not
// after `now`, or is so far away that it stands for jobs without an end.
std::string ExpectedText(std::uint64_t expected, std::uint64_t now);

// Whose doing the end was, from Slurm's state: "CANCELLED" -> "it was cancelled (scancel)".
std::string EndText(std::string_view state);

}  // namespace msa::companion
