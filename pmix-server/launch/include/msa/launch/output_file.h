#pragma once

#include <cstdint>
#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::launch {

enum class OpenMode : std::uint8_t { kTruncate, kAppend };

// Opens a file for a task's stdout or stderr, creating it with mode 0666 less the umask. The descriptor is
// close-on-exec and blocking. Messages name path and remedy. kNotFound: its directory; kPermissionDenied;
// kInvalidArgument: a directory, or a name that is too long; kResourceExhausted: disk, quota or descriptors.
// Any thread.
Result<UniqueFd> OpenOutputFile(const std::string& path, OpenMode mode);

}  // namespace msa::launch
