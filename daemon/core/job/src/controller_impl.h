#pragma once
// The state behind Controller and the functions that change it, by concern: controller_jobs.cc (queue, start,
// end), controller_launch.cc, controller_dependencies.cc, controller_nodes.cc, controller_grants.cc and
// controller_grant_views.cc, controller_names.cc, controller_nam.cc, controller_gateways.cc,
// controller_slurm.cc and controller_slurm_jobs.cc, controller_companions.cc, controller_slurm_agent.cc,
// controller_restore.cc, controller_views.cc.

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

// A job daemon leaves within milliseconds; one that has not told so after this long is taken for gone.
inline constexpr Millis kLeaveWait{2000};

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
    bool own_nodes_known = false;  // Slurm's agent has told all that the job holds
    bool names_unknown = false;    // taken up from the store, and its head has not said yet what it publishes
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
    // Of a job of Slurm's: msa-companion asks Slurm for it, and `deadline` is beyond the wait.
    struct Slurm {
      std::string partition;
      Instant until;       // of the wait itself
      JobId job;           // queued, or granted; 0: none yet
      bool again = false;  // msa-companion has been started anew
      std::optional<wire::CompanionGranted> granted;
      std::uint64_t question = 0;  // to the agent, that is open; 0: none
      bool vouched = false;        // the agent says what `granted` says
      // To the agent, that are open: what these components of the job hold. No companion is asked for before.
      std::map<std::uint64_t, JobId> own;
      // What is new of that, by component.
      std::map<JobId, std::vector<wire::GrantShare>> found;
    };
    std::optional<Slurm> slurm;
  };

  // A companion that was given back, until Slurm has cancelled it.
  struct LeavingCompanion {
    JobId parent;
    Instant next;  // then the agent is told to cancel it
  };

  // A job that is over in Slurm, whose nodes may not tell so.
  struct SilentEnd {
    Instant at;                  // then that is acted upon
    std::uint32_t restarts = 0;  // of the run that is over
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
  void Handle(event::SlurmStepBegin& e);
  void Handle(event::SlurmStepEnd& e);
  void Handle(event::SlurmJobEnd& e);
  void Handle(event::FromSlurmAgent& e);
  void Handle(event::SlurmAgentLost& e);

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
  void OnMessage(Job& job, const std::string& node, wire::CompanionReport& m);

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
  // `slurms`: the companion that holds the placement.
  void Lend(Job& job, const wire::GrantAsk& ask, const Placement& placement,
            const wire::CompanionGranted* slurms);
  void AnswerAsk(const Job& job, std::uint64_t request, const GrantRecord* grant, const std::string& refusal);
  void SendMembership(const Job& job, const std::string& reason, const std::vector<std::uint32_t>& except);
  wire::Member NewMember(Job& job, const Node& node, const Module& module, GrantId grant);
  // A member has the cores of the shares there that were not given back. True: others than before.
  static bool SetCores(JobRecord& record, std::uint32_t index);
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
  void CountGateways(ClusterView& view) const;
  static bool IsUsable(const Node& node);  // something new may start there
  // By name, in the topology's order. What `except` has counts as free.
  std::vector<std::string> FreeGateways(JobId except) const;
  void TakeGateways(Job& job) const;
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

  // -- jobs that Slurm schedules
  // A step, from the first slurmstepd that tells of it to the last that ends.
  struct SlurmStep {
    std::vector<wire::SlurmNodeTasks> nodes;
    std::map<std::pair<std::string, JobId>, wire::SlurmStepBegin> parts;  // by node and component
    std::string secret;
    Instant since;
    std::optional<wire::SlurmStepVerdict> verdict;
  };
  using SlurmKey = std::pair<JobId, StepId>;
  // Of a component whose leader is named by the user's environment alone, until Slurm has said so too.
  struct DoubtedStep {
    event::SlurmStepBegin begin;
    Instant since;
    std::uint64_t question = 0;  // to the agent, that is open; 0: none
  };
  bool BelievesLeader(const wire::SlurmStepBegin& begin) const;
  void DoubtSlurmStep(event::SlurmStepBegin& e);
  void SettleDoubts();
  // False: the answer is to no question of these.
  bool OnDoubtAnswered(std::uint64_t id, const wire::SlurmJobAnswer& answer);
  void FileSlurmStep(event::SlurmStepBegin& e);
  // nullopt: it is not known yet.
  std::optional<Status> JudgeSlurmStep(const SlurmStep& step) const;
  void JudgeSlurmSteps();
  bool HasSlurmStep(JobId job, const std::string& node) const;  // "": any node
  // What runs there is told anew, or is lost.
  void ForgetSlurmSteps(const std::string& node);
  // Parts of steps that node daemons have accepted for the job, which has ended, and that are not judged.
  void ForgetAcceptedSteps(JobId job);
  // Who still waits to begin a step of the job, on this node or ("") any, is refused.
  void RefuseSlurmSteps(const Job& job, const std::string& node, const std::string& reason);
  // Slurm has ended it on the head's node; it waits for steps that are being ended elsewhere.
  static bool HeadIsOver(const JobRecord& record);
  void SettleSlurmEnd(JobId id);
  void SettleSlurmStep(const SlurmKey& key, SlurmStep& step);
  void TakeUpSlurmStep(const SlurmKey& key, event::SlurmStepBegin& e);
  void TellSlurm(const SlurmStep& step, const std::string& node);  // "": all of its nodes
  Status CheckSlurmJob(const SlurmKey& key, const SlurmStep& step) const;
  Status CheckSlurmRoom(const wire::SlurmStepBegin& begin, const JobSpec& spec) const;
  bool AwaitsSlurmRoom(const SlurmKey& key, const SlurmStep& step);
  bool AwaitsLeavers(const SlurmStep& step, JobId owner);
  Result<Job*> TakeSlurmStep(const SlurmKey& key, const SlurmStep& step);
  Result<JobSpec> SlurmSpec(const wire::SlurmStepBegin& begin) const;
  Job& NewSlurmJob(const SlurmKey& key, const SlurmStep& step, JobSpec spec);
  // True: the job's membership has changed; new members are added to `fresh`.
  bool AddSlurmShare(Job& job, const wire::SlurmStepBegin& part, std::vector<std::uint32_t>& fresh);
  // To the head of a heterogeneous job: which cores are whose, since components may share a node.
  void SendComponents(const Job& job);
  void EndSlurmShare(Job& job, std::uint32_t component, const std::string& node);

  // -- grants of jobs that Slurm schedules: companion jobs
  using AskPosition = std::list<WaitingAsk>::iterator;
  void AskSlurm(Job& job, const wire::GrantAsk& ask);
  Result<std::string> PartitionOf(const wire::GrantAsk& ask) const;
  // A job's own nodes are known from its steps alone: those without any are looked for before others are
  // asked for. False: there is nothing to look for, or nobody to ask.
  bool LookForOwnNodes(const Job& job, WaitingAsk& waiting);
  void OnOwnNodes(AskPosition waiting, std::uint64_t question, const wire::SlurmJobAnswer& answer);
  void TakeOwnNodes(Job& job, WaitingAsk& waiting, JobId component, const wire::SlurmJobAnswer& answer);
  void OrderCompanion(const Job& job, const WaitingAsk& waiting);
  AskPosition FindAsk(JobId job, std::uint64_t request);
  void OnCompanion(Job& job, std::uint64_t request, const wire::CompanionPending& m);
  void OnCompanion(Job& job, std::uint64_t request, wire::CompanionGranted& m);
  void OnCompanion(Job& job, std::uint64_t request, const wire::CompanionRefused& m);
  void OnCompanion(Job& job, std::uint64_t request, const wire::CompanionEnded& m);
  void CompanionGone(Job& job, std::uint64_t request, const std::string& why);
  // Goes on with an ask as far as that is possible now; one that is answered is gone then.
  void SettleCompanion(AskPosition waiting);
  // The agent is asked whether what a job daemon says of a companion is true: that one runs as the user.
  void Verify(WaitingAsk& waiting);
  Status CheckCompanion(const Job& job, const WaitingAsk& waiting, const wire::SlurmJobAnswer& answer) const;
  // False: its nodes are not ready for it yet.
  Result<bool> TakeCompanion(Job& job, const WaitingAsk& waiting);
  void RefuseCompanion(Job& job, AskPosition waiting, const std::string& text);
  // Nobody waits for it any more.
  void DropCompanion(const Job& job, AskPosition waiting);
  // To msa-companion, and if that does not help, to the agent.
  void LetGo(const Job& job, const GrantRecord& grant);
  // Slurm has ended it, on `node` or ("") everywhere. The nodes that the job has by it alone are lost.
  void LoseCompanion(JobId job, GrantId grant, const std::string& reason, const std::string& node = "");
  // That was lent; nullptr: `slurm_job` is none.
  const GrantRecord* FindCompanion(JobId slurm_job) const;
  JobId ParentOf(JobId slurm_job) const;  // `slurm_job` itself where it is no companion
  Result<Job*> TakeCompanionStep(const GrantRecord& grant, const SlurmStep& step);
  // The job's own id, and those of its companions: of its steps.
  std::vector<JobId> SlurmIdsOf(JobId job) const;

  // -- the agent (msa/base/slurm_agent_messages.h)
  void OnAgent(std::uint64_t id, wire::SlurmAgentState& m);
  void OnAgent(std::uint64_t id, wire::SlurmJobsChanged& m);
  void OnAgent(std::uint64_t id, wire::SlurmJobAnswer& m);
  void OnAgent(std::uint64_t id, wire::SlurmOrphansCancelled& m);
  void OnAgent(std::uint64_t id, wire::SlurmDone& m);
  template <class M>
  std::uint64_t AskAgent(const M& message) {
    Emit(effect::ToSlurmAgent{M::kType, ++last_agent_ask, wire::Encode(message)});
    return last_agent_ask;
  }
  void ForgetAgentAsks();
  void NoteComponent(const wire::SlurmJob& job);
  // nullopt: Slurm has forgotten the job.
  void SlurmJobIsOver(JobId slurm_job, const wire::SlurmJob* as);
  void CheckUnlisted();
  void SendOrphans();
  void CancelLeaving();
  // Jobs that are over in Slurm, whose nodes have not told so.
  void EndSilentJobs();

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
  std::map<SlurmKey, SlurmStep> slurm_steps;
  std::list<DoubtedStep> doubted_steps;
  bool agent_up = false;  // and slurmctld answers it
  std::uint64_t last_agent_ask = 0;
  std::map<std::uint64_t, JobId> agent_questions;                      // of jobs that it has not named
  std::map<std::uint64_t, JobId> agent_cancels;                        // of leaving companions
  std::map<std::uint64_t, std::map<JobId, Incarnation>> agent_sweeps;  // the parents
  std::map<JobId, std::set<JobId>> slurm_components;                   // of heterogeneous jobs, by leader
  std::optional<std::set<JobId>> agent_listed;                         // of a complete list that has begun
  std::map<JobId, Incarnation> orphan_parents;  // that have ended here, and had companions
  std::map<JobId, LeavingCompanion> leaving_companions;
  std::map<JobId, SilentEnd> silent_ends;  // by component
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
