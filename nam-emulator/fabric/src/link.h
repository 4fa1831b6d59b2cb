#pragma once
// What FabricClient's engine knows of one server, of the transfers to it and of the requests that wait for
// it. Data only: all of it belongs to who holds the engine's gate, but for Link::broken.

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"
#include "msa/nam/fabric_client.h"

#include "fragments.h"
#include "handles.h"

namespace msa::nam {

struct Link;

// A transfer. Its owner keeps it where it is until it is finished or the engine has let go of it.
struct Work {
  FabricPeer::Key key;
  bool write = false;
  bool asynchronous = false;  // its owner does something else meanwhile
  std::span<const FabricPiece> pieces;
  std::size_t piece = 0;        // the next to be posted
  std::uint64_t posted = 0;     // bytes of it that were
  std::uint32_t in_flight = 0;  // operations
  std::uint64_t begin = 0;      // all pieces lie in [begin, end)
  std::uint64_t end = 0;
  bool failed = false;  // the transport lost it: the server is asked what was wrong
  bool finished = false;
  Status status;
};

// A request that waits for its reply.
struct PendingCall {
  Link* link = nullptr;
  std::uint64_t id = 0;
  bool finished = false;
  Status status;
  wire::Frame reply;
};

// A question of the engine's own; see CheckQuestion. Sent again until it is answered.
struct Question {
  std::uint64_t id = 0;
  CheckQuestion question;
  Work* work = nullptr;  // null: is somebody there?
  bool in_flight = false;
  SteadyTime sent{};  // never, if 0
};

// Operations in libfabric's hands.
struct Operation {
  fi_context2 context{};  // first: what libfabric gives back
  enum class Kind { kReceive, kSend, kTransfer } kind = Kind::kReceive;
  Link* link = nullptr;
  Work* work = nullptr;        // kTransfer; null: nobody waits for it any more
  std::uint64_t question = 0;  // kSend: of this one, 0: of a call
  std::string bytes;           // kSend
  Operation* next_spare = nullptr;
};

// Whether anything listens at a TCP address, without libfabric: that tries for ever to connect, silently.
class ListenProbe {
 public:
  enum class Answer { kPending, kThere, kRefused };
  // Asks again when the last answer is 200 ms old.
  Answer Look(const std::string& address, SteadyTime now);
  void Reset() { *this = ListenProbe(); }

 private:
  void Start(const std::string& address);
  SteadyTime begun_{};  // not yet, if 0
  Answer answer_ = Answer::kPending;
  UniqueFd socket_;
};

struct Link {
  // kGreeting: nobody has answered yet. kSuspect: the connection was lost, and it is not yet known why.
  enum class State { kGreeting, kUp, kSuspect, kBroken };

  struct Outgoing {
    std::uint64_t id = 0;
    std::string bytes;
  };

  std::string address;
  fi_addr_t at = FI_ADDR_UNSPEC;
  State state = State::kGreeting;
  std::atomic<bool> broken{false};
  bool abandoned = false;       // by its FabricPeer
  Status why;                   // kBroken
  bool explained = false;       // kSuspect: the server has refused a transfer
  std::uint64_t instance = 0;   // of the server
  std::uint32_t in_flight = 0;  // operations
  SteadyTime since{};           // of the state
  SteadyTime blocked{};         // since when libfabric takes nothing, if not 0
  SteadyTime heard{};           // of the server, or since when a call waits
  ListenProbe probe;
  std::deque<Work*> unposted;  // in their order
  std::vector<Work*> lost;     // failed, with nothing in flight
  std::deque<Outgoing> outbox;
  std::vector<Question> questions;
  std::uint32_t calls = 0;  // that wait
};

}  // namespace msa::nam
