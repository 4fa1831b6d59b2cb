#pragma once
// Regions, their use and their snapshots as text and documents. Reads local time and the names of users.

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/nam_replies.h"

#include "output/listing.h"
#include "region/snapshot_store.h"

namespace msa::cli {

// "READY", "DAMAGED", "AWAY", "REMOVING".
std::string_view RegionStateName(wire::NamRegionState state);

Listing RegionListing(const std::vector<wire::NamRegionInfo>& regions);
// With segments and who is attached.
Details RegionDetails(const wire::NamRegionInfo& region);
// Owner, mode and entries.
Details AccessDetails(const wire::NamRegionInfo& region);

Listing NodeUsageListing(const wire::NamUsage& usage);
Listing UserUsageListing(const wire::NamUsage& usage);
Listing JobUsageListing(const wire::NamUsage& usage);
// All three as one document.
Document UsageDocument(const wire::NamUsage& usage);

Listing CheckListing(const wire::NamCheckResult& result);
Listing SnapshotListing(const std::vector<SnapshotStore::Entry>& entries);

}  // namespace msa::cli
