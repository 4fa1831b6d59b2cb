#pragma once
// The port of a job's job daemon on one node, from the range that its node daemon gives:
// "tcp:HOST:%PFIRST-LAST".

#include <string>

#include "msa/base/ids.h"

namespace msa {

// `address` with the range, if it has one, replaced by a port that is the same for each message about this
// incarnation, and another for those before and after it.
std::string WithPortOf(std::string address, JobId job, Incarnation incarnation);

}  // namespace msa
