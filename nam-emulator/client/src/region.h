#pragma once
// What is behind a msa_nam_region_t.

#include <msa_nam.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "msa/base/mutex.h"
#include "msa/base/nam_messages.h"

#include "extent.h"
#include "lease.h"

namespace msa::nam {

// All that a put of mapped memory looks at. The bases turn null when the extent is stale.
struct Segment {
  std::atomic<std::byte*> put_base{nullptr};  // null: not mapped, or not to be written
  std::atomic<std::byte*> get_base{nullptr};
  std::uint64_t bytes = 0;
  Extent* extent = nullptr;
  std::uint64_t extent_offset = 0;
  std::uint32_t slot = 0;
  std::uint32_t disp_unit = 1;
};

using Direction = Extent::Direction;

}  // namespace msa::nam

// A transfer over the fabric under way. Its own lock: its owner may wait for it while another thread flushes.
struct msa_nam_request {
  msa_nam_region* region = nullptr;
  msa::nam::Segment* segment = nullptr;
  msa::nam::Direction direction = msa::nam::Direction::kPut;
  std::vector<msa::nam::FabricPiece> pieces;
  msa::Mutex mu;
  std::unique_ptr<msa::nam::FabricTransfer> transfer MSA_GUARDED_BY(mu);
  std::optional<msa::Status> result MSA_GUARDED_BY(mu);
  // Until then a broken one is begun again; then it is given up.
  msa::SteadyTime deadline MSA_GUARDED_BY(mu) = msa::SteadyTime::max();

  // At the latest, from now on.
  void EndBy(msa::SteadyTime latest) MSA_EXCLUDES(mu);
  // Whether it is complete or given up; waits until then at most.
  bool Advance(msa::SteadyTime until) MSA_EXCLUDES(mu);
  msa::Status Result() MSA_EXCLUDES(mu);

 private:
  std::optional<msa::Status> Step(msa::SteadyTime until) MSA_REQUIRES(mu);
  msa::Status TooLate() const;
};

struct msa_nam_region {
  msa_nam_region(std::shared_ptr<msa::nam::Lease> granted,
                 std::vector<std::shared_ptr<msa::nam::Extent>> ways);
  ~msa_nam_region();

  // Attaches to all extents.
  static msa::Result<std::unique_ptr<msa_nam_region>> Open(std::shared_ptr<msa::nam::Lease> lease,
                                                           msa::SteadyTime deadline);

  msa::Millis timeout() const { return msa::Millis(timeout_ms.load(std::memory_order_relaxed)); }
  msa::SteadyTime Deadline() const { return msa::SteadyNow() + timeout(); }
  // Of a transfer, which takes its time even if nothing is waited for.
  msa::SteadyTime TransferDeadline() const;

  // kOutOfRange, kPermissionDenied, kFailedPrecondition (stale).
  msa::Status Check(std::uint32_t index, std::uint64_t offset, std::uint64_t bytes,
                    msa::NamRights right) const;
  msa::Status CheckSegment(std::uint32_t index) const;

  msa::Status Start(msa::nam::Segment& segment, msa::nam::Direction direction,
                    std::vector<msa::nam::FabricPiece> pieces, msa_nam_request_t* request);
  void Forget(msa_nam_request* request);
  msa::Status Flush(std::uint32_t index);

  msa::Status Lock(std::uint32_t index, msa::nam::LockMode mode, msa::Millis wait);
  // As long as `pause` says so; a namd that is away is waited for that long.
  msa::Status LockWhile(std::uint32_t index, msa::nam::LockMode mode, const msa::nam::Gate::Pause& pause,
                        msa::Millis patience);
  msa::Status Unlock(std::uint32_t index);
  // What this handle holds.
  void UnlockAll();

  std::uint32_t segment_count = 0;
  std::unique_ptr<msa::nam::Segment[]> segments;
  msa::NamRights rights = msa::NamRights::kNone;
  std::atomic<std::uint32_t> timeout_ms{30'000};
  std::shared_ptr<msa::nam::Lease> lease;
  std::vector<std::shared_ptr<msa::nam::Extent>> extents;
  msa::Mutex mu;
  std::optional<msa::wire::NamLifetime> lifetime MSA_GUARDED_BY(mu);
  std::map<msa_nam_request*, std::shared_ptr<msa_nam_request>> requests MSA_GUARDED_BY(mu);
};
