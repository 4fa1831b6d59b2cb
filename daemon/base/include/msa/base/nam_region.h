#pragma once
// What the messages of the network attached memory are made of: regions, segments, rights, holders.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/nam_ids.h"

namespace msa::wire {

inline constexpr std::uint32_t kNamProtocolVersion = 1;
inline constexpr std::size_t kMaxNamName = 127;  // bytes; [A-Za-z0-9._-]+, first one a letter or digit
inline constexpr std::size_t kMaxNamSegments = 1u << 16;
inline constexpr std::size_t kMaxNamAcl = 64;
inline constexpr std::size_t kMaxNamToken = 64;
// Neither a lease of 65,536 segments nor any other message of 0x07xx to 0x09xx is longer.
inline constexpr std::size_t kMaxNamPayload = std::size_t{4} << 20;

// How long a region lives. kLease: as long as its job; of a process outside any job: as long as the lease
// under which it was created. kPersistent: until it is removed.
enum class NamLifetime : std::uint8_t { kLease = 0, kPersistent = 1 };
// Where its segments go. kPack: on as few NAM nodes as hold them. kSpread: evenly over all that have room.
enum class NamPlacement : std::uint8_t { kPack = 0, kSpread = 1 };

// One former rank's part of a region. It lies whole on one NAM node.
struct NamSegmentSpec {
  Bytes bytes;                  // 0 is allowed
  std::uint32_t disp_unit = 1;  // MPI's displacement unit, at least 1
  template <class A>
  void Fields(A& a) {
    a(bytes, disp_unit);
  }
};

enum class NamAclKind : std::uint8_t { kUser = 0, kGroup = 1 };
// Rights beyond the mode's. kMap is given in no other way: the mode lets nobody but the owner map.
struct NamAclEntry {
  NamAclKind kind = NamAclKind::kUser;
  std::uint32_t id = 0;  // uid or gid
  NamRights rights = NamRights::kNone;
  template <class A>
  void Fields(A& a) {
    a(kind, id, rights);
  }
};

// A job's --nam-region NAME[:ro|rw]: the region stays while the job runs, and the job's leases on it have no
// more rights than these.
struct NamRegionBinding {
  std::string region;  // name
  NamRights rights = NamRights::kRead | NamRights::kWrite;
  template <class A>
  void Fields(A& a) {
    a(region, rights);
  }
};

// Who holds a lease, for people.
struct NamHolderInfo {
  LeaseId lease;
  JobId job;        // 0: no job
  std::string who;  // "rank 3 of msa.7.1.0 on cn0", "pid 4711 on nam0", "job 7" (--nam-region)
  std::uint32_t uid = 0;
  std::string user_name;
  NamRights rights = NamRights::kNone;
  std::int64_t since_ms = 0;  // Unix milliseconds
  template <class A>
  void Fields(A& a) {
    a(lease, job, who, uid, user_name, rights, since_ms);
  }
};

enum class NamRegionState : std::uint8_t {
  kReady = 0,
  kDamaged =
      1,      // its memory, or a part of it, is lost (a client truncated it, a NAM node lost its directory)
  kAway = 2,  // a NAM node that holds a part of it is not there
  kRemoving = 3,  // removed, its memory is still mapped by somebody
};

struct NamSegmentInfo {
  Bytes bytes;
  std::uint32_t disp_unit = 1;
  std::string node;
  template <class A>
  void Fields(A& a) {
    a(bytes, disp_unit, node);
  }
};

struct NamRegionInfo {
  RegionUuid uuid;
  Generation generation;
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string user_name;
  std::uint32_t mode = 0600;  // rw bits of owner, group, others, as of a file
  std::vector<NamAclEntry> acl;
  NamLifetime lifetime = NamLifetime::kLease;
  NamPlacement placement = NamPlacement::kPack;
  NamRegionState state = NamRegionState::kReady;
  JobId job;  // that created it, 0: none
  std::int64_t created_ms = 0;
  Bytes bytes;  // of all segments: what the quota is charged
  std::vector<NamSegmentInfo> segments;
  std::vector<NamHolderInfo> holders;
  template <class A>
  void Fields(A& a) {
    a(uuid, generation, name, uid, gid, user_name, mode, acl, lifetime, placement, state, job, created_ms,
      bytes, segments, holders);
  }
};

}  // namespace msa::wire
