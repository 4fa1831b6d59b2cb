#pragma once

#include <string>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// What an ordinary user may still write to the file system of `path`. kNotFound: nothing is there; else the
// system's reason. Any thread.
Result<Bytes> FreeSpace(const std::string& path);

}  // namespace msa
