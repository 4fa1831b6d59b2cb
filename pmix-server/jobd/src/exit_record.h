#pragma once

#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::jobd {

// Writes the exit record of a job (payload of JobExit) so that it is whole whenever it is there: to a second
// name, then renamed. It survives the death of this process from here on; the descriptor is for
// SyncInBackground. The error names the file.
Result<UniqueFd> SaveExitRecord(const std::string& path, const std::string& payload);

// Syncs and closes the file in a thread of its own: a disk takes milliseconds.
void SyncInBackground(UniqueFd fd);

}  // namespace msa::jobd
