#pragma once
// What the store keeps of regions and leases. Rules as in msa/job/records.h: fields are only appended.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/nam_lease.h"
#include "msa/base/nam_region.h"

namespace msa {

// Where a region's life stands. A region in kReserved exists in memory only.
enum class RegionPhase : std::uint8_t {
  kReserved = 0,  // its extents are being allocated
  kCommitted = 1,
  kRemoving = 2,  // its extents are being freed; the quota is charged until all are
};

struct RegionExtent {
  std::string node;
  Bytes bytes;
  bool freed = false;    // kRemoving: its namd has answered
  bool damaged = false;  // its bytes are lost, or a part of them
  template <class A>
  void Fields(A& a) {
    a(node, bytes, freed, damaged);
  }
};

struct RegionRecord {
  RegionUuid uuid;
  Generation generation{1};
  std::string name;   // unique among those that are not kRemoving
  std::string token;  // of NamCreate
  UserIdentity owner;
  std::string user_name;
  std::uint32_t mode = 0600;
  std::vector<wire::NamAclEntry> acl;
  wire::NamLifetime lifetime = wire::NamLifetime::kLease;
  wire::NamPlacement placement = wire::NamPlacement::kPack;
  RegionPhase phase = RegionPhase::kReserved;
  JobId job;  // whose allotment it is charged to, and with whom it ends when kLease; 0: the user's quota
  LeaseId life_lease;  // kLease without a job: it ends with this lease
  Instant created_at;
  std::vector<RegionExtent> extents;
  std::vector<wire::NamSegmentPlace> segments;
  JobId created_by;  // for people
  template <class A>
  void Fields(A& a) {
    std::int64_t created = ToUnixMillis(created_at);
    a(uuid, generation, name, token, owner.uid, owner.gid, user_name, mode, acl, lifetime, placement, phase,
      job, life_lease, created, extents, segments, created_by);
    created_at = FromUnixMillis(created);
  }
  Bytes bytes() const;
};

// Who holds a lease: exactly one of these is set.
struct NamHolder {
  JobId job;           // with `client` 0: the job itself (--nam-region)
  NamClientId client;  // of a task of `job`
  std::string node;    // of a namd, with `connection`: a process outside any job
  std::uint64_t connection = 0;
  std::uint64_t call = 0;  // an rpc that stays open: a msactl; ends with the controller
  friend auto operator<=>(const NamHolder&, const NamHolder&) = default;
  template <class A>
  void Fields(A& a) {
    a(job, client, node, connection, call);
  }
};

struct LeaseRecord {
  LeaseId id;
  RegionUuid region;
  NamHolder holder;
  std::string token;  // of NamOpen or NamCreate
  UserIdentity user;
  std::string user_name;
  std::string who;
  NamRights rights = NamRights::kNone;
  Instant since;
  std::vector<std::uint32_t> groups;  // of the holder, beyond user.gid
  template <class A>
  void Fields(A& a) {
    std::int64_t at = ToUnixMillis(since);
    a(id, region, holder, token, user.uid, user.gid, user_name, who, rights, at, groups);
    since = FromUnixMillis(at);
  }
};

// All that a store holds of it.
struct StoredNam {
  std::vector<RegionRecord> regions;
  std::vector<LeaseRecord> leases;
  LeaseId last_lease;
};

}  // namespace msa
