#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "msa/base/wire.h"

#include "jobd_manager.h"

namespace msa::node {

// Messages of job daemons for the controller that came in one turn of the loop: those of one job that follow
// each other travel as one. Pure.
class UnsentReports {
 public:
  // Of one bundle. gRPC takes 16 MiB; a larger frame goes alone.
  static constexpr std::size_t kMaxFrames = 64;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  using Bundles = std::vector<std::pair<JobKey, std::vector<wire::Frame>>>;

  void Add(const JobKey& key, wire::Frame frame);
  bool empty() const noexcept { return bundles_.empty(); }
  // All, in the order in which they came; none are left.
  Bundles Take() { return std::exchange(bundles_, {}); }
  void Clear() { bundles_.clear(); }

 private:
  Bundles bundles_;
  std::size_t bytes_ = 0;  // of the last
};

}  // namespace msa::node
