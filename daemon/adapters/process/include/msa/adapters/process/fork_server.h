#pragma once
// A process that has done what is slow, and then forks itself on order: a new process like it costs a fork
// and its page faults instead of exec, dynamic linking and all preparation. Orders and reports are packets of
// a SOCK_SEQPACKET pair, which the process that gives the orders makes.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// What one child is told.
struct ForkOrder {
  static constexpr std::uint16_t kType = 0;
  std::uint64_t number = 0;
  std::vector<std::string> words;
  template <class A>
  void Fields(A& a) {
    a(number, words);
  }
};

struct ForkReport {
  static constexpr std::uint16_t kType = 0;
  std::uint64_t number = 0;
  std::int32_t pid = 0;    // 0: the fork failed
  std::int32_t error = 0;  // errno of that
  template <class A>
  void Fields(A& a) {
    a(number, pid, error);
  }
};

// The server's side. Returns in each child, with its order; in the server itself nullopt, once the other end
// is closed. A child belongs to the nearest subreaper above the server, which gave the orders and so waits
// for it as for one that it started itself; it leads a session of its own, and its stdin is /dev/null. It is
// reported before it is that one's child. The caller has one thread. kInternal: the socket failed;
// kInvalidArgument: a broken order.
Result<std::optional<ForkOrder>> ServeForks(UniqueFd socket);

// Both ends of a pair for orders and reports: first ours, which does not block, then the server's. Close on
// exec. kInternal, kResourceExhausted: no descriptors.
struct ForkSockets {
  UniqueFd ours;
  UniqueFd server;
};
Result<ForkSockets> MakeForkSockets();

// The side that gives orders; neither blocks. kUnavailable: the server is gone, or takes no more for now.
Status SendForkOrder(int socket, const ForkOrder& order);
// The next report; nullopt: none for now. kUnavailable: the server is gone and all that it said was read.
Result<std::optional<ForkReport>> ReceiveForkReport(int socket);

}  // namespace msa
