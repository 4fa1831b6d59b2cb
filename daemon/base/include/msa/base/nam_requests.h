#pragma once
// The requests of processes that use regions (msa/base/nam_messages.h: 0x07xx).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/nam_region.h"

namespace msa::wire {

// ------------------------------------------------------------------- 0x07xx process -> controller: requests
// `region` is a name, a port name or a uuid's text.

// Makes a region and opens it: reserve, allocate, commit. Idempotent by (user, token): a repetition opens
// what was made then. kAlreadyExists: the name is taken; kResourceExhausted: quota of the user or job, or
// memory of the NAM nodes, with numbers, before any memory is handed out; kInvalidArgument: name, mode,
// segments; kNotFound: no such node; kUnavailable: no NAM node is there.
struct NamCreate {
  static constexpr std::uint16_t kType = 0x0701;
  std::string token;
  std::string name;  // empty: the controller finds one
  NamLifetime lifetime = NamLifetime::kLease;
  std::uint32_t mode = 0600;
  NamPlacement placement = NamPlacement::kPack;
  std::vector<NamSegmentSpec> segments;
  std::vector<std::string> nodes;  // only on these NAM nodes; empty: any
  template <class A>
  void Fields(A& a) {
    a(token, name, lifetime, mode, placement, segments, nodes);
  }
};

// A lease on a region. `rights`: what is needed; kMap is given beyond it where the caller has it.
// kNotFound; kPermissionDenied: says which right is missing and who the owner is; kUnavailable: a NAM node of
// it is away; kDataLoss: damaged.
struct NamOpen {
  static constexpr std::uint16_t kType = 0x0702;
  std::string token;
  std::string region;
  NamRights rights = NamRights::kRead | NamRights::kWrite;
  template <class A>
  void Fields(A& a) {
    a(token, region, rights);
  }
};

// Of a NamCreate with this token that the same process does not wait for any longer: what it makes, or has
// made, goes again. Idempotent.
struct NamWithdraw {
  static constexpr std::uint16_t kType = 0x070c;
  std::string token;
  template <class A>
  void Fields(A& a) {
    a(token);
  }
};

// The lease ends. Idempotent.
struct NamClose {
  static constexpr std::uint16_t kType = 0x0703;
  LeaseId lease;
  template <class A>
  void Fields(A& a) {
    a(lease);
  }
};

// The same lease with the present addresses of the NAM nodes: after a restart of one. kNotFound: the lease
// has ended.
struct NamRefresh {
  static constexpr std::uint16_t kType = 0x0704;
  LeaseId lease;
  template <class A>
  void Fields(A& a) {
    a(lease);
  }
};

// kFailedPrecondition: leases on it are held, named; `force` ends them: new access ends at once, the quota
// stays charged until the last mapping is gone.
struct NamRemove {
  static constexpr std::uint16_t kType = 0x0705;
  std::string region;
  bool force = false;
  template <class A>
  void Fields(A& a) {
    a(region, force);
  }
};

// kPersistent of a job's region is charged to the user from now on. Owner and root.
struct NamSetLifetime {
  static constexpr std::uint16_t kType = 0x0706;
  std::string region;
  NamLifetime lifetime = NamLifetime::kLease;
  template <class A>
  void Fields(A& a) {
    a(region, lifetime);
  }
};

// What the caller may see: regions of which he has any right; root and the operator see all.
struct NamList {
  static constexpr std::uint16_t kType = 0x0707;
  std::string region;  // empty: all; else one, with its holders. kNotFound
  std::string user;    // name or uid; empty: all
  template <class A>
  void Fields(A& a) {
    a(region, user);
  }
};

// The segments' new sizes, by index; refused while leases are held (kFailedPrecondition). What both sizes
// have in common is kept, new bytes are zero; the generation grows. Owner and root.
struct NamResize {
  static constexpr std::uint16_t kType = 0x0708;
  std::string region;
  std::vector<Bytes> segments;  // as many as the region has
  template <class A>
  void Fields(A& a) {
    a(region, segments);
  }
};

// Owner and root. Leases that the new rights no longer cover end.
struct NamSetAccess {
  static constexpr std::uint16_t kType = 0x0709;
  std::string region;
  std::optional<std::uint32_t> mode;
  std::optional<std::uint32_t> gid;  // one of the caller's groups; root: any
  std::vector<NamAclEntry> set;      // replaces the entry of the same kind and id; kNone removes it
  bool clear = false;                // all entries first
  template <class A>
  void Fields(A& a) {
    a(region, mode, gid, set, clear);
  }
};

struct NamUsageAsk {
  static constexpr std::uint16_t kType = 0x070a;
  template <class A>
  void Fields(A& a) {
    (void)a;
  }
};

// Compares what the controller knows with what each namd has. `repair`: the operator and root; extents that
// no region knows are freed, regions whose memory is gone are marked damaged.
struct NamCheckAsk {
  static constexpr std::uint16_t kType = 0x070b;
  bool repair = false;
  template <class A>
  void Fields(A& a) {
    a(repair);
  }
};

}  // namespace msa::wire
