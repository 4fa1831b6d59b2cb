#pragma once

#include <string_view>

#include "msa/base/status.h"

namespace msa::cli {

// Writes all of it to standard output. The error of write(2), as kResourceExhausted for a full disk.
Status Print(std::string_view text);
// "msactl: message" to standard error.
void PrintError(const Status& status);
void PrintNote(std::string_view text);

}  // namespace msa::cli
