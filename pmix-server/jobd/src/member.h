#pragma once
// A job daemon as a member of its job: hosts the namespaces for PMIx, starts and watches the tasks of its
// node, carries their streams to the head, and answers PMIx's upcalls together with the other members. One
// thread, the loop's.

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/messages.h"
#include "msa/base/slurm_messages.h"
#include "msa/base/wire.h"
#include "msa/job/stdio_pattern.h"
#include "msa/launch/task.h"
#include "msa/pmix/collective.h"
#include "msa/pmix/open_mpi_env.h"
#include "msa/pmix/pmix_host.h"

#include "peer_mesh.h"
#include "peer_messages.h"
#include "pmi_world.h"

namespace msa::jobd {

struct MemberOptions {
  JobId job;
  Incarnation incarnation;
  std::uint32_t self = 0;
  std::uint32_t head = 0;
  UserIdentity user;
  std::string user_name;
  std::string job_name;
  std::string directory;      // PMIx's of this node
  std::string job_socket;     // MSA_JOB_SOCKET
  std::string shm_directory;  // of this job on this node
  std::string topology_xml;
  std::uint32_t machine_cores = 1;
  pmix::Network network = pmix::Network::kOrdinary;
  std::string mpi_library;                 // libmsampi.so, for LD_PRELOAD; empty: there is none
  std::string system;                      // MSA_DIR; empty: not set
  std::string script;                      // file of the batch script; empty: the job has none
  bool slurms = false;                     // Slurm starts its tasks
  std::vector<std::string> job_variables;  // JobVariablesOf, for scripts that Slurm starts
  // To a task that is connected, with the id of the frame that it answers.
  std::function<void(std::uint64_t client, const wire::SpawnVerdict& verdict, std::uint64_t id)> to_task;
  // CPUs, as the kernel numbers them, of logical cores.
  std::function<Result<std::vector<std::uint16_t>>(const std::vector<std::uint16_t>&)> cpus_of;
};

class Member {
 public:
  Member(EventLoop& loop, pmix::PmixHost& host, launch::TaskRunner& launcher, PeerMesh& mesh,
         MemberOptions options, std::function<void(const std::string&)> log);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void SetMembers(const std::vector<wire::Member>& members);
  // Registers a namespace here and tells the head. A second time: ignored.
  void Register(NamespaceRegister reg);
  // A frame of 0x05xx that is not the head's.
  void OnFrame(std::uint32_t from, const wire::Frame& frame);
  void OnMemberLost(std::uint32_t index, const std::string& reason);
  void OnUpcall(pmix::Upcall upcall);

  void OnOutput(const std::string& nspace, Rank rank, wire::Stream stream, std::string data);
  void OnExit(const launch::TaskExit& exit);
  void OnStdin(const std::string& nspace, Rank rank, std::size_t taken,
               bool closed);  // NOLINT: the launcher's form
  // Tasks of the namespace (empty: of all) that are not started yet stay so.
  void StopStarts(const std::string& nspace);

  // A message of a task over MSA_JOB_SOCKET, after its hello; its connection's end. `client` names the
  // connection.
  void OnTaskFrame(std::uint64_t client, const wire::TaskHello& task, const wire::Frame& frame);
  void OnTaskGone(std::uint64_t client);

  // What a script that Slurm starts is told of its job. `own`: see SlurmTaskJoin::environment.
  wire::SlurmTaskReady ScriptEnvironmentHere(const std::vector<std::string>& own) const;

  // Step and number of ranks of a namespace, of the step if none is named; size 0: it is not of this job.
  struct World {
    StepId step;
    std::uint32_t size = 0;
  };
  World WorldOf(const std::string& nspace) const;

 private:
  struct Client {
    bool connected = false;  // with the PMIx server
    bool finalized = false;
    bool pmi_connected = false;  // with the PMI-1 server
    bool pmi_finalized = false;
    bool ended = false;
    bool in_pmix() const { return connected && !finalized && !ended; }
    bool in_pmi() const { return pmi_connected && !pmi_finalized && !ended; }
  };
  struct Hosted {
    NamespaceRegister reg;
    bool told_pmix = false;  // NamespaceConnected, as the head knows it
    bool told_pmi1 = false;
    std::map<std::uint32_t, Client> clients;
    std::unique_ptr<PmiWorld> pmi;  // once tasks are started here
  };
  // A plan of a task: asked, or permitted and not known to be used.
  struct TaskPlan {
    std::uint64_t client = 0;
    std::string ticket;
    std::string nspace;  // that the ticket is for
  };
  // A NamespaceStart that is being carried out.
  struct OpenStart {
    NamespaceStart message;
    std::size_t next = 0;                   // of message.tasks
    std::size_t under_way = 0;              // slices whose tasks have not all exec'ed or failed
    std::map<std::string, UniqueFd> files;  // opened for its tasks, by path
    TasksStarted result;
    bool stopped = false;
  };
  struct OpenCollective {
    pmix::DataReply data_reply;      // fence, barrier of PMI-1
    pmix::StatusReply status_reply;  // connect, disconnect
    pmix::CollectiveKind kind = pmix::CollectiveKind::kFence;
    std::vector<std::string> nspaces;
    bool lowest = false;  // this member tells the head
    TimerId timer{};
  };
  struct OpenRequest {
    std::uint32_t to = 0;
    std::function<void(pmix::PmixStatus, const wire::Frame*)> on_reply;  // null frame: the member was lost
  };
  struct Collective {
    pmix::CollectiveKind kind = pmix::CollectiveKind::kFence;
    std::vector<pmix::Proc> procs;
    std::string data;
    std::uint32_t timeout_s = 0;
  };

