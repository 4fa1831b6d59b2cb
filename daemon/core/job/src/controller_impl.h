#pragma once
// The state behind Controller and the functions that change it, by concern: controller_jobs.cc (queue, start,
// end), controller_launch.cc, controller_dependencies.cc, controller_nodes.cc, controller_grants.cc and
// controller_grant_views.cc, controller_names.cc, controller_nam.cc, controller_restore.cc,
// controller_views.cc.

#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "msa/base/wire.h"
#include "msa/job/controller.h"

#include "name_directory.h"

namespace msa {

class Controller::Impl {
 public:
  // A job and what need not survive the process.
  struct Job {
    JobRecord record;
    std::optional<Instant> owner_deadline;     // its msactl must be back by then
    bool owner_gone = false;                   // and is not expected any more
    std::optional<Instant> kill_deadline;      // kEnding: ended from here if no exit record came
    std::map<std::uint32_t, Instant> missing;  // members whose job daemon was not reported: judged then
    std::string wait_reason;
    Instant expected_start;
    std::uint32_t planned_nodes = 0;
    bool names_unknown = false;  // taken up from the store, and its head has not said yet what it publishes
  };

  struct Node {
    const NodeSpec* spec = nullptr;
    std::size_t index = 0;
    NodeState state = NodeState::kUnknown;
    SessionId session = 0;  // 0: none
    bool namd = false;      // has said hello in this session
    Instant last_sign;      // registration, heartbeat, loss of the session, or the controller's own start
    std::string down_reason;
    bool drained = false;
    std::string drain_reason;
    bool registered = false;  // `facts` were reported
    // Which counts the topology leaves to the node daemon; known from the first registration on.
    struct Open {
      bool cores = false;
      bool gpus = false;
      bool memory = false;
    };
    std::optional<Open> open;
    NodeFacts facts;
    std::string daemon_version;
    std::string attach_address;
    std::string jobd_address;
    Instant last_heartbeat;
    Instant up_since;
    double load = 0;
    std::uint32_t jobd_warm = 0;
    std::uint32_t uid = 0;  // of its node daemon
    std::string user_name;
    std::deque<Millis> clock_offsets;  // of its last heartbeats
    Millis clock_offset{0};
    bool clock_off = false;
  };

  struct WaitingAsk {
    JobId job;
    wire::GrantAsk ask;
    Instant deadline;
    std::string reason;  // of the last refusal
    Instant asked_at;
  };

  // A link that was asked for and not answered.
  struct LinkTicket {
    JobId owner;  // of the port: it alone may answer; 0: not found yet
    Instant since;
  };

  Impl(SystemTopology topology, ControllerOptions options);

  // -- events
  void Handle(event::Submit& e);
  void Handle(event::SchedulePass& e);
  void Handle(event::OwnerAttached& e);
  void Handle(event::OwnerLost& e);
  void Handle(event::NodeRegistered& e);
  void Handle(event::NodeHeartbeat& e);
  void Handle(event::NodeLost& e);
  void Handle(event::Tick& e);
  void Handle(event::FromJobd& e);
  void Handle(event::JobdGone& e);
  void Handle(event::Cancel& e);
  void Handle(event::SignalJob& e);
  void Handle(event::ReleaseGrant& e);
  void Handle(event::Drain& e);
  void Handle(event::Resume& e);
  void Handle(event::NamCall& e);
  void Handle(event::NamCallEnded& e);
  void Handle(event::NamdUp& e);
  void Handle(event::NamdLost& e);
  void Handle(event::FromNamd& e);

