#pragma once

#include <string>

#include "database.h"

namespace msa::sqlite {

// The schema that this program writes.
inline constexpr int kSchemaVersion = 3;

// Brings an empty or older database up to kSchemaVersion, one transaction a step; what was done to one that
// was not empty, for the log, else "". kFailedPrecondition: it is newer, or holds somebody else's tables;
// kDataLoss: a record is damaged. After an error it is as the last whole step left it.
Result<std::string> Migrate(Database& db);

}  // namespace msa::sqlite
