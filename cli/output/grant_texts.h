#pragma once
// Grants and spawned namespaces as text and documents. Pure but for local time.

#include <string_view>
#include <vector>

#include "client/types.h"
#include "output/listing.h"

namespace msa::cli {

// "WAITING", "HELD", "RELEASED"; "RELEASING" of a held one whose namespaces are being ended.
std::string_view GrantWord(const GrantInfo& grant);

Listing GrantListing(const std::vector<GrantInfo>& grants);
Details GrantDetails(const GrantInfo& grant);

enum class SpawnsShown { kRunning, kAll };
// The namespaces of `jobs` that were spawned, each after its parent as they began.
Listing SpawnListing(const std::vector<JobInfo>& jobs, SpawnsShown shown);

}  // namespace msa::cli
