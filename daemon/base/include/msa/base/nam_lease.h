#pragma once
// Leases, and the messages between a process that holds one and namd (msa/base/nam_messages.h: 0x08xx).

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/nam_region.h"

namespace msa::wire {

// --------------------------------------------------------------------------------------------- the lease

// All segments of a region on one NAM node: one file there.
struct NamExtentPlace {
  std::string node;
  std::string socket;           // path of namd's Unix socket, for processes on its host
  std::string fabric_provider;  // libfabric's name, "tcp;ofi_rxm"; empty: this namd serves no fabric
  std::string fabric_address;   // libfabric's address bytes of its endpoint (fi_getname)
  Bytes bytes;                  // of the data
  template <class A>
  void Fields(A& a) {
    a(node, socket, fabric_provider, fabric_address, bytes);
  }
};

struct NamSegmentPlace {
  std::uint32_t extent = 0;  // index in NamLease::extents
  std::uint32_t slot = 0;    // its place among the extent's segments: which lock words are its own
  std::uint64_t offset = 0;  // of its first byte in the extent's data, a multiple of 64
  Bytes bytes;
  std::uint32_t disp_unit = 1;
  template <class A>
  void Fields(A& a) {
    a(extent, slot, offset, bytes, disp_unit);
  }
};

struct NamLease {
  std::uint32_t version = kNamProtocolVersion;
  std::uint64_t system = 0;  // random, of the controller's store
  LeaseId lease;
  RegionUuid uuid;
  Generation generation;
  std::string name;
  NamRights rights = NamRights::kNone;
  std::uint32_t uid = 0;  // of the holder: namd maps for no other
  JobId job;
  std::vector<NamExtentPlace> extents;
  std::vector<NamSegmentPlace> segments;
  template <class A>
  void Fields(A& a) {
    a(version, system, lease, uuid, generation, name, rights, uid, job, extents, segments);
  }
};

// What goes over the wire: opaque to its holder but for NamLease's fields, checked by namd. Whoever has it
// has its rights: it is kept as a password is.
struct SignedNamLease {
  static constexpr std::uint16_t kType = 0x0730;
  std::string lease;      // NamLease, encoded
  std::string signature;  // HMAC-SHA256 of it under the system's NAM key (RFC 2104)
  template <class A>
  void Fields(A& a) {
    a(lease, signature);
  }
};

// --------------------------------------------------------------------------------- 0x08xx process <-> namd

// Attaches to this namd's extent of the lease. Over the Unix socket with kMap: the extent's file is passed
// with the answer (SCM_RIGHTS), read-only unless the lease has kWrite; the kernel's uid of the caller must be
// the lease's. The attachment ends with the connection (Unix socket), with NamDetach, with its lease, or when
// the controller tells that the client is gone; its locks are freed then. kUnauthenticated: bad signature or
// system; kPermissionDenied: another uid; kFailedPrecondition: old generation or lease revoked; kNotFound: no
// such extent here; kDataLoss: truncated by a client; kResourceExhausted: more clients than an extent has
// slots for (msa/nam/layout.h).
struct NamAttach {
  static constexpr std::uint16_t kType = 0x0801;
  std::uint32_t version = kNamProtocolVersion;
  std::string blob;
  NamClientId client;
  bool map = false;            // wants the file, where the lease lets it
  bool fabric = false;         // wants a key for libfabric
  std::string fabric_address;  // of the caller's endpoint (fi_getname), for answers over the fabric
  template <class A>
  void Fields(A& a) {
    a(version, blob, client, map, fabric, fabric_address);
  }
};

struct NamAttached {
  static constexpr std::uint16_t kType = 0x0802;
  std::uint64_t attachment = 0;  // random; names it in later messages over the fabric
  std::uint32_t owner = 0;       // the client's lock owner number in this extent, from 1
  bool mapped = false;           // a file came with this frame
  Bytes file_bytes;              // header and data
  Bytes header_bytes;            // where the data begins
  std::string fabric_provider;   // empty: no fabric here, or none asked for
  std::string fabric_address;
  std::uint64_t fabric_key = 0;
  std::uint64_t fabric_base = 0;  // to be added to an offset in the data (FI_MR_VIRT_ADDR), else 0
  bool known = false;             // the client had its owner number before, and with it the locks it holds
  template <class A>
  void Fields(A& a) {
    a(attachment, owner, mapped, file_bytes, header_bytes, fabric_provider, fabric_address, fabric_key,
      fabric_base, known);
  }
};

// From namd over the Unix socket, with frame id 0: the lease of this attachment has ended, and what is mapped
// may not be used any more. Not answered.
struct NamEnded {
  static constexpr std::uint16_t kType = 0x0804;
  std::uint64_t attachment = 0;
  template <class A>
  void Fields(A& a) {
    a(attachment);
  }
};

// Answered by NamDone.
struct NamDetach {
  static constexpr std::uint16_t kType = 0x0803;
  std::uint64_t attachment = 0;
  template <class A>
  void Fields(A& a) {
    a(attachment);
  }
};

// Operations that namd does for a client which does not map, with the routines that mapping clients use
// (msa/nam/atomics.h, msa/nam/locks.h). Offsets count from the extent's data.
// Answered by NamAtomicDone. kOutOfRange; kPermissionDenied: needs kWrite (a no-op fetch needs kRead);
// kFailedPrecondition: lease revoked or unknown attachment: attach again; kDeadlineExceeded: the segment is
// locked by another.
struct NamAtomic {
  static constexpr std::uint16_t kType = 0x0811;
  std::uint64_t attachment = 0;
  std::uint32_t slot = 0;  // of the segment
  std::uint64_t offset = 0;
  std::uint8_t op = 0;      // msa::nam::AtomicOp
  std::uint8_t type = 0;    // msa::nam::ElementType
  bool fetch = false;       // answer with the elements as they were
  std::uint32_t count = 0;  // elements
  std::string operand;      // count elements; empty for a fetch of kNoOp
  std::string compare;      // one element, of kCompareSwap
  template <class A>
  void Fields(A& a) {
    a(attachment, slot, offset, op, type, fetch, count, operand, compare);
  }
};
struct NamAtomicDone {
  static constexpr std::uint16_t kType = 0x0812;
  std::string result;
  template <class A>
  void Fields(A& a) {
    a(result);
  }
};

// Takes or frees a lock of a segment, at once: NamLocked tells whether it was taken. The caller asks again.
struct NamLock {
  static constexpr std::uint16_t kType = 0x0813;
  std::uint64_t attachment = 0;
  std::uint32_t slot = 0;
  std::uint8_t mode = 0;  // msa::nam::LockMode; kNone frees it
  template <class A>
  void Fields(A& a) {
    a(attachment, slot, mode);
  }
};
struct NamLocked {
  static constexpr std::uint16_t kType = 0x0814;
  bool taken = false;
  template <class A>
  void Fields(A& a) {
    a(taken);
  }
};

}  // namespace msa::wire
