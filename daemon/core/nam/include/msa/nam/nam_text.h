#pragma once
// Names and sizes of regions, as people write them.

#include <string>
#include <string_view>

#include "msa/base/ids.h"
#include "msa/base/nam_region.h"
#include "msa/base/status.h"

namespace msa {

// kInvalidArgument: empty, too long, another letter than [A-Za-z0-9._-], or one that reads as a uuid.
Status CheckNamName(std::string_view name);
// As CheckNamName; a port name or a uuid's text is as good.
Status CheckNamSelector(std::string_view selector);

// kInvalidArgument: a selector that is none, or rights that are not read,
// write, or both.
Status CheckNamBinding(const wire::NamRegionBinding& binding);

}  // namespace msa
