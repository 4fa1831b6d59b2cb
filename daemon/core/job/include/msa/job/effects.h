#pragma once
// What comes out of the controller's state machine. See msa/job/controller.h for their order.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "msa/base/slurm_messages.h"
#include "msa/job/records.h"
#include "msa/nam/nam_book.h"

namespace msa {

using ReplyTag = std::uint64_t;
// Numbers the sessions of all nodes; a newer one replaces an older one of the same node.
using SessionId = std::uint64_t;

struct JobdInfo {
  JobId job;
  Incarnation incarnation;
  std::uint32_t member_index = 0;
  bool is_head = false;
  bool ended = false;
};

namespace effect {

// To be committed first, all of one On() in one transaction, in the order given.
struct PutJob {
  JobRecord record;
};
struct DeleteJob {
  JobId job;
};
struct PutNode {
  NodeRecord record;
};
struct PutGrant {
  GrantRecord record;
};
struct DeleteGrant {
  GrantId grant;
};

// To be sent, in the order given, after the commit. A node without a session drops them: what matters is
// repeated when it registers.
struct SendStartJob {
  std::string node;
  JobId job;
  Incarnation incarnation;
  UserIdentity user;
  std::shared_ptr<const wire::LaunchJob> launch;  // shared by the nodes of the job; send it with `self_index`
  std::uint32_t self_index = 0;
};
struct SendToJobd {
  std::string node;
  JobId job;
  Incarnation incarnation;
  std::uint16_t type = 0;  // 0x02xx
  std::string payload;
};
struct SendQuitJob {
  std::string node;
  JobId job;
  Incarnation incarnation;
  std::string reason;
};
// Answer to NodeRegistered.
struct Registered {
  std::string node;
  SessionId session = 0;
  std::vector<JobdInfo> keep;
};
// The session of a node that is down is of no use: close it.
struct CloseSession {
  std::string node;
  SessionId session = 0;
  std::string reason;
};

// Watchers of the job are told its present state (Controller::GetJob).
struct JobChanged {
  JobId job;
};
struct NeedSchedulePass {};
struct Reply {
  ReplyTag tag = 0;
  Status status;
  JobId job;  // of Submit, Cancel
};
// A Tick is needed then. Earlier wishes still stand.
struct WakeAt {
  Instant at;
};
// For the log, one line.
struct Log {
  std::string text;
};

// nam_effect::PutRegion, DeleteRegion, PutLease, DeleteLease: to be committed with the others.

// To the namd of a node, after the commit. NamdQuit ends its session.
struct SendToNamd {
  std::string node;
  std::uint16_t type = 0;  // 0x09xx
  std::string payload;
};
// Answer to NamCall. Leases are signed.
struct NamReply {
  ReplyTag tag = 0;
  Status status;
  NamReplyBody body;
};

// To the node daemon, after the commit: what slurmstepd is told.
struct SlurmVerdict {
  std::string node;
  wire::SlurmStepVerdict verdict;
};
// To msa-slurm-agent, if it runs, after the commit. It answers with the same `id`.
struct ToSlurmAgent {
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::string payload;
};

}  // namespace effect

using Effect =
    std::variant<effect::PutJob, effect::DeleteJob, effect::PutNode, effect::PutGrant, effect::DeleteGrant,
                 effect::SendStartJob, effect::SendToJobd, effect::SendQuitJob, effect::Registered,
                 effect::CloseSession, effect::JobChanged, effect::NeedSchedulePass, effect::Reply,
                 effect::WakeAt, effect::Log, nam_effect::PutRegion, nam_effect::DeleteRegion,
                 nam_effect::PutLease, nam_effect::DeleteLease, effect::SendToNamd, effect::NamReply,
                 effect::SlurmVerdict, effect::ToSlurmAgent>;

}  // namespace msa
