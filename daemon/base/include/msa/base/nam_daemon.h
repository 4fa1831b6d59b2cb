#pragma once
// The messages between namd and the controller (msa/base/nam_messages.h: 0x09xx).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/nam_lease.h"

namespace msa::wire {

// ------------------------------------------------------------------------------------ 0x09xx namd ->
// controller

enum class NamExtentState : std::uint8_t { kPending = 0, kCommitted = 1, kDamaged = 2 };

struct NamExtentReport {
  RegionUuid uuid;
  Generation generation;
  NamExtentState state = NamExtentState::kPending;
  Bytes bytes;
  template <class A>
  void Fields(A& a) {
    a(uuid, generation, state, bytes);
  }
};

// First message of a session, and again whenever the node daemon has registered anew.
struct NamdHello {
  static constexpr std::uint16_t kType = 0x0901;
  std::uint32_t version = kNamProtocolVersion;
  std::uint64_t system = 0;  // of the extents in its directory; 0: it has none yet
  Bytes capacity;            // the topology's, or less if the directory's file system has less
  std::string backing;       // "/dev/shm/..." for people
  std::string socket;
  std::string fabric_provider;
  std::string fabric_address;
  std::vector<NamExtentReport> extents;
  std::uint32_t pid = 0;
  // Of NamFromLocal, that are open: leases of all others at this node end. nullopt: not told.
  std::optional<std::vector<std::uint64_t>> connections;
  template <class A>
  void Fields(A& a) {
    a(version, system, capacity, backing, socket, fabric_provider, fabric_address, extents, pid, connections);
  }
};

// Answer to ExtentAllocate, ExtentFree with the same `request`; code as msa::Code.
struct NamExtentDone {
  static constexpr std::uint16_t kType = 0x0902;
  std::uint64_t request = 0;
  std::uint8_t code = 0;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(request, code, message);
  }
};

// A client truncated or removed it.
struct NamExtentDamaged {
  static constexpr std::uint16_t kType = 0x0903;
  RegionUuid uuid;
  Generation generation;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(uuid, generation, reason);
  }
};

// A request (0x07xx) of a process outside any job, on namd's host.
struct NamFromLocal {
  static constexpr std::uint16_t kType = 0x0904;
  std::uint64_t connection = 0;  // its own number at this namd
  std::uint32_t uid = 0;         // as the kernel says
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::uint32_t pid = 0;
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::string payload;
  template <class A>
  void Fields(A& a) {
    a(connection, uid, gid, groups, pid, type, id, payload);
  }
};
// It closed its connection: its leases end, and the attachments of its client at every namd.
struct NamLocalGone {
  static constexpr std::uint16_t kType = 0x0905;
  std::uint64_t connection = 0;
  NamClientId client;  // of its NamClientHello; 0: none came
  template <class A>
  void Fields(A& a) {
    a(connection, client);
  }
};

// Answer to NamScan. A NamExtentDamaged for each extent whose file is gone or cut off came before.
struct NamScanned {
  static constexpr std::uint16_t kType = 0x0906;
  std::uint64_t request = 0;
  std::string failure;                   // why the directory could not be read; "": it was
  std::vector<NamExtentReport> extents;  // files that this daemon did not know; committed: that have grown
  std::vector<std::string> foreign;      // names of files that are no extents, the first kMaxForeign
  std::uint64_t foreign_count = 0;
  template <class A>
  void Fields(A& a) {
    a(request, failure, extents, foreign, foreign_count);
  }
};
inline constexpr std::size_t kMaxForeign = 64;

// ------------------------------------------------------------------------------------ 0x09xx controller ->
// namd

// Answer to NamdHello. A namd whose extents belong to another system gets its session ended instead.
struct NamdWelcome {
  static constexpr std::uint16_t kType = 0x0921;
  std::uint64_t system = 0;
  std::string key;                       // 32 bytes: what leases are signed with
  std::vector<LeaseId> leases;           // that live; all others are revoked
  std::vector<NamExtentReport> extents;  // that must be here. Pending ones that are not listed are freed;
                                         // committed ones that are not listed stay, for `msactl region fsck`
  LeaseId newest;  // highest id given so far: later ones are taken by their signature. 0: of `leases`
  template <class A>
  void Fields(A& a) {
    a(system, key, leases, extents, newest);
  }
};

// Makes a pending extent, zeroed and wholly backed (posix_fallocate). Idempotent. kResourceExhausted: the
// directory's file system is full.
struct NamExtentAllocate {
  static constexpr std::uint16_t kType = 0x0922;
  std::uint64_t request = 0;
  RegionUuid uuid;
  Generation generation;
  Generation copy_from;                   // 0: zeroed; else the generation whose segments are kept (resize)
  std::vector<NamSegmentPlace> segments;  // `extent` unused
  std::vector<NamSegmentPlace> old_segments;  // of copy_from
  std::uint32_t mode = 0;                     // unused by namd, shown by fsck
  template <class A>
  void Fields(A& a) {
    a(request, uuid, generation, copy_from, segments, old_segments, mode);
  }
};

// The region is on the controller's disk: the extent is kept from here on. Not answered.
struct NamExtentCommit {
  static constexpr std::uint16_t kType = 0x0923;
  RegionUuid uuid;
  Generation generation;
  template <class A>
  void Fields(A& a) {
    a(uuid, generation);
  }
};

struct NamToLocal {
  static constexpr std::uint16_t kType = 0x0924;
  std::uint64_t connection = 0;
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::string payload;
  template <class A>
  void Fields(A& a) {
    a(connection, type, id, payload);
  }
};

// New access ends at once; the answer comes when no attachment of the Unix socket is left, so that the memory
// is really free. Idempotent: an extent that is not there is answered with success.
struct NamExtentFree {
  static constexpr std::uint16_t kType = 0x0925;
  std::uint64_t request = 0;
  RegionUuid uuid;
  Generation generation;
  template <class A>
  void Fields(A& a) {
    a(request, uuid, generation);
  }
};

// Ends attachments: of these leases, and of these clients under any lease. Not answered.
struct NamRevoke {
  static constexpr std::uint16_t kType = 0x0926;
  std::vector<LeaseId> leases;
  std::vector<NamClientId> clients;
  template <class A>
  void Fields(A& a) {
    a(leases, clients);
  }
};

// Look what the directory really holds, for fsck.
struct NamScan {
  static constexpr std::uint16_t kType = 0x0928;
  std::uint64_t request = 0;
  template <class A>
  void Fields(A& a) {
    a(request);
  }
};

// Leave this directory alone: its extents belong to another system, or the daemon's version does not fit. The
// session ends.
struct NamdQuit {
  static constexpr std::uint16_t kType = 0x0927;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(reason);
  }
};

}  // namespace msa::wire
