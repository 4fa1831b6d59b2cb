#pragma once
// How a task's requests of 0x07xx travel through its job daemon (msa/base/nam_messages.h).

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/nam_ids.h"

namespace msa::wire {

// --------------------------------------------------------- task <-> its job daemon, over MSA_JOB_SOCKET
// (0x06xx) After TaskHello a task sends frames of 0x07xx requests as they are and gets the replies as they
// are.

// Before the first of them: which NAM client the process is. Its leases and locks are freed when this
// connection closes. Not answered. Outside jobs likewise to the namd to which 0x07xx goes.
struct NamClientHello {
  static constexpr std::uint16_t kType = 0x0610;
  NamClientId client;
  std::uint32_t pid = 0;
  template <class A>
  void Fields(A& a) {
    a(client, pid);
  }
};

// ------------------------------------------- job daemon <-> controller (0x03xx, 0x02xx), any member, not
// repeated

struct NamFromTask {
  static constexpr std::uint16_t kType = 0x0310;
  std::uint64_t connection = 0;  // its own number at this job daemon
  NamClientId client;
  std::string who;  // "rank 3 of msa.7.1.0 on cn0", for people
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::string payload;
  template <class A>
  void Fields(A& a) {
    a(connection, client, who, type, id, payload);
  }
};
struct NamTaskGone {
  static constexpr std::uint16_t kType = 0x0311;
  std::uint64_t connection = 0;
  NamClientId client;
  template <class A>
  void Fields(A& a) {
    a(connection, client);
  }
};
struct NamToTask {
  static constexpr std::uint16_t kType = 0x020c;
  std::uint64_t connection = 0;
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::string payload;
  template <class A>
  void Fields(A& a) {
    a(connection, type, id, payload);
  }
};

// From the head: a spawn's `msa_nam` asks for a larger allotment. Answered by NamAllotment; not repeated.
struct NamAllotmentAsk {
  static constexpr std::uint16_t kType = 0x0312;
  std::uint64_t request = 0;
  Bytes more;
  template <class A>
  void Fields(A& a) {
    a(request, more);
  }
};
struct NamAllotment {
  static constexpr std::uint16_t kType = 0x020d;
  std::uint64_t request = 0;
  Bytes allotment;     // of the job, now
  std::string reason;  // of a refusal: what is free, what was asked
  template <class A>
  void Fields(A& a) {
    a(request, allotment, reason);
  }
};

}  // namespace msa::wire
