#pragma once
// The PMIx server of one job daemon: libpmix behind types of ours. Every upcall of libpmix arrives on
// libpmix's own thread, is copied, posted to the event loop and answered later through a Reply; nothing of
// libpmix shows here. PMIx Standard 4.1 (https://pmix.github.io/uploads/2021/10/pmix-standard-v4.1.pdf),
// chapters 16 and 17.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/pmix/types.h"

namespace msa::pmix {

// ---- what the host must know of a namespace before any of its ranks starts

struct NamespaceApp {
  std::uint32_t first_rank = 0;
  std::uint32_t size = 0;
  std::string wdir;
  std::string command;  // argv joined, for PMIX_APP_ARGV
};

struct NamespaceInfo {
  std::string nspace;
  std::string job_id;                    // PMIX_JOBID
  std::vector<std::string> nodes;        // names of the nodes that run ranks, in node-id order
  std::vector<std::uint32_t> rank_node;  // index into nodes, for each rank
  std::vector<NamespaceApp> apps;
  std::uint32_t universe_size = 0;  // slots of the job
  std::string parent_nspace;        // empty: not spawned
  std::uint32_t parent_rank = 0;
  std::string tmpdir;  // of the job on this node (PMIX_TMPDIR); the namespace's is made below it
};

// ---- upcalls; each holds its Reply, which must be called exactly once, on any thread. A Reply that is
// destroyed uncalled answers PMIX_ERROR. Replies may be kept for hours.

using StatusReply = std::function<void(PmixStatus)>;
using DataReply = std::function<void(PmixStatus, std::string data)>;
using ValuesReply = std::function<void(PmixStatus, std::vector<std::pair<Proc, KeyValue>>)>;
using SpawnReply = std::function<void(PmixStatus, std::string nspace)>;

struct ClientConnected {
  Proc proc;
};  // PMIx_Init reached us
struct ClientFinalized {
  Proc proc;
  StatusReply reply;
};                // the reply lets PMIx_Finalize return
struct Aborted {  // PMIx_Abort: by `proc`, of `targets` (empty: its whole namespace)
  Proc proc;
  std::int32_t exit_code = 0;
  std::string message;
  std::vector<Proc> targets;
  StatusReply reply;
};
// All local participants have called; `data` is the local contribution, the reply the concatenation of all
// nodes'.
struct Fence {
  std::vector<Proc> procs;
  std::string data;
  std::uint32_t timeout_s = 0;  // 0: none
  DataReply reply;
};
struct DirectModex {
  Proc proc;
  std::uint32_t timeout_s = 0;
  DataReply reply;
};  // the blob of a rank on another node

struct Publish {
  Proc proc;
  Range range = Range::kSession;
  Persistence persistence = Persistence::kApp;
  std::vector<KeyValue> data;
  StatusReply reply;
};
struct Lookup {
  Proc proc;
  std::vector<std::string> keys;
  Range range = Range::kSession;
  bool wait = false;            // until all keys are there, or the timeout
  std::uint32_t timeout_s = 0;  // 0: none
  ValuesReply reply;
};
struct Unpublish {
  Proc proc;
  std::vector<std::string> keys;
  Range range = Range::kSession;
  StatusReply reply;
};  // no keys: all of proc's

struct SpawnApp {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "K=V"
  std::string cwd;               // PMIX_WDIR or the app's cwd; empty: none given
  std::uint32_t maxprocs = 1;
  std::vector<std::string> hosts;    // PMIX_HOST / PMIX_ADD_HOST, split at commas, ":N" suffixes kept
  std::vector<std::string> unknown;  // keys that we do not act upon, for a warning
};
struct Spawn {
  Proc proc;
  std::vector<SpawnApp> apps;
  std::uint32_t timeout_s = 0;
  SpawnReply reply;
};

// Collective over `procs` (their namespaces); reply when all have called. Across daemons libpmix expects the
// host to do it.
struct Connect {
  std::vector<Proc> procs;
  std::uint32_t timeout_s = 0;
  StatusReply reply;
};
struct Disconnect {
  std::vector<Proc> procs;
  std::uint32_t timeout_s = 0;
  StatusReply reply;
};

using Upcall = std::variant<ClientConnected, ClientFinalized, Aborted, Fence, DirectModex, Publish, Lookup,
                            Unpublish, Spawn, Connect, Disconnect>;

// PMIx_Notify_event of a local client, whose range reaches beyond this node; libpmix has told the local
// clients.
struct ClientEvent {
  PmixStatus event = 0;
  Proc source;
  Range range = Range::kSession;
  std::vector<Proc> affected;
};
// PMIx_Log of a local client to stdout or stderr.
struct ClientLog {
  Proc proc;
  bool to_stderr = false;
  std::string text;
};

struct PmixHostOptions {
  std::string nspace;        // the server's own name, "msa-jobd.<pid>"
  std::string hostname;      // the logical node's name
  std::string directory;     // existing, ours alone: sockets and session directories go below it
  std::string topology_xml;  // hwloc XML file of the machine; empty: libpmix looks for itself (costs 14 ms)
  // On the loop's thread. Without them such calls of clients are answered PMIX_ERR_NOT_SUPPORTED.
  std::function<void(ClientEvent)> on_event;
  std::function<void(ClientLog)> on_log;
};

// One in a process's life (libpmix keeps its state in globals, and cannot be started again); any number of
// namespaces.
class PmixHost {
 public:
  // Upcalls come on `loop`'s thread through `on_upcall`. kInternal: PMIx_server_init failed, with its text;
  // kFailedPrecondition: this process has or had a host. Sets HWLOC_* and PMIX_MCA_gds in this process's
  // environment: call it before other threads read the environment.
  static Result<std::unique_ptr<PmixHost>> Start(const PmixHostOptions& options, EventLoop& loop,
                                                 std::function<void(Upcall)> on_upcall);
  // PMIx_server_finalize, on the loop's thread. Callbacks that are due are dropped, replies become silent.
  ~PmixHost();
  PmixHost(const PmixHost&) = delete;
  PmixHost& operator=(const PmixHost&) = delete;

  // All below: loop's thread. The callbacks come on it too, exactly once.
  // Registers a namespace at this node, with or without ranks here; `on_done` when libpmix has it.
  // kInvalidArgument to on_done: inconsistent info. kInternal: libpmix refused.
  void RegisterNamespace(const NamespaceInfo& info, const std::string& this_node, UserIdentity user,
                         std::function<void(Status)> on_done);
  // Forgets namespace and its clients.
  void DeregisterNamespace(const std::string& nspace, std::function<void()> on_done);
  // "K=V" that a local rank needs to find this server (PMIx_server_setup_fork); after RegisterNamespace.
  Result<std::vector<std::string>> ClientEnvironment(const Proc& proc);
  // The modex blob of a local rank, for another node's DirectModex (waits until the rank has committed).
  void LocalModex(const Proc& proc, std::function<void(PmixStatus, std::string)> on_data);
  // Tells local clients that registered for it (PMIx_Notify_event): `event` a PMIx event code, `affected`
  // whom it concerns.
  void NotifyEvent(PmixStatus event, const Proc& source, const std::vector<Proc>& affected);

  class Impl;

 private:
  explicit PmixHost(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Text of a status, "PMIX_ERR_NOT_FOUND".
std::string StatusText(PmixStatus status);

}  // namespace msa::pmix
