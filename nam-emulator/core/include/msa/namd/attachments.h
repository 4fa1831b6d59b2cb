#pragma once
// What the book (msa/namd/book.h) keeps of attachments and what comes out of its changes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/nam_ids.h"
#include "msa/namd/extent_name.h"

namespace msa::namd {

// Who asks.
struct Caller {
  enum class Via { kSocket, kFabric };
  Via via = Via::kFabric;
  std::uint64_t connection = 0;  // kSocket: its number
  std::uint32_t uid = 0;         // kSocket: as the kernel says
};

// A segment in its extent's data, by slot.
struct SegmentBounds {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SegmentBounds&, const SegmentBounds&) = default;
};
using SegmentTable = std::vector<SegmentBounds>;

// As its file's header and size say.
struct ExtentShape {
  std::uint32_t segments = 0;
  Bytes data;
};

// An owner number of an extent is without a living owner.
struct OwnerEnd {
  ExtentKey extent;
  std::uint32_t owner = 0;
  // kLocks: its locks go, but a mapping that cannot be revoked may still use the number. kNumber: the number
  // goes too.
  enum class What { kLocks, kNumber };
  What what = What::kNumber;
};

// What is to be done in the world after a change, in this order.
struct Outcome {
  struct Told {
    std::uint64_t connection = 0;
    std::uint64_t attachment = 0;
  };
  std::vector<OwnerEnd> owners;
  std::vector<std::uint64_t> keys;   // of the fabric: to be unregistered
  std::vector<Told> told;            // that still map, though their lease has ended
  std::vector<ExtentKey> removable;  // being freed, and no attachment is left
  void Add(Outcome other);
};

// A granted attachment.
struct Grant {
  std::uint64_t attachment = 0;
  ExtentKey extent;
  NamClientId client;
  LeaseId lease;
  std::uint32_t uid = 0;  // of the lease
  std::uint32_t owner = 0;
  std::uint32_t highest_owner = 0;
  NamRights rights = NamRights::kNone;
  bool map = false;     // hand the file out
  bool fabric = false;  // register a key
  bool known = false;   // the client had its owner number before
  Outcome replaced;     // an older attachment of the same client, lost on its way
};

// A checked NamLock or NamAtomic: every number in it is within the extent.
struct SegmentTarget {
  ExtentKey extent;
  std::uint32_t slot = 0;
  std::uint32_t owner = 0;
  std::uint32_t highest_owner = 0;
  std::uint64_t offset = 0;  // of the first element, in the data
  std::uint64_t bytes = 0;   // of all elements
};

// Who holds an owner number, as a namd before this one has noted.
struct RestoredOwner {
  std::uint32_t owner = 0;
  NamClientId client;
  LeaseId lease;
  std::uint32_t uid = 0;
};

}  // namespace msa::namd
