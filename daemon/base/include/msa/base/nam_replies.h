#pragma once
// The controller's replies to msa/base/nam_requests.h (msa/base/nam_messages.h: 0x07xx).

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/nam_region.h"

namespace msa::wire {

// ------------------------------------------------------------------- 0x07xx controller -> process: replies

struct NamGranted {
  static constexpr std::uint16_t kType = 0x0721;
  LeaseId lease;
  NamRegionInfo region;  // without holders
  std::string blob;      // a SignedNamLease: what a namd takes
  template <class A>
  void Fields(A& a) {
    a(lease, region, blob);
  }
};

struct NamDone {
  static constexpr std::uint16_t kType = 0x0722;
  template <class A>
  void Fields(A& a) {
    (void)a;
  }
};

struct NamListing {
  static constexpr std::uint16_t kType = 0x0723;
  std::vector<NamRegionInfo> regions;  // by name
  template <class A>
  void Fields(A& a) {
    a(regions);
  }
};

struct NamNodeUsage {
  std::string node;
  bool up = false;
  Bytes capacity;
  Bytes used;  // by regions
  std::uint32_t regions = 0;
  template <class A>
  void Fields(A& a) {
    a(node, up, capacity, used, regions);
  }
};
struct NamUserUsage {
  std::uint32_t uid = 0;
  std::string user_name;
  Bytes used;
  Bytes quota;  // 0: none
  std::uint32_t regions = 0;
  template <class A>
  void Fields(A& a) {
    a(uid, user_name, used, quota, regions);
  }
};
struct NamJobUsage {
  JobId job;
  Bytes used;
  Bytes allotment;
  template <class A>
  void Fields(A& a) {
    a(job, used, allotment);
  }
};
struct NamUsage {
  static constexpr std::uint16_t kType = 0x0724;
  std::vector<NamNodeUsage> nodes;
  std::vector<NamUserUsage> users;  // root and operator: all; others: themselves
  std::vector<NamJobUsage> jobs;    // likewise
  Bytes reserved;                   // allotments of running jobs that they have not drawn yet
  template <class A>
  void Fields(A& a) {
    a(nodes, users, jobs, reserved);
  }
};

struct NamFinding {
  std::string node;
  std::string region;  // name, or uuid of what no region knows
  std::string what;    // for people
  bool repaired = false;
  template <class A>
  void Fields(A& a) {
    a(node, region, what, repaired);
  }
};
struct NamCheckResult {
  static constexpr std::uint16_t kType = 0x0725;
  std::vector<NamFinding> findings;  // empty: all is well
  std::vector<std::string> away;     // NAM nodes that could not be asked
  template <class A>
  void Fields(A& a) {
    a(findings, away);
  }
};

// `code` is a msa::Code.
struct NamFailed {
  static constexpr std::uint16_t kType = 0x072f;
  std::uint8_t code = 0;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(code, message);
  }
};

}  // namespace msa::wire
