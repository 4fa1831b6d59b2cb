#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "msa/base/nam_region.h"
#include "msa/base/status.h"

namespace msa::cli {

// The bytes of an open region. One thread. Errors of all: kUnavailable: a NAM node is away and did not come
// back in time; kAborted: the region was resized, restored or removed meanwhile; kPermissionDenied: a right
// is missing; kDataLoss: its memory is damaged.
class RegionIo {
 public:
  RegionIo() = default;
  virtual ~RegionIo() = default;
  RegionIo(const RegionIo&) = delete;
  RegionIo& operator=(const RegionIo&) = delete;

  virtual const wire::NamRegionInfo& info() const = 0;
  // Offsets lie in the segment: the caller has checked it (kOutOfRange).
  virtual Status Read(std::uint32_t segment, std::uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status Write(std::uint32_t segment, std::uint64_t offset, std::span<const std::byte> from) = 0;
  enum class Lock { kShared, kExclusive };
  // kDeadlineExceeded: held by another, who is named.
  virtual Status Take(std::uint32_t segment, Lock lock) = 0;
  virtual Status Free(std::uint32_t segment) = 0;
};

}  // namespace msa::cli