  template <class M>
  void ToHead(const M& message, std::uint64_t id = 0) {
    mesh_.SendMessage(options_.head, message, id);
  }
  template <class M>
  std::uint64_t Ask(std::uint32_t member, const M& message,
                    std::function<void(pmix::PmixStatus, const wire::Frame*)> on_reply) {
    const std::uint64_t id = next_request_++;
    requests_[id] = {member, std::move(on_reply)};
    mesh_.SendMessage(member, message, id);
    return id;
  }
  void OnReply(std::uint32_t from, const wire::Frame& frame);
  void Deregister(const std::string& nspace);
  void OnEvent(const NamespaceEvent& message);
  void OnCredit(const OutputCredit& message);
  std::vector<std::string> NamespacesOf(StepId step) const;

  // member_plan.cc
  void OnSpawnAsk(std::uint64_t client, const wire::TaskHello& task, std::uint64_t id, wire::SpawnAsk ask);
  void OnPlanReply(std::uint64_t client, std::uint64_t id, std::uint64_t request, wire::SpawnVerdict verdict,
                   const wire::Frame* frame);
  void DropPlans(const std::function<bool(const TaskPlan&)>& which);

  // member_start.cc
  void Start(NamespaceStart message);
  void StartSlice(const std::shared_ptr<OpenStart>& start);
  void OnSliceStarted(const std::shared_ptr<OpenStart>& start, std::size_t started,
                      std::vector<launch::StartFailure> failures);
  void FinishStart(const std::shared_ptr<OpenStart>& start);
  void Signal(const NamespaceSignal& message);
  void Kill(const std::string& nspace);

  // member_tasks.cc
  void Ended(const launch::TaskExit& exit);
  void TellLoweredLimits(const Hosted& hosted);
  Result<launch::TaskSpec> MakeTask(Hosted& hosted, const TaskPlace& place, const NamespaceStart& message,
                                    std::map<std::string, UniqueFd>& files);
  Status OpenStreams(const Hosted& hosted, launch::TaskSpec& spec, std::map<std::string, UniqueFd>& files);
  std::vector<std::string> Environment(const Hosted& hosted, const wire::App& app, Rank rank);
  std::uint32_t TasksOnMachine() const;
  const wire::App& AppOf(const Hosted& hosted, Rank rank) const;

  // member_upcalls.cc
  void On(pmix::ClientConnected upcall);
  void On(pmix::ClientFinalized upcall);
  void On(pmix::Aborted upcall);
  void On(pmix::Fence upcall);
  void On(pmix::DirectModex upcall);
  void On(pmix::Publish upcall);
  void On(pmix::Lookup upcall);
  void On(pmix::Unpublish upcall);
  void On(pmix::Spawn upcall);
  void On(pmix::Connect upcall);
  void On(pmix::Disconnect upcall);
  void TellConnections(const std::string& nspace, Hosted& hosted);
  void Begin(Collective collective, OpenCollective open);
  void Run(pmix::CollectiveEffects effects);
  void Complete(pmix::CollectiveComplete complete);
  void OnModexRequest(std::uint32_t from, std::uint64_t id, const ModexRequest& message);

  // member_foreign.cc: processes of other jobs
  pmix::NamespaceInfo InfoOf(const NamespaceRegister& reg) const;
  void OnForeignFrame(const wire::Frame& frame);
  void RegisterForeign(ForeignRegister message);
  void OnForeignEnded(const ForeignEnded& message);
  bool CrossesJobs(const std::vector<pmix::Proc>& procs) const;
  void BeginForeign(Collective collective, OpenCollective open);
  void ForgetForeignOperations(const std::string& nspace);
  void AskForeignModex(pmix::DirectModex upcall);
  void ServeModex(std::uint64_t id, const ForeignModexServe& message);

  // member_pmi.cc
  PmiWorld& PmiWorldOf(Hosted& hosted);
  void OnPmi(const std::string& nspace, pmi1::Effect effect);
  void On(Hosted& hosted, const pmi1::Connected& effect);
  void On(Hosted& hosted, const pmi1::Finalized& effect);
  void On(Hosted& hosted, const pmi1::Aborted& effect);
  void On(Hosted& hosted, pmi1::EnterBarrier& effect);
  void On(Hosted& hosted, pmi1::NameRequest& effect);
  void On(Hosted& hosted, pmi1::SpawnRefused& effect);
  void On(Hosted& hosted, pmi1::Close& effect);
  void On(Hosted&, const pmi1::Reply&) {}  // PmiWorld's

  EventLoop& loop_;
  pmix::PmixHost& host_;
  launch::TaskRunner& launcher_;
  PeerMesh& mesh_;
  MemberOptions options_;
  std::function<void(const std::string&)> log_;
  std::map<std::uint32_t, wire::Member> members_;
  std::map<std::string, Hosted> hosted_;
  std::list<std::shared_ptr<OpenStart>> starts_;
  pmix::CollectiveEngine engine_;
  std::map<std::uint64_t, OpenCollective> collectives_;
  std::uint64_t next_collective_ = 1;
  std::map<std::uint64_t, OpenRequest> requests_;
  std::map<std::string, JobId> foreign_;  // namespaces of other jobs that are hosted here
  std::map<std::pair<pmix::CollectiveKind, std::vector<pmix::Proc>>, std::uint64_t> foreign_sequence_;
  std::uint64_t next_request_ = 1;
  std::map<std::uint64_t, TaskPlan> plans_;  // by request
  struct Debt {
    std::uint64_t bytes = 0;  // sent to the head beyond its credit
    bool paused = false;
  };
  std::map<StepId, Debt> output_debts_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace msa::jobd
