#include "pool_policy.h"

#include <algorithm>

namespace msa::node {

PoolPolicy::PoolPolicy(Options options) : options_(options) {
  options_.most = options_.least == 0 ? 0 : std::max(options_.least, options_.most);
}

void PoolPolicy::OnAssigned(SteadyTime now) {
  if (now >= ShrinkAt()) highest_ = 0;
  last_ = now;
  recent_.push_back(now);
  while (recent_.size() > options_.most + 1 || recent_.front() + options_.window <= now) recent_.pop_front();
  highest_ = std::max(highest_, std::min(static_cast<std::uint32_t>(recent_.size()), options_.most));
}

std::uint32_t PoolPolicy::Target(SteadyTime now) const {
  return now >= ShrinkAt() ? options_.least : std::max(highest_, options_.least);
}

SteadyTime PoolPolicy::RefillAfter(std::uint32_t warm) const {
  // In a burst the next launch is as good as there: waiting for a pause would leave it without.
  if (IsBurst() && warm < options_.least) return {};
  return last_ + options_.delay;
}

}  // namespace msa::node