  // -- messages of job daemons; `node` is where they came from
  void OnMessage(Job& job, const std::string& node, wire::JobStarted& m);
  void OnMessage(Job& job, const std::string& node, wire::NamespaceReport& m);
  void OnMessage(Job& job, const std::string& node, wire::GrantAsk& m);
  void OnMessage(Job& job, const std::string& node, wire::GrantRelease& m);
  void OnMessage(Job& job, const std::string& node, wire::GrantWithdraw& m);
  void OnMessage(Job& job, const std::string& node, wire::JobExit& m);
  void OnMessage(Job& job, const std::string& node, wire::MemberFailed& m);
  void OnMessage(Job& job, const std::string& node, wire::NamePublish& m);
  void OnMessage(Job& job, const std::string& node, wire::NameLookup& m);
  void OnMessage(Job& job, const std::string& node, wire::LinkAsk& m);
  void OnMessage(Job& job, const std::string& node, wire::LinkReady& m);
  void OnMessage(Job& job, const std::string& node, wire::NamFromTask& m);
  void OnMessage(Job& job, const std::string& node, wire::NamTaskGone& m);
  void OnMessage(Job& job, const std::string& node, wire::NamAllotmentAsk& m);

  // -- dependencies and begin times
  // kNotFound: a job that was never submitted.
  Status CheckDependencies(const JobSpec& spec) const;
  // Enters a job that has not ended into the tables that follow; a waiting one is held back until it is
  // settled.
  void Enlist(const Job& job);
  void Delist(const Job& job);
  // Judges a dependency as far as it is open. True: it is not open any more.
  bool Judge(const Job& job, Dependency& dependency);
  // Who waits for `job`, which has started or ended, is settled next. What has ended is judged at once: it
  // may be pruned.
  void TellDependents(const Job& job);
  // A waiting job is held back or not, as its dependencies and its begin say.
  void Settle(Job& job);
  void SettleAll();
  // What a job that is held back waits for.
  std::string HoldReason(const Job& job) const;
  std::string WhyNever(const Dependency& dependency) const;
  Status CheckHeld() const;  // of CheckInvariants

  // -- jobs
  void Start(Job& job, const Placement& placement);
  std::shared_ptr<const wire::LaunchJob> BuildLaunch(const Job& job, bool with_step) const;
  void FillStep(const JobRecord& record, wire::StepSpec& step) const;
  void SendStart(const Job& job, const std::vector<std::uint32_t>& members, bool with_step);
  // Drives a job to `state`: a waiting one ends at once, others are told to end within `grace`.
  void BeginEnd(Job& job, JobState state, Millis grace, const std::string& reason);
  void SendCancel(const Job& job, Millis grace);
  void GiveUp(Job& job, const event::Cancel& e);
  wire::CancelJob CancelOf(const Job& job, Millis grace) const;
  void LoseOwner(Job& job, Millis grace, const std::string& reason);
  struct Ending {
    JobState state = JobState::kFailed;
    std::int32_t exit_code = 0;
    std::string reason;
    Code code = Code::kOk;
    std::int64_t ended_at_ms = 0;             // as its job daemon tells; 0: now
    const std::string* acked_node = nullptr;  // the head's node: it gets ExitAck and leaves by itself
  };
  void Finish(Job& job, Ending ending);
  void Prune();
  // A member's job daemon or node is lost. `daemon_alive`: the job daemon there must be told to quit.
  void LoseMember(Job& job, std::uint32_t index, const std::string& reason, bool daemon_alive);
  void CheckDeadlines(Job& job);
  void Arm(Instant at, JobId job);
  void Put(const Job& job);
  void Change(const Job& job) { Emit(effect::JobChanged{job.record.id}); }
  Status CheckAccess(JobId id, const UserIdentity& caller) const;
  Job* Find(JobId id);
  const Job* Find(JobId id) const;
  Job* FindActive(JobId id, Incarnation incarnation);

  // -- nodes
  Node* FindNode(std::string_view name);
  const Node* FindNode(std::string_view name) const;
  void CheckNode(Node& node);
  void MarkDown(Node& node, const std::string& reason);
  void ArmNode(const Node& node);
  void Measure(Node& node);
  void CompareClock(Node& node, Instant told);
  std::string ReasonOf(const Node& node) const;
  Status CheckServed(const UserIdentity& user, const std::string& name) const;
  std::set<std::pair<JobId, Incarnation>> KeepJobds(const event::NodeRegistered& e);
  void CheckJobsOn(const std::string& node, const std::set<std::pair<JobId, Incarnation>>& kept);
  Result<std::vector<Node*>> OperatorNodes(const UserIdentity& caller, const std::vector<std::string>& names);
  bool Oversubscribed(const Node& node) const;

