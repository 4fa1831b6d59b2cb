#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "msa/base/status.h"
#include "msa/job/events.h"
#include "msa/job/records.h"

namespace msa {

// One change of the store; the effects of the same names.
using StoreChange = std::variant<effect::PutJob, effect::DeleteJob, effect::PutNode, effect::PutGrant,
                                 effect::DeleteGrant, nam_effect::PutRegion, nam_effect::DeleteRegion,
                                 nam_effect::PutLease, nam_effect::DeleteLease>;

// Where the controller's state outlives the process. One writer, one thread at a time.
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Everything. kDataLoss: the store is damaged; the message says what to do.
  virtual Result<StoredState> LoadAll() = 0;

  // All of `changes`, in order, or none. ok(): they survive the loss of power. kResourceExhausted: disk or
  // quota is full, nothing was changed, it may be tried again; kDataLoss: damaged; kUnavailable: another
  // writer holds it.
  virtual Status Commit(const std::vector<StoreChange>& changes) = 0;

  // Size of what is on disk, for status; 0 if unknown.
  virtual std::int64_t SizeBytes() const = 0;
};

}  // namespace msa
