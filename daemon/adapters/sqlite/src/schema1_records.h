#pragma once

#include <string_view>

#include "msa/base/status.h"
#include "msa/job/records.h"

namespace msa::sqlite {

// Records as schema version 1 kept them: positional, in the layout that its last build wrote. kDataLoss: not
// such a record, all of its bytes.
Result<JobRecord> JobFromSchema1(std::string_view blob);
Result<GrantRecord> GrantFromSchema1(std::string_view blob);

}  // namespace msa::sqlite
