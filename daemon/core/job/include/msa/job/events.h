#pragma once
// What goes into the controller's state machine; what comes out stands in effects.h. `reply` tags are the
// shell's own; each event with one is answered by exactly one Reply effect.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "msa/base/companion_messages.h"
#include "msa/base/slurm_agent_messages.h"
#include "msa/base/slurm_messages.h"
#include "msa/job/effects.h"
#include "msa/job/records.h"
#include "msa/nam/nam_book.h"

namespace msa {

// A message of a job daemon, decoded.
using JobdMessage = std::variant<wire::JobStarted, wire::NamespaceReport, wire::GrantAsk, wire::GrantRelease,
                                 wire::GrantWithdraw, wire::JobExit, wire::MemberFailed, wire::NamePublish,
                                 wire::NameLookup, wire::LinkAsk, wire::LinkReady, wire::NamFromTask,
                                 wire::NamTaskGone, wire::NamAllotmentAsk, wire::CompanionReport>;
// kInvalidArgument: a type that no job daemon sends to the controller, or a malformed payload.
Result<JobdMessage> DecodeJobdMessage(std::uint16_t type, std::string_view payload);

struct NodeFacts {
  std::uint32_t cores = 0;
  std::uint32_t machine_cores = 0;
  Bytes memory;
  bool synthetic = false;
  std::uint32_t packages = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t gpus = 0;
  std::string cpu_model;
  Bytes nam;
};

// A message of a namd, decoded; NamdHello is event::NamdUp.
using NamdMessage = std::variant<wire::NamExtentDone, wire::NamExtentDamaged, wire::NamFromLocal,
                                 wire::NamLocalGone, wire::NamScanned>;
// kInvalidArgument: a type that no namd sends, or a malformed payload.
Result<NamdMessage> DecodeNamdMessage(std::uint16_t type, std::string_view payload);

// A message of msa-slurm-agent, decoded.
using SlurmAgentMessage = std::variant<wire::SlurmAgentState, wire::SlurmJobsChanged, wire::SlurmJobAnswer,
                                       wire::SlurmOrphansCancelled, wire::SlurmDone>;
// kInvalidArgument: a type that it does not send, or a malformed payload.
Result<SlurmAgentMessage> DecodeSlurmAgentMessage(std::uint16_t type, std::string_view payload);

namespace event {

// Queues a job; a SchedulePass is asked for. Reply: the job's id. A token that this user has used: the id of
// then.
struct Submit {
  std::string token;
  UserIdentity user;
  std::string user_name;
  JobSpec spec;
  bool interactive = false;
  std::string secret;  // 32 random bytes in hex
  ReplyTag reply = 0;
};
// Starts what can start. Ask for it after NeedSchedulePass; several wishes may be served by one.
struct SchedulePass {};
// A Run stream of the job opened or broke. The job of a lost owner is cancelled.
struct OwnerAttached {
  JobId job;
};
struct OwnerLost {
  JobId job;
};
struct NodeRegistered {
  std::string node;
  SessionId session = 0;
  NodeFacts facts;
  std::string daemon_version;
  std::string attach_address;
  // %J stands for "<job>.<incarnation>", %U for the uid, %PFIRST-LAST for a port of that range
  std::string jobd_address;
  std::vector<JobdInfo> jobds;
  std::uint32_t uid = 0;  // of the node daemon: 0 can start tasks for every user, another for itself alone
  std::string user_name;  // its name
};
struct NodeHeartbeat {
  std::string node;
  SessionId session = 0;
  double load = 0;
  std::uint32_t jobd_warm = 0;
  Bytes memory_free;
  Instant clock;  // the node's when it sent this; epoch: not told
};
// The session's stream broke. The node is given node_timeout to come back.
struct NodeLost {
  std::string node;
  SessionId session = 0;
};
// Time passes: at the latest WakeAt time given out, and it does no harm at any other.
struct Tick {};
struct FromJobd {
  std::string node;
  JobId job;
  Incarnation incarnation;
  JobdMessage message;
  RegionUuid random;  // fresh, of NamFromTask
  // Of NamFromTask: the supplementary groups of the job's user, NamCaller::groups.
  std::vector<std::uint32_t> groups;
};
struct JobdGone {
  std::string node;
  JobId job;
  Incarnation incarnation;
  std::string reason;
  bool clean = false;
};
// Errors: kNotFound, kPermissionDenied (neither root, operator nor owner), kFailedPrecondition (it has
// ended; `done` of a job that is no allocation).
struct Cancel {
  UserIdentity caller;
  JobId job;
  std::string reason;
  bool now = false;
  // The owner of an allocation has no more use for it: COMPLETED, or FAILED with `exit_code` (0 to 255).
  bool done = false;
  std::int32_t exit_code = 0;
  ReplyTag reply = 0;
};
// Errors as Cancel; kFailedPrecondition: not running; kInvalidArgument: no such signal.
struct SignalJob {
  UserIdentity caller;
  JobId job;
  std::int32_t signal = 0;
  ReplyTag reply = 0;
};
// Errors: kNotFound, kPermissionDenied as Cancel; kFailedPrecondition: released already, its job is ending,
// or namespaces run on it and not `force`. The reply comes at once: with `force` the grant is released when
// they have ended.
struct ReleaseGrant {
  UserIdentity caller;
  GrantId grant;
  bool force = false;
  ReplyTag reply = 0;
};
// Errors: kNotFound, kPermissionDenied (not the operator), kInvalidArgument (no or over-long reason).
struct Drain {
  UserIdentity caller;
  std::vector<std::string> nodes;
  std::string reason;
  ReplyTag reply = 0;
};
struct Resume {
  UserIdentity caller;
  std::vector<std::string> nodes;
  ReplyTag reply = 0;
};

// ---- network attached memory (msa/nam/nam_book.h)
// Of an rpc; answered by effect::NamReply.
struct NamCall {
  NamCaller caller;
  NamRequest request;
  RegionUuid random;  // fresh
  ReplyTag reply = 0;
};
// The rpc that held leases as NamHolder::call has ended.
struct NamCallEnded {
  std::uint64_t call = 0;
};
// namd of `node` said hello through the node daemon's session.
struct NamdUp {
  std::string node;
  SessionId session = 0;
  wire::NamdHello hello;
};
// It broke its connection to the node daemon. The loss of the node's session means the same.
struct NamdLost {
  std::string node;
  SessionId session = 0;
  std::string reason;
};
struct FromNamd {
  std::string node;
  SessionId session = 0;
  NamdMessage message;
  RegionUuid random;      // fresh, of NamFromLocal
  std::string user_name;  // of its uid; empty: not known
};

// ---- jobs that Slurm schedules (msa/base/slurm_messages.h)
// A slurmstepd on `node` has a step; also, of steps that run, after each registration of the node.
struct SlurmStepBegin {
  std::string node;
  wire::SlurmStepBegin begin;
  std::string secret;  // fresh, 32 random bytes in hex: of the job, if this is its first step
};
// It is gone.
struct SlurmStepEnd {
  std::string node;
  wire::SlurmStepEnd end;
};
// Slurm's epilog of a component's job ran on `node`.
struct SlurmJobEnd {
  std::string node;
  JobId component_job;
};
// `id` is that of the ToSlurmAgent that it answers; 0: none.
struct FromSlurmAgent {
  std::uint64_t id = 0;
  SlurmAgentMessage message;
};
// The process has ended; what it was asked is not answered.
struct SlurmAgentLost {};

}  // namespace event

using Event =
    std::variant<event::Submit, event::SchedulePass, event::OwnerAttached, event::OwnerLost,
                 event::NodeRegistered, event::NodeHeartbeat, event::NodeLost, event::Tick, event::FromJobd,
                 event::JobdGone, event::Cancel, event::SignalJob, event::ReleaseGrant, event::Drain,
                 event::Resume, event::NamCall, event::NamCallEnded, event::NamdUp, event::NamdLost,
                 event::FromNamd, event::SlurmStepBegin, event::SlurmStepEnd, event::SlurmJobEnd,
                 event::FromSlurmAgent, event::SlurmAgentLost>;

}  // namespace msa