  // -- grants
  void RetryAsks();
  struct Refusal {
    std::string reason;
    bool possible_later = false;
    // Nodes of this job's own past stand in the way for this long at most; epoch: they do not.
    Instant leaving_until;
  };
  // nullopt: lent.
  // kFirst: the number asked; kAll: also its alternatives.
  enum class Sizes { kFirst, kAll };
  std::optional<Refusal> TryGrant(Job& job, const wire::GrantAsk& ask, Sizes sizes);
  std::string AddressOn(const Node& node, const JobRecord& record) const;
  Instant EndOf(const Job& job, const wire::GrantAsk& ask) const;
  void Lend(Job& job, const wire::GrantAsk& ask, const Placement& placement);
  void AnswerAsk(const Job& job, std::uint64_t request, const GrantRecord* grant, const std::string& refusal);
  void SendMembership(const Job& job, const std::string& reason, const std::vector<std::uint32_t>& except);
  wire::Member NewMember(Job& job, const Node& node, const Module& module, GrantId grant);
  void GiveBack(Job& job, Allocation& share, bool quit_daemon);
  void ReleaseGrant(Job& job, GrantRecord& grant, bool quit_daemons);
  GrantRecord* FindGrant(JobId job, Incarnation incarnation, std::uint64_t request);
  void Recall(const Job& job, const GrantRecord& grant);
  std::vector<std::string> NamespacesOn(const Job& job, GrantId grant) const;
  GrantView ViewOf(const GrantRecord& grant) const;
  GrantView ViewOf(const WaitingAsk& waiting) const;

  // -- jobs that connect
  void TellNames(const NameDirectory::Answers& answers);
  bool NamesAreKnown(std::uint32_t uid) const;
  void EndLinks(const Job& job);

  // -- snapshots for the scheduler
  ClusterView View() const;
  Placement HeldBy(const Job& job) const;
  // In the order of the queue, as many as a pass looks at. Valid until the next call.
  const std::vector<PendingJob>& PendingJobs() const;
  std::uint32_t NodesExpected(const Job& job) const;

  // -- network attached memory
  // Who waits for the answer to a request.
  struct NamOrigin {
    ReplyTag reply = 0;  // an rpc
    JobId job;           // or a task of it,
    Incarnation incarnation;
    std::string node;  // through the job daemon there; without a job: a process on this node
    std::uint64_t connection = 0;
    std::uint64_t id = 0;  // of its frame
  };
  void Nam(NamEvent event);
  void TakeNam(std::vector<NamEffect> from_book);
  void Take(nam_effect::SendToNamd& e);
  void Take(nam_effect::RefuseNamd& e);
  void Take(nam_effect::Reply& e);
  void Take(nam_effect::AllotmentReply& e);
  void Take(nam_effect::MoreFree& e);
  template <class E>
  void Take(E& e) {
    if constexpr (std::is_same_v<E, nam_effect::WakeAt>)
      WakeAt(e.at);
    else if constexpr (std::is_same_v<E, nam_effect::Log>)
      Emit(effect::Log{std::move(e.text)});
    else
      Emit(std::move(e));
  }
  // Decodes and asks; what is malformed is answered.
  struct NamFrame {
    std::uint16_t type = 0;
    const std::string& payload;
    RegionUuid random;
  };
  void AskNam(NamOrigin origin, NamCaller caller, const NamFrame& frame);
  void AnswerNam(const NamOrigin& origin, const Status& status, NamReplyBody& body);
  void SendNam(const NamOrigin& origin, std::uint16_t type, std::string payload);
  void Sign(NamLeaseReply& reply) const;
  void LoseNamd(Node& node, const std::string& reason);
  void StartNam(Job& job);
  void EndNam(const Job& job);
  void LoseNamClients(const Job& job, const std::string& node);
  nam_event::JobStarted NamStart(const Job& job) const;
  Status CheckNamRegions(const event::Submit& e) const;
  std::vector<std::uint32_t> NamGroups(const UserIdentity& user, const JobSpec& spec) const;

