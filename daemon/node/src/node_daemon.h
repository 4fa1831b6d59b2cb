#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "msa/adapters/grpc/controller_session.h"
#include "msa/adapters/hwloc/machine.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/topology/topology.h"

#include "controller_door.h"
#include "jobd_manager.h"
#include "nam_link.h"
#include "options.h"
#include "report_log.h"
#include "session_relay.h"
#include "slurm_steps.h"
#include "unsent_reports.h"

namespace msa::node {

// What the controller is told of a node: its description in the topology file, filled up by what was
// measured.
node_control::NodeDescription DescribeNode(const NodeSpec& spec, const MachineDescription& machine);

// One node daemon: joins the controller, the job daemons and the attached clients. One thread, the loop's.
class NodeDaemon {
 public:
  struct Options {
    node_control::NodeDescription description;
    NodePaths paths;
    std::string controller;  // "unix:PATH" or "tls:HOST:PORT"
    JobdManager::Options jobds;
    SessionRelay::Options sessions;
    std::optional<FarOptions> far;  // with tls
    // For Slurm's plugin; empty: the one that it looks for, as soon as a controller says that Slurm
    // schedules.
    std::string plugin_socket;
  };
  NodeDaemon(EventLoop& loop, Options options);
  ~NodeDaemon();
  NodeDaemon(const NodeDaemon&) = delete;
  NodeDaemon& operator=(const NodeDaemon&) = delete;

  // Opens the sockets, takes over job daemons, connects. Errors as JobdManager::Start.
  Status Start();

  enum class End { kLeaveJobs, kQuitJobs };
  // Ends the pool, and with kQuitJobs all jobs here; then `done`.
  void Stop(End end, std::function<void()> done);
  // SIGCHLD arrived.
  void OnChildSignal() { jobds_.OnChildSignal(); }

 private:
  void OnRegistered(node_control::Registered registered);
  void OnToJobd(node_control::ToJobd command);
  void OnQuitJob(const node_control::QuitJob& command);
  void OnReport(const JobKey& key, wire::Frame frame);
  void OnGone(GoneJob gone);
  void SendGone(const GoneJob& gone);
  Status OpenDoor();
  Status ListenToNamd();
  Status ListenToPlugin(const std::string& path);
  void OpenPluginSocket();
  JobdManager::Handlers JobdHandlers();
  ControllerSession::Handlers ControllerHandlers();
  // What the job daemons said since the loop's last turn.
  void FlushReports();
  void SendHeartbeat();
  node_control::RegisterNode MakeRegistration();

  EventLoop& loop_;
  Options options_;
  JobdManager jobds_;
  SessionRelay sessions_;
  ReportLog reports_;
  UnsentReports unsent_;
  std::unique_ptr<NamLink> nam_;       // of a node with network attached memory
  std::unique_ptr<SlurmSteps> slurm_;  // of a node whose jobs Slurm schedules
  std::string attach_address_;
  std::unique_ptr<ControllerDoor> door_;  // with tls; gives connections to sessions_
  std::unique_ptr<ControllerSession> controller_;
  Millis heartbeat_interval_{1000};
  TimerId heartbeat_timer_{};
  TimerId plugin_timer_{};
  std::string last_refusal_;  // logged once, not at every attempt
};

}  // namespace msa::node
