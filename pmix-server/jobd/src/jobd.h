#pragma once
// The job daemon: joins the node daemon's link, the peers, the PMIx server, the tasks and, at the head, the
// job itself.

#include <memory>
#include <optional>
#include <string>

#include "msa/adapters/hwloc/machine.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/launch/task.h"
#include "msa/pmix/pmix_host.h"

#include "companion_runs.h"
#include "foreign_link.h"
#include "head.h"
#include "job_socket.h"
#include "member.h"
#include "nam_relay.h"
#include "node_link.h"
#include "peer_mesh.h"
#include "slurm_tasks.h"
#include "srun_steps.h"
#include "tls_stream.h"

namespace msa::jobd {

struct JobdOptions {
  std::string node;
  std::string noded_socket;
  std::string directory;     // of this job daemon alone; removed at its end
  std::string topology_xml;  // empty: hwloc and libpmix look for themselves
  std::string trampoline;
  std::string mpi_library;    // libmsampi.so for the tasks; empty: there is none
  std::string system;         // directory of the system, for MSA_DIR; empty: not told
  std::string shm_directory;  // of this node; the job's directory is made in it
  std::string cookie;
  std::string srun = "srun";               // looked up in PATH
  std::string companion;                   // msa-companion; empty: beside the trampoline
  std::shared_ptr<const Machine> machine;  // of topology_xml; null: Create reads it
  Millis orphan_wait{5'000};  // a job daemon without a job leaves when noded stays away that long
  Millis peer_limit{10'000};  // to reach the other members
  // For msa-companion to cancel its job when this job daemon leaves: the node daemon waits 3 s in all.
  Millis companion_wait{2'000};
  Millis exit_sync{100};  // until the exit record is synced, if it is not acknowledged before
  Millis tls_delay{50};   // of an idle job daemon's preparation of TLS, which a job on one node never needs
};

// One job in its life. One thread, the loop's.
class Jobd final : private HeadOutlet {
 public:
  // What is the same for all job daemons of a node: the topology, libraries and what they read once. For a
  // process that forks them: starts no thread and opens nothing.
  static Status Preload(JobdOptions& options);
  // Does all that is slow before a job comes: PMIx server, TLS, topology, sockets. The error is ready for a
  // log.
  static Result<std::unique_ptr<Jobd>> Create(EventLoop& loop, JobdOptions options);
  ~Jobd() override;

  // SIGTERM: ends the job as a cancel does; without a job, leaves.
  void OnTerminate();
  // True once everything that it started or made is gone: the process may end.
  bool gone() const noexcept { return gone_; }

 private:
  Jobd(EventLoop& loop, JobdOptions options) : loop_(loop), options_(std::move(options)) {}
  Status Prepare();
  JobSocket::Handlers TaskHandlers();

  // noded
  wire::JobdHello Hello() const;
  void OnNodeFrame(wire::Frame frame);
  void OnLaunch(const wire::Frame& frame);
  Status Launch(wire::LaunchJob launch);
  MemberOptions MemberOptionsOf(const wire::LaunchJob& launch) const;
  std::string ScriptPath() const { return options_.directory + "/script"; }
  void OnControllerFrame(const wire::Frame& frame);
  void OnNodeDown(const std::string& why);
  void WarmTlsLater();
  void CheckOrphaned();

  // jobd_slurm.cc: tasks that Slurm starts
  void MakeSlurmTasks(const wire::LaunchJob& launch);
  void OnSlurmJoin(std::uint64_t client, SlurmJoin join);
  void OnSlurmEnd(const wire::Frame& frame);
  static bool IsForSlurmTasks(std::uint16_t type);
  void OnSlurmHead(const wire::Frame& frame);
  void OnCompanionOrder(const wire::Frame& frame);

  // peers
  void OnPeerFrame(std::uint32_t from, const wire::Frame& frame);
  void OnPeerLost(std::uint32_t index, const std::string& reason);
  void OnMembership(Epoch epoch, const std::vector<wire::Member>& members, const std::string& reason);
  Result<wire::TaskWelcome> Greet(const wire::TaskHello& hello) const;

  // the end
  void Fatal(const std::string& reason);
  void Leave(const std::string& reason);
  void KillAllAndVanish();
  void Vanish();

  // HeadOutlet
  void ToMember(std::uint32_t index, std::uint16_t type, std::uint64_t id, std::string payload) override;
  void ToController(std::uint16_t type, std::string payload) override;
  void ToSession(std::uint64_t session, std::uint16_t type, std::string payload) override;
  void EndSession(std::uint64_t session) override;
  TimerId After(Millis delay, std::function<void()> callback) override;
  void Cancel(TimerId timer) override;
  Instant WallTime() override;
  SteadyTime SteadyTimeNow() override;
  void SaveExitRecord(const std::string& payload) override;
  void MembersKnown(Epoch epoch, const std::vector<wire::Member>& members,
                    const std::string& reason) override;
  bool IsJoined(std::uint32_t member) override;
  void JobOver() override;
  void Log(const std::string& text) override;
  std::string NewSecret() override;
  Result<std::string> ListenLink(std::uint64_t link, const LinkTicket& ticket) override;
  Status OpenLink(std::uint64_t link, const LinkTicket& ticket, const std::string& address) override;
  void ToLink(std::uint64_t link, std::uint16_t type, std::uint64_t id, std::string payload) override;
  void CloseLink(std::uint64_t link) override;
  ForeignLinks& Links();

  EventLoop& loop_;
  JobdOptions options_;
  std::shared_ptr<const Machine> machine_;
  pmix::Network network_ = pmix::Network::kOrdinary;
  TlsContext tls_;
  std::unique_ptr<launch::TaskLauncher> launcher_;
  std::unique_ptr<pmix::PmixHost> host_;
  std::unique_ptr<JobSocket> job_socket_;
  std::unique_ptr<NamRelay> nam_;
  std::unique_ptr<NodeLink> link_;
  // With a job:
  std::optional<wire::LaunchJob> launch_;  // without secret and step
  Epoch epoch_;
  std::string shm_;
  std::unique_ptr<PeerMesh> mesh_;
  std::unique_ptr<SlurmTasks> slurm_;          // of a job whose tasks Slurm starts
  std::unique_ptr<SrunSteps> sruns_;           // the same
  std::unique_ptr<CompanionRuns> companions_;  // the same, at the head
  std::unique_ptr<Member> member_;
  std::unique_ptr<Head> head_;
  std::string address_;                  // where the mesh was told to listen
  std::unique_ptr<ForeignLinks> links_;  // at the head, once another job is linked
  bool leaving_ = false;
  bool vanishing_ = false;
  bool gone_ = false;
  TimerId orphan_timer_{};
  TimerId tls_timer_{};
};

}  // namespace msa::jobd
