#pragma once

#include <cstddef>

#include <pmix_common.h>

#include "msa/pmix/pmix_host.h"

namespace msa::pmix {

// What PMIx_Spawn asks for, without proc and reply. Keys that the job daemon does not act upon are listed by
// name in the app's `unknown`, those of the whole job in the first app's.
Spawn ParseSpawn(const pmix_info_t* job_info, std::size_t ninfo, const pmix_app_t* apps, std::size_t napps);

}  // namespace msa::pmix