  // -- outlet
  template <class E>
  void Emit(E effect) {
    effects.push_back(std::move(effect));
  }
  void WakeAt(Instant at) { Emit(effect::WakeAt{at}); }
  void NeedPass() { Emit(effect::NeedSchedulePass{}); }
  template <class M>
  void SendToMember(const Job& job, std::uint32_t index, const M& message) {
    if (const wire::Member* member = job.record.FindMember(index))
      Emit(effect::SendToJobd{member->node, job.record.id, job.record.incarnation, M::kType,
                              wire::Encode(message)});
  }
  void Answer(ReplyTag tag, Status status, JobId job = {}) {
    Emit(effect::Reply{tag, std::move(status), job});
  }

  Result<std::vector<Effect>> Restore(StoredState state);
  void Load(StoredState& state);
  void LoadJob(JobRecord& record);
  void ResumePending(Job& job);
  void ResumeActive(Job& job);
  Status CheckInvariants() const;

  SystemTopology topology;
  ControllerOptions options;
  Instant now;                  // of the event that is being handled
  std::vector<Effect> effects;  // of it

  std::vector<Node> nodes;  // by topology index
  std::map<std::string, std::size_t, std::less<>> node_index;
  std::map<JobId, Job> jobs;
  std::set<JobId> pending;                                        // ascending: first come, first served
  std::set<JobId> active;                                         // starting, running, ending
  std::deque<JobId> ended;                                        // oldest first
  std::map<std::pair<std::uint32_t, std::string>, JobId> tokens;  // (uid, token)
  std::set<JobId> held;                                           // of `pending`: not to be scheduled yet
  std::set<JobId> unsettled;                    // of `pending`: to be settled at the end of the event
  std::map<JobId, std::set<JobId>> dependents;  // by job: waiting ones with an open dependency on it
  std::map<std::pair<std::uint32_t, std::string>, std::set<JobId>> same_name;  // (uid, name): not ended
  std::map<GrantId, GrantRecord> grants;                                       // of active jobs
  std::list<WaitingAsk> asks;                                                  // oldest first
  // Job daemons told to quit while their job lives, until when they keep their node from that job: a node has
  // one job daemon of a job at a time.
  std::map<std::tuple<std::string, JobId, Incarnation>, Instant> leaving;
  NameDirectory names;
  Instant names_settled;  // from then on nobody waits for heads that have not said what they publish
  std::map<std::pair<JobId, std::uint64_t>, LinkTicket> link_asks;  // by asker and request
  std::set<std::pair<JobId, JobId>> links;                          // of active jobs, the lower id first
  std::set<std::pair<Instant, JobId>> alarms;
  StringsPool environments;
  // Of the last pass: what a job asks never changes, and copying a thousand requests is most of a pass.
  mutable std::vector<PendingJob> planned_pending;
  // NodesAlone by what is asked: a long queue asks the same few things. Valid for this topology.
  mutable std::map<std::string, std::uint32_t> nodes_alone;
  JobId last_job;
  GrantId last_grant;
  NamBook nam;
  std::map<std::uint64_t, NamOrigin> nam_asks;
  std::uint64_t last_nam_ask = 0;
  RegionUuid nam_random;                  // of the event that is being handled
  std::vector<std::uint32_t> nam_groups;  // likewise
  // Processes that have asked through a node's job daemon, by job and node: they go with it.
  std::map<std::pair<JobId, std::string>, std::set<NamClientId>> nam_clients;
};

}  // namespace msa
