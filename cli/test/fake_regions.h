#pragma once
// A system of regions in this process's memory, with what tests want to happen to it.

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "region/region_system.h"

namespace msa::cli::region_test {

using Content = std::vector<std::vector<std::byte>>;  // of each segment

struct FakeRegion {
  wire::NamRegionInfo info;
  Content content;
  std::map<std::uint32_t, int> locks;  // held, by segment
};

// Deterministic bytes that no two seeds share.
inline std::vector<std::byte> Noise(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> out(bytes);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::byte& byte : out) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    byte = static_cast<std::byte>(x >> 32);
  }
  return out;
}

class FakeSystem;

class FakeIo : public RegionIo {
 public:
  FakeIo(FakeSystem& system, std::shared_ptr<FakeRegion> region, NamRights rights)
      : system_(system), region_(std::move(region)), rights_(rights) {}
  const wire::NamRegionInfo& info() const override { return region_->info; }
  Status Read(std::uint32_t segment, std::uint64_t offset, std::span<std::byte> to) override;
  Status Write(std::uint32_t segment, std::uint64_t offset, std::span<const std::byte> from) override;
  Status Take(std::uint32_t segment, Lock lock) override;
  Status Free(std::uint32_t segment) override;

 private:
  FakeSystem& system_;
  const std::shared_ptr<FakeRegion> region_;
  const NamRights rights_;
};

class FakeSystem : public RegionSystem {
 public:
  std::map<std::string, std::shared_ptr<FakeRegion>> regions;
  // Asked before each operation: "read", "write", "lock", "create", "remove", "access".
  std::function<Status(std::string_view what)> before = [](std::string_view) { return Status::Ok(); };

  FakeRegion& Add(const std::string& name, const std::vector<wire::NamSegmentSpec>& segments) {
    wire::NamCreate create;
    create.name = name;
    create.segments = segments;
    EXPECT_TRUE(Create(create).ok());
    return *regions.at(name);
  }
  FakeIo Io(const std::string& name) {
    return FakeIo(*this, regions.at(name), NamRights::kRead | NamRights::kWrite);
  }

  Result<wire::NamRegionInfo> Create(const wire::NamCreate& request) override {
    MSA_RETURN_IF_ERROR(before("create"));
    if (regions.contains(request.name)) return Error(Code::kAlreadyExists, "region '{}'", request.name);
    auto region = std::make_shared<FakeRegion>();
    region->info.uuid = {0xabcd, ++last_};
    region->info.generation = Generation(1);
    region->info.name = request.name;
    region->info.mode = request.mode;
    region->info.placement = request.placement;
    region->info.lifetime = wire::NamLifetime::kPersistent;
    region->info.user_name = "somebody";
    for (const wire::NamSegmentSpec& segment : request.segments) {
      region->info.segments.push_back({segment.bytes, segment.disp_unit, "nam0"});
      region->info.bytes.value += segment.bytes.value;
      region->content.emplace_back(segment.bytes.value);
    }
    regions[request.name] = region;
    return region->info;
  }
  Result<wire::NamRegionInfo> Find(const std::string& name) override {
    for (const auto& [key, region] : regions)
      if (key == name || ToText(region->info.uuid) == name) return region->info;
    return Error(Code::kNotFound, "region '{}': no such region", name);
  }
  Result<std::unique_ptr<RegionIo>> Open(const std::string& name, NamRights rights) override {
    MSA_ASSIGN_OR_RETURN(const auto info, Find(name));
    if (info.state == wire::NamRegionState::kDamaged) return Error(Code::kDataLoss, "region '{}'", name);
    return std::unique_ptr<RegionIo>(std::make_unique<FakeIo>(*this, regions.at(info.name), rights));
  }
  Status Remove(const wire::NamRemove& request) override {
    MSA_RETURN_IF_ERROR(before("remove"));
    MSA_ASSIGN_OR_RETURN(const auto info, Find(request.region));
    regions.erase(info.name);
    return Status::Ok();
  }
  Status SetAccess(const wire::NamSetAccess& request) override {
    MSA_RETURN_IF_ERROR(before("access"));
    MSA_ASSIGN_OR_RETURN(const auto info, Find(request.region));
    wire::NamRegionInfo& region = regions.at(info.name)->info;
    if (request.mode) region.mode = *request.mode;
    if (request.clear) region.acl.clear();
    region.acl.insert(region.acl.end(), request.set.begin(), request.set.end());
    return Status::Ok();
  }

 private:
  std::uint64_t last_ = 0;
};

inline Status FakeIo::Read(std::uint32_t segment, std::uint64_t offset, std::span<std::byte> to) {
  MSA_RETURN_IF_ERROR(system_.before("read"));
  const auto& bytes = region_->content.at(segment);
  EXPECT_LE(offset + to.size(), bytes.size()) << "read outside segment " << segment;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
  return Status::Ok();
}

inline Status FakeIo::Write(std::uint32_t segment, std::uint64_t offset, std::span<const std::byte> from) {
  MSA_RETURN_IF_ERROR(system_.before("write"));
  EXPECT_TRUE(Has(rights_, NamRights::kWrite)) << "written without the right";
  auto& bytes = region_->content.at(segment);
  EXPECT_LE(offset + from.size(), bytes.size()) << "written outside segment " << segment;
  std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  return Status::Ok();
}

inline Status FakeIo::Take(std::uint32_t segment, Lock lock) {
  MSA_RETURN_IF_ERROR(system_.before(lock == Lock::kShared ? "lock shared" : "lock exclusive"));
  EXPECT_EQ(region_->locks[segment]++, 0) << "one lock of a segment at a time";
  return Status::Ok();
}

inline Status FakeIo::Free(std::uint32_t segment) {
  EXPECT_EQ(region_->locks[segment]--, 1) << "freed without being held";
  return Status::Ok();
}

}  // namespace msa::cli::region_test
