#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/base/clock.h"

#include "region/nam_library.h"
#include "region/region_io.h"

namespace msa::cli {

// The right to a region, as long as `hold` lives.
struct RegionLease {
  wire::NamRegionInfo info;
  std::string blob;
  std::shared_ptr<void> hold;
};
// Asks the controller, over a new connection if need be.
using LeaseSource = std::function<Result<RegionLease>()>;

struct LiveOptions {
  Millis patience{30'000};          // how long an operation waits for a NAM node, a controller or a lock
  std::function<bool()> stop = {};  // true: waits end with kCancelled
  std::function<SteadyTime()> now = &SteadyNow;
  std::function<void(Millis)> pause = {};  // empty: poll(2)
};

// A region whose bytes libmsanam moves. When its lease ends early, because the controller or a NAM node was
// restarted say, it asks for another one and goes on, unless a lock was held meanwhile (kAborted: what was
// done under it is to be done again).
class LiveRegion : public RegionIo {
 public:
  // Errors of `source` and of the first attachment; does not wait for what is away.
  static Result<std::unique_ptr<RegionIo>> Open(const NamLibrary& library, LeaseSource source,
                                                LiveOptions options);
  ~LiveRegion() override;

  const wire::NamRegionInfo& info() const override { return lease_.info; }
  Status Read(std::uint32_t segment, std::uint64_t offset, std::span<std::byte> to) override;
  Status Write(std::uint32_t segment, std::uint64_t offset, std::span<const std::byte> from) override;
  Status Take(std::uint32_t segment, Lock lock) override;
  Status Free(std::uint32_t segment) override;

 private:
  LiveRegion(const NamLibrary& library, LeaseSource source, LiveOptions options);
  Status Attach();
  void Detach();
  enum class Late { kRenew, kAsk };  // after MSA_NAM_ERR_TIMEOUT: a new lease, or the same call again
  Status Do(const char* what, Late late, const std::function<int(msa_nam_region_t)>& call);
  Status Wait(SteadyTime deadline, const Status& why) const;

  const NamLibrary library_;
  const LeaseSource source_;
  const LiveOptions options_;
  RegionLease lease_;
  msa_nam_region_t handle_ = nullptr;
  int locks_ = 0;  // held
};

}  // namespace msa::cli
