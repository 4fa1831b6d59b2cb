#pragma once
// Slurm's words for why a job waits ("QOSMaxJobsPerUserLimit"), for people, and what a companion makes of
// them.

#include <string>
#include <string_view>

namespace msa::companion {

enum class Prospect {
  kUnknown,  // not looked at yet, or a word that says nothing of when
  kQueued,   // others come first
  kBusy,     // what is asked for is in use
  kLimited,  // a limit that other jobs fill
  kNever,    // as it is asked for it cannot start
  kDenied,   // this user, account or QOS cannot have it
};

// Any text; one that is not known is kUnknown.
Prospect ProspectOf(std::string_view reason);

// "the free nodes do not suffice"; for a word that is not known the word itself.
std::string ReasonText(std::string_view reason);

// Somebody has to release it before Slurm looks at it.
bool IsHeld(std::string_view reason);

}  // namespace msa::companion
