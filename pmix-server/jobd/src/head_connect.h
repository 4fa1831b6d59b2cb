#pragma once
// What the head of a job knows of other jobs of its user: links to their heads, their namespaces, shared
// names, ports and operations that reach beyond this job. See head_connect.cc, head_names.cc and
// head_foreign.cc.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/messages.h"
#include "msa/base/wire.h"
#include "msa/pmix/data_store.h"

#include "foreign_link.h"
#include "peer_messages.h"

namespace msa::jobd {

// Who waits for an answer of the publish/lookup store.
struct StoreCaller {
  std::uint32_t from = 0;  // member
  std::uint64_t request = 0;
  JobId foreign;     // 0: a member of this job; else its head asks, and `from` means nothing
  std::string port;  // a lookup by which a client learns that the port's server has accepted
};

struct ForeignJob {
  Incarnation incarnation;
  std::uint64_t send_on = 0;  // the first of `links` that this side knew: frames stay in order
  std::set<std::uint64_t> links;
  std::set<std::string> told;                                  // namespaces of this job that it knows
  std::set<std::string> known;                                 // its namespaces that are hosted here
  std::map<std::string, NamespaceRegister> regs;               // of `known`, for members that join later
  std::map<std::string, std::set<std::uint32_t>> registering;  // members that do not host it yet
  std::deque<wire::Frame> held;                                // until they do
};

// A collective operation over processes of several jobs.
struct CrossOperation {
  std::set<std::uint32_t> expected;                // own members with processes of it; empty: none has called
  std::set<JobId> jobs;                            // the others
  std::map<std::uint32_t, std::uint64_t> waiting;  // own members that have called: their requests
  std::map<std::uint32_t, std::string> blobs;
  std::map<JobId, std::string> parts;
  bool sent = false;
  std::optional<std::pair<pmix::PmixStatus, std::string>> failed;
  TimerId timer{};
};

// Clients of a port take turns: Open MPI's two keys, "PORT:connect" and "PORT:accept", cannot tell them
// apart.
struct PortTurn {
  struct Waiting {
    StoreCaller caller;
    StorePublish message;
  };
  pmix::Proc holder;
  StoreCaller caller;
  bool accepted = false;  // it has read the server's answer
  bool gave_up = false;   // it waits for none any more
  std::deque<Waiting> queue;
};

struct NameOperation {
  wire::NamePublish message;
  std::optional<StorePublish> publish;  // to be done here once the controller agrees
  std::optional<StoreCaller> caller;
};

struct AskedNames {
  wire::NameLookup message;
  pmix::DataStore::LookupRequest lookup;  // not with wait: the store has it then
};

struct AskedLink {
  std::uint32_t port_owner = 0;
  std::string secret;
  // `job` 0: refused, for that reason.
  std::vector<std::function<void(JobId job, const std::string& reason)>> waiting;
};

struct ForeignState {
  std::map<JobId, ForeignJob> jobs;
  std::uint64_t next_link = 1;
  std::uint64_t next_request = 1;            // to the controller, and between heads
  std::map<std::uint32_t, JobId> port_jobs;  // by PortOwnerOf a namespace
  std::set<std::uint32_t> own_ports;         // of this job's namespaces, past ones included
  std::map<std::uint64_t, AskedLink> asked_links;
  struct Offered {
    std::uint64_t link = 0;
    std::string address;
  };
  std::map<std::tuple<JobId, Incarnation, std::uint64_t>, Offered> offered;
  struct Forwarded {
    JobId job;
    StoreCaller caller;
  };
  std::map<std::uint64_t, Forwarded> forwarded;  // publishes and lookups at another head
  struct Modex {
    JobId job;
    std::uint32_t member = 0;
    std::uint64_t request = 0;  // of whoever asked
  };
  std::map<std::uint64_t, Modex> modex_out;                // asked of other heads
  std::map<std::uint64_t, Modex> modex_in;                 // asked by them
  std::map<std::string, std::set<std::string>> connected;  // own namespace -> others'
  std::map<pmix::CollectiveKey, CrossOperation> cross;
  std::map<std::string, PortTurn> turns;
  bool in_turns = false;
  std::map<std::string, wire::SharedName> shared;  // published for other jobs
  std::deque<NameOperation> name_operations;       // the first is with the controller
  std::map<std::uint64_t, AskedNames> asked_names;
  std::size_t entries_seen = 0;  // of the store, when shared names were compared with it last
};

}  // namespace msa::jobd
