#pragma once

#include <string>
#include <vector>

#include "output/listing.h"

namespace msa::cli {

// What 'msactl doctor' found in one place.
struct Finding {
  enum class Level {
    kOk,
    kWarn,  // works, or some of it does
    kFail,  // will not work
  };
  Level level = Level::kOk;
  std::string check;   // one word: "directory"
  std::string found;   // with the value and where it was
  std::string remedy;  // what to do; empty if kOk
};
using Findings = std::vector<Finding>;

std::string_view LevelWord(Finding::Level level);
// For people: a line for each, what to do beneath it, and a sum.
std::string ShowFindings(const Findings& findings);
// For -f json and the like.
Listing FindingListing(const Findings& findings);
bool AnyFailed(const Findings& findings);

}  // namespace msa::cli
