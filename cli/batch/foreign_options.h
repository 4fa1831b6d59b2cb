#pragma once
// sbatch's options that msa does not follow: some have no meaning here, some would change what the job gets.

#include <span>
#include <string_view>

#include "options/parser.h"

namespace msa::cli {

struct ForeignOption {
  char letter = 0;
  std::string_view name;
  Takes takes = Takes::kValue;
  // Why it can be left out: a warning. Empty: it is refused with `remedy`.
  std::string_view meaningless;
  std::string_view remedy;
};

// None of them is an option of `msactl submit`.
std::span<const ForeignOption> ForeignOptions();

}  // namespace msa::cli
