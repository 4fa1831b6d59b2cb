#pragma once

#include <string>

#include "msa/base/status.h"

namespace msa::jobd {

// Writes the exit record of a job (payload of JobExit) so that it is whole whenever it is there: to a second
// name, then renamed. The file is synced by a thread of its own; this does not wait for it. The error names
// the file.
Status SaveExitRecord(const std::string& path, const std::string& payload);

}  // namespace msa::jobd
