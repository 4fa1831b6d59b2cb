#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "msa/base/status.h"

#include "client/endpoint.h"
#include "client/types.h"

namespace msa::cli {

struct Submission {
  JobSpec spec;
  std::string token;  // MakeToken; unlike any other's
};

// The answer to submissions[index]: the job, which is on disk, or why there is none.
using SubmitAnswer = std::function<void(std::size_t index, const Result<JobId>& job)>;

// Submits all over one stream and returns after the last answer; answers come in any order, on this thread.
// Once one is refused no further one is sent; those under way are answered. A controller that goes away
// meanwhile is waited for, and gets again what was not answered: the tokens see to it that nothing is
// submitted twice. kUnavailable: it did not come back, or is there and does not answer; errors of
// ConnectController. What was answered before counts.
Status SubmitAll(const Endpoint& endpoint, const std::vector<Submission>& submissions,
                 const SubmitAnswer& answer);

}  // namespace msa::cli
