#pragma once
// PMI-1 for the tasks of one namespace on one node: bytes of tasks in, effects out. Pure: no I/O, no clock.
// One thread. The nodes of the namespace exchange what was put when all tasks are in a barrier.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "msa/base/status.h"
#include "msa/pmi1/line.h"

namespace msa::pmi1 {

struct ServerOptions {
  std::string kvsname;                     // the namespace; at most kMaxKvsName bytes, no space
  std::vector<std::uint32_t> rank_node;    // node of each rank of the namespace
  std::vector<std::uint32_t> app_sizes;    // tasks of each command, in order of ranks
  std::vector<std::uint32_t> local_ranks;  // those of this node
  std::uint32_t universe_size = 1;         // slots of the job
  // Keys and values that this node keeps. 64 MiB: 100,000 ranks put some 500 bytes each.
  std::size_t max_kvs_bytes = std::size_t{64} << 20;
};

// What the server wants done, in this order.
struct Reply {
  std::uint32_t rank = 0;
  std::string text;  // one line, with its newline
};
// The task cannot be served any more: close its socket after the replies. It will fail with an error of its
// MPI.
struct Close {
  std::uint32_t rank = 0;
  std::string reason;  // for people
};
struct Connected {
  std::uint32_t rank = 0;
};
struct Finalized {
  std::uint32_t rank = 0;
};
struct Aborted {
  std::uint32_t rank = 0;
  std::int32_t exit_code = 0;
};
// Every task of this node is in the barrier. Answer with OnBarrier, once all nodes are.
struct EnterBarrier {
  std::string data;  // what was put here; pass on all nodes' one after another
};
enum class NameVerb : std::uint8_t { kPublish, kLookup, kUnpublish };
// Of MPI_Publish_name and its sisters. Answer with OnName.
struct NameRequest {
  std::uint32_t rank = 0;
  NameVerb verb = NameVerb::kLookup;
  std::string service;
  std::string port;  // kPublish
};
struct SpawnRefused {
  std::uint32_t rank = 0;
  std::string text;  // for the user: why
};
using Effect =
    std::variant<Reply, Close, Connected, Finalized, Aborted, EnterBarrier, NameRequest, SpawnRefused>;
using Effects = std::vector<Effect>;

class Server {
 public:
  explicit Server(ServerOptions options);

  // Bytes that a task of this node sent, cut anywhere. Ignored from ranks that are not here or were closed.
  Effects OnData(std::uint32_t rank, std::string_view bytes);

  // The end of the barrier: the EnterBarrier::data of all nodes, in an order that is the same on all of them.
  // Or why it failed: the tasks in it are closed.
  Effects OnBarrier(const Result<std::string>& data);

  // The answer to a NameRequest: the port of a lookup (else empty), or why not.
  Effects OnName(std::uint32_t rank, const Result<std::string>& port);

  // The task has ended, or its socket: what it may have asked for is not answered any more.
  void OnGone(std::uint32_t rank);

  // kInternal naming the first violated invariant. For tests.
  Status CheckInvariants() const;

 private:
  enum class Phase : std::uint8_t { kNew, kReady, kFinalized, kClosed };
  struct SpawnBlock {
    std::uint32_t total;
    std::uint32_t so_far;
    std::string program;  // of the first command
  };
  struct Client {
    Phase phase = Phase::kNew;
    std::string partial;  // of a line
    bool in_barrier = false;
    std::optional<NameVerb> asked;
    std::optional<SpawnBlock> spawn;
    bool in_block = false;  // between mcmd=spawn and endcmd
  };

  void OnLine(std::uint32_t rank, Client& client, std::string_view text, Effects& out);
  void OnCommand(std::uint32_t rank, Client& client, const Line& line, Effects& out);
  void OnSpawnLine(std::uint32_t rank, Client& client, std::string_view text, Effects& out);
  void OnInit(std::uint32_t rank, Client& client, const Line& line, Effects& out);
  void OnBarrierIn(std::uint32_t rank, Client& client, Effects& out);
  void OnNameCommand(std::uint32_t rank, Client& client, NameVerb verb, const Line& line, Effects& out);
  std::string Put(const Line& line);
  std::string Get(const Line& line) const;
  std::uint32_t AppOf(std::uint32_t rank) const;
  std::string Merge(std::string_view data);
  void Shut(std::uint32_t rank, Client& client, std::string reason, Effects& out);

  ServerOptions options_;
  std::string mapping_;  // empty: longer than a value may be
  std::map<std::uint32_t, Client> clients_;
  std::map<std::string, std::string, std::less<>> kvs_;      // of all nodes, as of the last barrier
  std::map<std::string, std::string, std::less<>> pending_;  // put here since
  std::size_t bytes_ = 0;                                    // of both
  bool exchanging_ = false;                                  // between EnterBarrier and OnBarrier
};

}  // namespace msa::pmi1
