#pragma once
// The head of a job: life of its namespaces, steps and their queue, results, standard streams, publish/lookup
// store, spawns. It reaches the world through HeadOutlet alone, so it runs in tests without processes or
// sockets. One thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/clock.h"
#include "msa/base/messages.h"
#include "msa/base/wire.h"
#include "msa/pmix/data_store.h"

#include "foreign_link.h"
#include "head_connect.h"
#include "peer_messages.h"
#include "slot_map.h"
#include "slurm_world.h"
#include "stdio_hub.h"
#include "step_plan.h"
#include "step_result.h"

namespace msa::jobd {

class HeadOutlet {
 public:
  virtual ~HeadOutlet() = default;
  virtual void ToMember(std::uint32_t index, std::uint16_t type, std::uint64_t id, std::string payload) = 0;
  virtual void ToController(std::uint16_t type, std::string payload) = 0;
  virtual void ToSession(std::uint64_t session, std::uint16_t type, std::string payload) = 0;
  virtual void EndSession(std::uint64_t session) = 0;
  virtual TimerId After(Millis delay, std::function<void()> callback) = 0;
  virtual void Cancel(TimerId timer) = 0;
  virtual Instant WallTime() = 0;
  virtual SteadyTime SteadyTimeNow() = 0;
  virtual void SaveExitRecord(const std::string& payload) = 0;
  // The mesh knows these members from now on.
  virtual void MembersKnown(Epoch epoch, const std::vector<wire::Member>& members,
                            const std::string& reason) = 0;
  virtual bool IsJoined(std::uint32_t member) = 0;
  // Everything is said and acknowledged: tell the members to leave, then leave.
  virtual void JobOver() = 0;
  virtual void Log(const std::string& text) = 0;
  // Links to heads of other jobs, see ForeignLinks.
  virtual std::string NewSecret() = 0;
  virtual Result<std::string> ListenLink(std::uint64_t link, const LinkTicket& ticket) = 0;
  virtual Status OpenLink(std::uint64_t link, const LinkTicket& ticket, const std::string& address) = 0;
  virtual void ToLink(std::uint64_t link, std::uint16_t type, std::uint64_t id, std::string payload) = 0;
  virtual void CloseLink(std::uint64_t link) = 0;
};

struct HeadOptions {
  Millis kill_grace{2'000};  // between SIGTERM and SIGKILL of a namespace that msa ends by itself
  // Between SIGTERM to a namespace and to those connected to it. libpmix 4.2.2 answers an operation whose
  // ranks it loses one after the other at once after it has freed it, and takes the job daemon with it.
  Millis end_apart{50};
  Millis line_delay{100};  // equal ends of tasks within it share a line
  // A script may start thousands of steps of Slurm's: one that is over by then is told to the controller
  // once.
  Millis report_delay{100};
  Millis resend{2'000};       // of what the controller has not answered
  Millis owner_wait{10'000};  // how long an ended job waits for its owner to come and read
  // Two MPIs in one world this long are a mistake; a task's script may start one program right after the
  // other, while other tasks are still leaving the first.
  Millis mixture_wait{3'000};
  Millis linger{1'000};           // for children that are leaving, before a spawn is refused
  Millis plan_unused{60'000};     // a permission to spawn that nobody uses is taken back
  Millis allotment_wait{10'000};  // for the controller's word on more network attached memory
  Millis step_owner_wait{2'000};  // how long the msactl of a step inside a job may stay away
  std::size_t max_steps = 4096;   // at once, waiting ones included
  // For the rest of a step's tasks, once one of them has come. Slurm's plugin waits 60 s.
  Millis slurm_world_wait{50'000};
  Millis kill_report{10'000};  // a member that does not report the end of killed tasks by then is lost
};

// The namespace of the first step, or of the script, as every member of the job registers it, without being
// told.
NamespaceRegister RegisterOfStep(const wire::LaunchJob& launch);
// What a script and the steps are told of the job: see JobVariableLines.
std::vector<std::string> JobVariablesOf(const wire::LaunchJob& launch);

class Head {
 public:
  Head(wire::LaunchJob launch, HeadOutlet& outlet, HeadOptions options = {});
  ~Head();
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  // Opens the output files and awaits the members. Once.
  void Start();

  // A frame of 0x05xx that is the head's (see IsForHead), of a member, itself included.
  static bool IsForHead(std::uint16_t type);
  void OnMember(std::uint32_t from, const wire::Frame& frame);
  void OnMemberJoined(std::uint32_t index);
  void OnMemberLost(std::uint32_t index, const std::string& reason);
  // A frame of 0x02xx, LaunchJob excepted.
  void OnController(const wire::Frame& frame);
  // A frame of 0x04xx, 0x04ff (session over) included.
  void OnSession(std::uint64_t session, const wire::Frame& frame);
  // noded went away: its sessions are gone with it.
  void OnSessionsLost();
  // noded is back: what it may have lost is sent again.
  void OnControllerLink();
  void Cancel(wire::CancelJob order);
  void OnLinkUp(std::uint64_t link);
  void OnLinkFrame(std::uint64_t link, const wire::Frame& frame);
  void OnLinkLost(std::uint64_t link, const std::string& reason);

  bool ended() const noexcept { return exit_.has_value(); }
  std::size_t namespaces() const noexcept { return namespaces_.size(); }
  std::size_t steps() const noexcept { return steps_.size(); }  // the job's own included
  const SlotMap& slots() const noexcept { return slots_; }
  // kInternal naming the first violated invariant. For tests.
  Status CheckInvariants() const;

 private:
  enum class Phase : std::uint8_t { kRegistering, kStarting, kRunning };
  enum class TaskPhase : std::uint8_t { kNone, kAsked, kEnded };
  struct Namespace {
    NamespaceRegister reg;
    Phase phase = Phase::kRegistering;
    std::vector<std::vector<std::uint16_t>> rank_cores;  // slots held
    std::vector<TaskPhase> tasks;
    std::set<std::uint32_t> awaiting_ready;
    std::set<std::uint32_t> awaiting_started;
    std::uint32_t alive = 0;  // asked to start, not ended
    StepResult result;
    bool ending = false;  // msa ends it
    bool failed_to_start = false;
    bool abnormal = false;
    std::int32_t leave_code =
        0;  // of the abort or failed task that ends it: what its tasks are to leave with
    bool any_connected = false;
    std::optional<TaskEnded> early_end;  // the first that failed before any task was known to be MPI's
    std::vector<std::uint32_t> singletons;
    std::string mpi_library;
    std::string failure;  // why, for people
    TimerId kill_timer{};
    TimerId line_timer{};
    TimerId report_timer{};
    std::map<std::uint32_t, NamespaceConnected> in_mpi;  // by member, those with tasks in an MPI world
    TimerId mixture_timer{};
    std::set<std::string> notices;  // shown
    TimerId time_timer{};           // of msa_time
    bool collateral = false;        // ended because one that it is connected to failed
    bool tolerated = false;         // its failure is left to the parent, which was told by an event
    std::set<std::string> linked;   // connected namespaces (MPI-2 dynamic processes)
    std::uint64_t spawn = 0;        // key of spawns_ while the parent waits for the answer
    std::vector<GrantId> grants;    // whose slots it uses or has used
    // Of children that Slurm starts: the job of each part, and part and number of each rank.
    std::vector<JobId> parts;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> rank_part;
  };
  struct SpawnJob {
    std::uint32_t from = 0;  // member and request to answer
    std::uint64_t request = 0;
    SpawnRequest ask;
    std::uint32_t number = 0;
    std::vector<GrantId> grants;      // obtained for it
    std::uint64_t grant_request = 0;  // under way
    std::size_t asks = 0;
    SpawnShortage shortage;  // what the last loan was asked for
    bool lingered = false;
    std::set<std::uint32_t> awaiting_members;
    TimerId timer{};
    std::string nspace;  // placed
    // Of a planned spawn (PlanRequest), see head_plan.cc:
    std::optional<PlanRequest> plan;
    std::vector<std::uint32_t> counts;  // of each command, a member of its set
    std::vector<bool> no_more;          // the controller lends nothing more for the command
    std::string refusal;                // the controller's last words
    SteadyTime deadline{};
    std::optional<SpawnPlace> place;  // reserved, until PMIx_Spawn brings the ticket
    bool claimed = false;             // it has: `from`, `request` and `ask` are PMIx_Spawn's
    std::uint64_t nam_request = 0;    // NamAllotmentAsk under way: placed, but not permitted yet
  };
  // stdin of rank 0 of a step
  struct Input {
    std::string data;  // taken from the owner, not yet given to the task
    std::uint64_t received = 0;
    std::uint64_t taken = 0;
    bool eof = false;
    bool eof_sent = false;
    bool closed = false;
  };
  // What has streams, an owner and a result of its own: the step of an ordinary job, the script of a batch
  // job, a step inside a job. What it spawned is of it.
  struct Step {
    StepId id;
    std::string nspace;  // of its own tasks
    std::unique_ptr<StdioHub> hub;
    Input in;
    std::int32_t code = 0;
    std::int32_t child_code = 0;
    bool collateral = false;  // a namespace was ended for another's failure
    bool node_lost = false;
    std::string message;  // first reason of a failure
    std::vector<wire::TaskEnd> failed;
    // Inside a job:
    enum class Phase : std::uint8_t { kWaiting, kRunning, kOver };
    Phase phase = Phase::kRunning;
    wire::StepOpen ask;  // kWaiting
    std::string token;
    std::set<std::size_t> wants;                // components of the job, once it was found to wait for them
    std::string reason;                         // why it waits, as it was told
    std::optional<wire::JobState> final_state;  // msa ended it
    TimerId immediate_timer{};
    TimerId away_timer{};
  };
  // A step of Slurm whose tasks are not all known.
  struct SlurmGathering {
    SlurmWorld world;
    TimerId timer{};
  };
  struct Outcome {
    wire::JobState state = wire::JobState::kCompleted;
    std::int32_t code = 0;
    std::string message;
  };

  template <class M>
  void Tell(std::uint32_t member, const M& message, std::uint64_t id = 0) {
    outlet_.ToMember(member, M::kType, id, wire::Encode(message));
  }
  template <class M>
  void TellAll(const M& message) {
    const std::string payload = wire::Encode(message);
    for (const auto& [index, member] : members_) outlet_.ToMember(index, M::kType, 0, payload);
  }
  template <class M>
  void TellController(const M& message) {
    outlet_.ToController(M::kType, wire::Encode(message));
  }

  // head.cc: life of a namespace
  Namespace* Find(const std::string& nspace);
  void AddNamespace(NamespaceRegister reg, std::vector<std::vector<std::uint16_t>> cores);
  std::vector<std::vector<std::uint16_t>> StepCores(const NamespaceRegister& reg);
  void OnReady(std::uint32_t from, const NamespaceReady& message);
  void OnConnected(std::uint32_t from, const NamespaceConnected& message);
  void OnNotice(std::uint32_t from, const TaskNotice& message);
  void StartIfReady(Namespace& ns);
  void OnStarted(std::uint32_t from, const TasksStarted& message);
  void AllStarted(Namespace& ns);
  void OnTaskEnded(std::uint32_t from, const TaskEnded& message);
  void JudgeTaskEnd(Namespace& ns, const TaskEnded& message);
  void EndedTask(Namespace& ns, std::uint32_t rank);
  void CheckEnded(const std::string& nspace);
  void ReportBegin(Namespace& ns);
  void Report(const Namespace& ns, bool ended);
  void FlushLines(Namespace& ns);
  Step& StepOf(const Namespace& ns) { return steps_.at(ns.reg.spec.step); }
  StdioHub& HubOf(const Namespace& ns) { return *StepOf(ns).hub; }
  // Of the step whose task asks; the job's own if it is gone.
  StdioHub& HubOfAsker(const std::string& nspace);
  Step& Main() { return steps_.at(main_); }
  bool IsMain(const Step& step) const { return step.id == main_; }
  void NumberNodes(NamespaceRegister& reg) const;
  Result<std::unique_ptr<StdioHub>> MakeHub(StepId id, const wire::StepSpec& spec, bool interactive);
  std::string Name(const Namespace& ns) const;
  static std::string LabelOf(const Namespace& ns);
  std::string CommandOf(const Namespace& ns) const;
  std::string ProgramOfRank(const Namespace& ns, std::uint32_t rank) const;

  // head_end.cc: ends of every kind
  // kQuiet leaves connected namespaces alone; kAbort's text replaces an earlier reason.
  enum class EndKind : std::uint8_t { kQuiet, kFailure, kAbort };
  // SIGTERM goes out after `delay`.
  void EndNamespace(const std::string& nspace, const std::string& text, EndKind kind,
                    Millis delay = Millis(0));
  void TermNamespace(const std::string& nspace);
  void AskToLeave(const Namespace& ns);
  void EndConnected(const std::string& nspace);
  void KillNamespace(const std::string& nspace);
  void GiveUpOn(const std::string& nspace);
  void OnAbort(const AbortRequest& message);
  void OnLinked(const NamespacesLinked& message);
  void Settle(std::string nspace);  // by value: the namespace, which may own it, is erased
  void JudgeSingletons(Namespace& ns);
  void WatchMixture(Namespace& ns);
  void JudgeMixture(Namespace& ns);
  void MergeResult(Namespace& ns);
  Outcome OutcomeOf(const Step& step) const;
  void CheckStepOver(StepId id);
  bool StepsAreRead() const;
  void MaybeFinish();
  void Finish();
  void WaitForOwner();
  void LeaveWhenDone();
  void Signal(std::int32_t signal);
  void KillAllNow();
  void Fail(StepId id, const std::string& text, std::int32_t code);

  // head_steps.cc: steps inside a job
  void OnStepOpen(std::uint64_t session, wire::StepOpen open);
  bool ResumeStep(std::uint64_t session, const wire::StepOpen& open);
  void RefuseSession(std::uint64_t session, std::int32_t code, const std::string& text);
  void StartWaiting();
  void StartStep(Step& step, StepPlace place);
  void TellStep(const Step& step);
  void RefuseStep(StepId id, std::int32_t code, const std::string& text);
  void EndStep(Step& step, wire::JobState state, const std::string& text);
  void EndOtherSteps(const std::string& text);
  void OnStepSignal(Step& step, std::int32_t signal);
  void OnStepSessionOver(std::uint64_t session);
  void ArmAway(Step& step);
  void ForgetStep(StepId id);
  Step* StepOfSession(std::uint64_t session);

  // head_members.cc
  void OnMembersChanged(Epoch epoch, const std::vector<wire::Member>& members, const std::string& reason);
  void MarkNodeLost(std::uint32_t index);
  void LoseTasksOn(Namespace& ns, std::uint32_t index, const std::string& reason);
  void RefreshSlots();
  bool IsGone(const wire::GrantShare& share) const;
  std::vector<GrantId> GrantsOf(const Namespace& ns) const;
  void OnRecall(const wire::RecallGrant& recall);
  void GiveSlots(std::uint32_t member, const std::vector<std::uint16_t>& cores);
  void ReleaseIdleGrants();
  void Resend();

  // head_spawn.cc
  void OnSpawn(std::uint32_t from, std::uint64_t request, SpawnRequest ask);
  void TrySpawn(std::uint32_t number);
  std::vector<SpawnNeed> NeedsOf(const SpawnJob& job) const;
  bool Linger(SpawnJob& job);
  void AskGrant(SpawnJob& job, const SpawnShortage& shortage);
  void OnGrantAnswer(const wire::GrantAnswer& answer);
  void OnOwnNodes(const wire::GrantAnswer& answer);
  void Borrow(const wire::GrantAnswer& answer);
  void WithdrawAsk(SpawnJob& job);
  void PlaceSpawned(SpawnJob& job, SpawnPlace place);
  void RefuseSpawn(std::uint32_t number, pmix::PmixStatus status, const std::string& text);
  void AnswerSpawn(Namespace& ns, pmix::PmixStatus status);
  void DropSpawnsOf(const std::string& nspace);
  std::string Shortage(const SpawnJob& job, const SpawnShortage& shortage) const;

  // head_plan.cc
  void OnPlan(std::uint32_t from, std::uint64_t request, PlanRequest plan);
  void OnPlanDrop(std::uint32_t from, const PlanDrop& message);
  void Reserve(SpawnJob& job, SpawnPlace place);
  void Permit(SpawnJob& job);
  void AskAllotment(SpawnJob& job);
  void OnAllotment(const wire::NamAllotment& answer);
  bool Shrink(SpawnJob& job, const SpawnShortage& shortage);
  void AddAlternatives(const SpawnJob& job, const SpawnShortage& shortage, wire::GrantAsk& ask);
  std::int64_t WaitLeft(const SpawnJob& job) const;
  void TakeLent(SpawnJob& job, std::uint32_t slots);
  void RefusePlan(SpawnJob& job, wire::SpawnRefusal refusal, const std::string& text);
  bool Claim(std::uint32_t from, std::uint64_t request, SpawnRequest& ask);
  void RetryWaiting();
  void Forget(SpawnJob& job);
  static bool IsReserved(const SpawnJob& job, std::uint32_t member);
  std::string NamespaceOf(const SpawnJob& job);

  // head_slurm.cc: worlds of tasks that Slurm starts
  std::string SlurmNamespace(StepId step) const;
  void OnSlurmJoined(std::uint32_t from, const SlurmJoined& message);
  void OnSlurmLost(const SlurmLost& message);
  Status CheckSlurmStep(StepId step) const;
  void MakeSlurmWorld(StepId id);
  void DropSlurmWorld(StepId id, const std::string& text);
  void LoseSlurmMember(std::uint32_t index, const std::string& reason);
  void DropSlurmWorlds(const std::string& text);
  void ForgetSlurmStep(StepId id);
  void RememberSlurmStep(StepId id, const std::string& text);
  void SayToSlurm(StepId id, const std::string& text);
  JobId SlurmJobOf(std::uint32_t member) const;
  // Of a rank on these cores: the companion or the component that holds them, else as above.
  JobId SlurmJobOf(std::uint32_t member, const std::vector<std::uint16_t>& cores) const;
  void NumberParts(Namespace& ns);
  void StartSruns(const Namespace& ns);
  void StopSruns(const Namespace& ns);
  void OnSrunEnded(const SrunEnded& message);

  // head_store.cc
  void OnPublish(const StoreCaller& caller, StorePublish message);
  void OnLookup(StoreCaller caller, StoreLookup message);
  bool AwaitsAcceptor(const std::vector<std::string>& keys) const;
  void OnUnpublish(const StoreCaller& caller, const StoreUnpublish& message);
  void Publish(const StoreCaller& caller, StorePublish message);
  void Apply(pmix::StoreResult result, std::optional<StoreCaller> caller);
  void AnswerStore(const StoreCaller& caller, StoreReply reply);
  void ArmStore();

  // head_names.cc
  static bool IsShared(pmix::Range range);
  bool ShareNames(const StoreCaller& caller, StorePublish& message);
  void WithdrawNames(std::vector<std::string> keys, std::optional<StoreCaller> caller);
  std::vector<std::string> NamesGone();
  void Queue(NameOperation operation);
  void OnNameAnswer(const wire::NameAnswer& answer);
  void Finished(NameOperation operation, const wire::NameAnswer& answer);
  bool AskNames(const StoreCaller& caller, pmix::DataStore::LookupRequest& lookup);
  void LookupOver(std::uint64_t lookup);
  void AnnounceNames();
  void ResendNames();

  // head_connect.cc: links and ports
  bool IsOwnPort(std::uint32_t port_owner) const;
  void WithPortJob(std::uint32_t port_owner, std::function<void(JobId, const std::string&)> then);
  template <class M>
  void Forward(const StoreCaller& caller, std::uint32_t port_owner, M message);
  bool TakeTurn(const StoreCaller& caller, const std::string& port, StorePublish& message);
  void AdvanceTurns();
  bool AdvanceTurn(const std::string& port, PortTurn& turn);
  bool IsGone(const pmix::Proc& proc) const;
  void OnLinkOffer(const wire::LinkOffer& offer);
  void OnLinkAnswer(const wire::LinkAnswer& answer);
  ForeignJob& Meet(JobId job, Incarnation incarnation, std::uint64_t link);
  void LoseForeign(JobId job, const std::string& reason);
  template <class M>
  void ToForeign(JobId job, const M& message, std::uint64_t id = 0) {
    if (const auto it = foreign_.jobs.find(job); it != foreign_.jobs.end())
      outlet_.ToLink(it->second.send_on, M::kType, id, wire::Encode(message));
  }

  // head_foreign.cc: namespaces of other jobs, and operations over them
  void FromForeign(JobId job, const wire::Frame& frame);
  void ServeHeld(JobId job);
  void Introduce(JobId job, const std::string& nspace);
  void OnForeignRegister(JobId job, ForeignRegister message);
  void OnForeignReady(std::uint32_t from, const ForeignReady& message);
  void ForeignNamespaceEnded(JobId job, const ForeignEnded& message);
  void TellForeignEnd(const Namespace& ns, const std::string& reason);
  JobId JobOf(const std::string& foreign_nspace) const;
  void OnCollective(std::uint32_t from, std::uint64_t request, ForeignCollective message);
  bool Understand(const pmix::CollectiveKey& key, CrossOperation& operation);
  void OnPart(JobId job, ForeignPart message);
  void AdvanceCross(const pmix::CollectiveKey& key);
  void CompleteCross(const pmix::CollectiveKey& key, CrossOperation operation);
  void FailCross(const pmix::CollectiveKey& key, pmix::PmixStatus status, const std::string& reason);
  void FailCrossOf(const std::string& nspace, const std::string& reason);
  void OnModexOut(std::uint32_t from, std::uint64_t request, const ForeignModex& message);
  void OnModexIn(JobId job, std::uint64_t request, const ForeignModex& message);
  void OnModexServed(std::uint64_t id, const ForeignModexReply& message);
  void ForeignMemberJoined(std::uint32_t index);
  void ForeignMemberLost(std::uint32_t index, const std::string& reason);

  void OnInput(std::uint64_t session, wire::Input input);
  void OnInputTaken(const InputTaken& message);
  void ForwardInput(Step& step);
  void SendInputAck(std::uint64_t session, const Step& step);
  void OnAck(std::uint64_t session, std::uint64_t seq);

  wire::LaunchJob launch_;
  HeadOutlet& outlet_;
  HeadOptions options_;
  Epoch epoch_;
  std::map<std::uint32_t, wire::Member> members_;  // present
  std::set<std::uint32_t> lost_;
  SlotMap slots_;
  std::map<std::string, Namespace> namespaces_;
  StepId main_;  // the step of an ordinary job; kBatchStep of a batch job and of an allocation
  std::map<StepId, Step> steps_;
  std::vector<StepId> waiting_;  // in order of arrival
  std::uint32_t next_step_ = 0;
  std::map<std::uint64_t, StepId> step_sessions_;
  bool sessions_possible_ = true;  // the node daemon is there
  // Ends of steps that are forgotten: a session that comes too late must not run its step again.
  std::deque<std::pair<std::string, wire::SessionEnd>> past_;
  std::map<StepId, SlurmGathering> gatherings_;
  // Under which component's number a member's node can be used, by its tasks, where the cores tell nothing.
  std::map<std::uint32_t, JobId> slurm_jobs_;
  std::map<JobId, std::map<std::uint32_t, std::vector<std::uint16_t>>> own_cores_;  // component, member
  bool het_ = false;  // a heterogeneous job of Slurm's
  std::map<StepId, std::string>
      slurm_past_;  // steps that were; what a task of theirs that comes late is told
  pmix::DataStore store_;
  std::map<std::uint64_t, StoreCaller> lookups_;
  std::uint64_t next_lookup_ = 1;
  TimerId store_timer_{};
  ForeignState foreign_;
  std::map<std::uint32_t, SpawnJob> spawns_;
  std::uint32_t next_spawn_ = 1;
  std::uint64_t next_grant_request_ = 1;
  std::map<std::uint64_t, wire::GrantAsk> open_asks_;
  std::vector<wire::Member> told_members_;                         // as the controller told last
  std::map<std::uint64_t, std::vector<wire::GrantShare>> grants_;  // by id
  std::map<std::uint64_t, JobId> companions_;                      // of Slurm, by grant
  std::set<std::uint64_t> released_;                               // told, not yet gone from the membership
  std::set<std::uint64_t> recalled_;   // nothing starts there any more; released when nothing runs there
  std::set<std::string> warned_keys_;  // keys and texts that are shown once a job
  TimerId resend_timer_{};

  // the job's result
  std::int64_t started_at_ms_ = 0;
  bool cancelled_ = false;
  wire::JobState final_state_ = wire::JobState::kCancelled;
  std::int32_t ordered_code_ = 0;  // of an allocation that its owner has ended
  std::uint32_t tasks_total_ = 0;
  std::uint32_t tasks_failed_ = 0;
  TimerId cancel_timer_{};
  SteadyTime cancel_deadline_;
  std::optional<wire::JobExit> exit_;
  bool acknowledged_ = false;
  bool left_ = false;
  TimerId owner_timer_{};
  bool owner_waited_ = false;
  bool owner_gone_ = false;  // for good
};

}  // namespace msa::jobd
