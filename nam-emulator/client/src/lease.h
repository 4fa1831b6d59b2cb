#pragma once
// A lease as its handle and the handle's extents share it: what it says does not change, its signed text and
// the addresses in it do after a restart.

#include <atomic>
#include <list>
#include <memory>
#include <string>

#include "msa/base/mutex.h"
#include "msa/base/nam_messages.h"

#include "control.h"

namespace msa::nam {

class Lease {
 public:
  enum class Origin : std::uint8_t { kController, kOtherProcess };
  // kInvalidArgument: `blob` is no lease, or of another version.
  static Result<std::shared_ptr<Lease>> Parse(const std::string& blob, Origin origin);

  // Of the first text; addresses may be old.
  const wire::NamLease& terms() const { return terms_; }
  Origin origin() const { return origin_; }
  LeaseId id() const;
  // Now. The text stays as long as this object.
  const std::string& blob() const;
  wire::NamExtentPlace Place(std::uint32_t extent) const;

  // Now: fewer than terms() has, if its owner has taken some away.
  NamRights rights() const { return rights_.load(std::memory_order_relaxed); }

  // Asks for the present addresses; opens the region anew if the lease has ended, with what rights are left.
  // kFailedPrecondition: the region is of another generation, or gone. kPermissionDenied: none are left.
  // kUnavailable, kDeadlineExceeded.
  Status Refresh(SteadyTime deadline);
  // Outside a job the lease of a process ends with its connection, unless it is refreshed by the next one.
  bool EndsWithItsConnection() const { return origin_ == Origin::kController && terms_.job.value == 0; }
  // Whether that connection is gone. *fd: of the one it is held by, to be watched.
  bool IsOrphan(int& fd) const;
  // Ends it at the controller.
  Status End(SteadyTime deadline);

 private:
  struct Text {
    std::string blob;
    wire::NamLease lease;
  };
  Lease(std::string blob, wire::NamLease terms, Origin origin);
  Status Adopt(const std::string& blob);
  // A lease of the same region with what rights are left.
  Result<wire::NamGranted> OpenAnew(SteadyTime deadline);

  const Origin origin_;
  const wire::NamLease terms_;
  mutable Mutex mu_;
  std::list<Text> texts_ MSA_GUARDED_BY(mu_);  // the last one counts
  std::atomic<std::uint64_t> connection_;      // it was granted or refreshed by
  std::atomic<NamRights> rights_;
};

}  // namespace msa::nam
