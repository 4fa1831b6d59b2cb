#pragma once
// The messages between the controller and heads of jobs that connect (MPI_Comm_connect, MPI_Publish_name). A
// part of messages.h, which includes it.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"

namespace msa::wire {

// ------------------------------------------------------------------------------------ controller -> head

// A name of the directory that the jobs of one user share (MPI_Publish_name). The value is libpmix's, packed.
struct SharedName {
  std::string key;
  std::string value;
  std::string nspace;  // its publisher
  std::uint32_t rank = 0;
  template <class A>
  void Fields(A& a) {
    a(key, value, nspace, rank);
  }
};

enum class NameStatus : std::uint8_t {
  kOk = 0,        // published, withdrawn, or all keys found
  kTaken = 1,     // another job of the user has published it
  kPartial = 2,   // some of the keys were found
  kNotFound = 3,  // none was
  kLimit = 4,     // too many, or too long
};

// Answer to NamePublish and NameLookup with the same `request`.
struct NameAnswer {
  static constexpr std::uint16_t kType = 0x0207;
  std::uint64_t request = 0;
  NameStatus status = NameStatus::kOk;
  std::string reason;
  std::vector<SharedName> names;  // found
  template <class A>
  void Fields(A& a) {
    a(request, status, reason, names);
  }
};

// To a head: another job of its user wants to link. It listens for that job, with the secret, for 30 s and
// answers LinkReady. Idempotent by (asker, incarnation, request).
struct LinkOffer {
  static constexpr std::uint16_t kType = 0x0208;
  JobId asker;
  Incarnation incarnation;
  std::uint64_t request = 0;
  std::string secret;  // 32 random bytes, hex, of this link alone
  template <class A>
  void Fields(A& a) {
    a(asker, incarnation, request, secret);
  }
};

// Answer to LinkAsk.
struct LinkAnswer {
  static constexpr std::uint16_t kType = 0x0209;
  std::uint64_t request = 0;
  JobId job;  // 0: refused
  Incarnation incarnation;
  std::string address;  // where the head of `job` listens for this link
  std::string reason;   // of a refusal
  template <class A>
  void Fields(A& a) {
    a(request, job, incarnation, address, reason);
  }
};

// To a head that is linked with `job`, which has ended.
struct LinkEnd {
  static constexpr std::uint16_t kType = 0x020a;
  JobId job;
  Incarnation incarnation;
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(job, incarnation, reason);
  }
};

// ------------------------------------------------------------------------------------ head -> controller

enum class NameChange : std::uint8_t {
  kPublish = 0,   // all or nothing
  kWithdraw = 1,  // only keys count
  kAll = 2,       // these are all that the job has published, and `links` its links; not answered
};

// From the head: a process of the job published names for the user's other jobs, or withdrew them. kAll comes
// when the controller may have forgotten. Idempotent.
struct NamePublish {
  static constexpr std::uint16_t kType = 0x0308;
  std::uint64_t request = 0;  // unique in the job, NameLookup's and LinkAsk's included
  NameChange change = NameChange::kPublish;
  std::vector<SharedName> names;
  std::vector<JobId> links;
  template <class A>
  void Fields(A& a) {
    a(request, change, names, links);
  }
};

// From the head: keys that the job itself does not have. Idempotent by (job, incarnation, request). A
// controller that has just started does not answer before the user's other jobs have said what they have
// published: ask again.
struct NameLookup {
  static constexpr std::uint16_t kType = 0x0309;
  std::uint64_t request = 0;
  std::vector<std::string> keys;
  bool wait = false;      // until all are there
  bool withdraw = false;  // nobody waits for the answer any more
  template <class A>
  void Fields(A& a) {
    a(request, keys, wait, withdraw);
  }
};

// From the head: a process wants to reach the port of another job. Idempotent by (job, incarnation, request);
// asked again until it is answered.
struct LinkAsk {
  static constexpr std::uint16_t kType = 0x030a;
  std::uint64_t request = 0;
  std::uint32_t port_owner = 0;  // the namespace that opened it (msa/job/port_name.h)
  std::string secret;            // for the link
  template <class A>
  void Fields(A& a) {
    a(request, port_owner, secret);
  }
};

// Answer to LinkOffer: the head listens, or why it does not.
struct LinkReady {
  static constexpr std::uint16_t kType = 0x030b;
  JobId asker;
  Incarnation incarnation;
  std::uint64_t request = 0;
  std::string address;  // empty: `reason`
  std::string reason;
  template <class A>
  void Fields(A& a) {
    a(asker, incarnation, request, address, reason);
  }
};

}  // namespace msa::wire
