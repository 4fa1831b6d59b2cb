#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msa/base/nam_requests.h"

#include "region/region_io.h"

namespace msa::cli {

// What the commands on regions ask a system for. One thread. Errors: the controller's own (proto/msa/v1/
// nam.proto) and those of a connection.
class RegionSystem {
 public:
  RegionSystem() = default;
  virtual ~RegionSystem() = default;
  RegionSystem(const RegionSystem&) = delete;
  RegionSystem& operator=(const RegionSystem&) = delete;

  // Persistent and zeroed. `request`: without token and lifetime.
  virtual Result<wire::NamRegionInfo> Create(const wire::NamCreate& request) = 0;
  // With its holders. kNotFound.
  virtual Result<wire::NamRegionInfo> Find(const std::string& region) = 0;
  virtual Result<std::unique_ptr<RegionIo>> Open(const std::string& region, NamRights rights) = 0;
  virtual Status Remove(const wire::NamRemove& request) = 0;
  virtual Status SetAccess(const wire::NamSetAccess& request) = 0;
};

// The segments of a region as a request for one like it.
std::vector<wire::NamSegmentSpec> SegmentsOf(const wire::NamRegionInfo& region);
// kFailedPrecondition names what differs: number, size or displacement unit of segments.
Status CheckSameLayout(const wire::NamRegionInfo& region, const std::vector<wire::NamSegmentSpec>& expected);

}  // namespace msa::cli
