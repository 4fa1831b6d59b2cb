#pragma once

#include "database.h"

namespace msa::sqlite {

// The schema that this program writes. Each migration takes the database from its index to the next version.
inline constexpr int kSchemaVersion = 1;

// Brings an empty or older database up to kSchemaVersion, one transaction a step. kFailedPrecondition: it is
// newer, or holds somebody else's tables.
Status Migrate(Database& db);

}  // namespace msa::sqlite
