#pragma once
// Plays controller and node daemons for real msa-jobd processes, one for each logical node, on one event
// loop.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/companion_messages.h"
#include "msa/base/messages.h"
#include "msa/base/nam_relay.h"
#include "msa/support/scratch_directory.h"

namespace msa::jobd {

struct NodeSpec {
  std::string name;
  std::string module = "cluster";
  std::uint32_t module_id = 0;
  std::uint16_t cores = 4;
  bool spare = false;  // not in the job at first: for grants
};

struct RunSpec {
  std::vector<wire::App> apps;         // component is set
  std::vector<std::string> rank_node;  // node of each rank; empty: all on the first
  wire::StdioSpec stdio;
  wire::KillPolicy kill_policy = wire::KillPolicy::kMpi;
  bool interactive = true;
  bool attach = true;  // the owner's session is opened with the launch
  bool wants_stdin = false;
  std::string cwd;               // empty: the harness's directory
  std::vector<std::string> env;  // besides PATH and HOME
  // kBatch: `script` runs on the first node, its arguments are the first app's; kAlloc: no task at all. In
  // both each run of nodes of one module is a component, with a task for each core unless `component_tasks`
  // says so.
  wire::JobMode mode = wire::JobMode::kStep;
  std::string script;
  std::vector<std::uint32_t> component_tasks;
  bool slurms = false;  // its tasks come by themselves, see SlurmStep
};

class JobdHarness {
 public:
  explicit JobdHarness(std::vector<NodeSpec> nodes);
  ~JobdHarness();
  JobdHarness(const JobdHarness&) = delete;
  JobdHarness& operator=(const JobdHarness&) = delete;

  // Starts a job daemon for each node and waits until all are warm.
  void WarmUp();
  void Launch(const RunSpec& spec);
  // Sends the launch once more, as a controller does that was restarted.
  void LaunchAgain();
  // WarmUp, Launch, then until SessionEnd (if attached), JobExit and the end of every job daemon.
  void Run(const RunSpec& spec);
  // Runs the loop until `done` holds; false after `limit`.
  bool Until(const std::function<bool()>& done, std::chrono::seconds limit = std::chrono::seconds(60));
  bool UntilOver(std::chrono::seconds limit = std::chrono::seconds(60));

  // A session as msactl has it; frames of it are recorded in output, notices and end. Returns its id.
  std::uint64_t Attach(const wire::AttachOpen& open);
  // A session of a step inside the job.
  std::uint64_t OpenStep(const wire::StepOpen& open);
  void ToSession(std::uint64_t session, std::uint16_t type, const std::string& payload);
  template <class M>
  void ToSession(std::uint64_t session, const M& message) {
    ToSession(session, M::kType, wire::Encode(message));
  }
  template <class M>
  void ToHead(const M& message) {
    nodes_.at(head_)->channel->SendMessage(message);
  }
  template <class M>
  void ToNode(const std::string& node, const M& message) {
    nodes_.at(node)->channel->SendMessage(message);
  }
  void CloseSession(std::uint64_t session);
  // The node daemon dies, and comes back.
  void KillNoded(const std::string& node);
  void ReviveNoded(const std::string& node);
  // The job daemon has said hello to the present node daemon.
  bool Adopted(const std::string& node) const { return nodes_.at(node)->hello.has_value(); }
  void KillJobd(const std::string& node, int signal);
  bool JobdAlive(const std::string& node) const;
  pid_t JobdPid(const std::string& node) const;
  // Job daemons that have ended otherwise than with code 0, a line each.
  const std::string& BadEnds() const { return bad_ends_; }
  // What the job daemons have said.
  std::string Logs() const;
  // The membership without this node, as when it went down.
  void DropNode(const std::string& node, const std::string& reason);

  std::string Out(std::uint32_t rank, std::uint32_t spawn = 0) const;
  std::string Err(std::uint32_t rank, std::uint32_t spawn = 0) const;
  std::string AllOut() const;
  std::string Notices() const;
  const std::string& directory() const { return directory_.path(); }
  EventLoop& loop() { return *loop_; }
  std::string RunDirectory(const std::string& node) const;
  std::string ShmDirectory() const;

  // Behaviour
  bool ack_output = true;
  bool ack_exit = true;
  // What was seen
  bool started = false;
  std::optional<wire::JobExit> exit;
  std::optional<wire::SessionEnd> end;
  std::map<std::uint64_t, wire::SessionEnd> ends;  // by session
  std::map<std::uint64_t, std::string> waits;      // what StepStatus said
  std::set<std::uint64_t> running;
  std::vector<wire::NamespaceReport> reports;
  std::vector<wire::GrantAsk> asks;
  std::vector<std::uint64_t> releases;
  std::vector<wire::MemberFailed> failures;
  std::vector<wire::CompanionReport> companions;
  std::vector<wire::Output> records;
  std::vector<wire::Notice> notices;
  std::vector<wire::InputAck> input_acks;
  std::vector<wire::NamFromTask> nam_asks;
  std::vector<wire::NamTaskGone> nam_gone;
  std::set<std::uint64_t> ended_sessions;
  std::uint64_t last_seq = 0;
  std::chrono::steady_clock::time_point launched_at;
  std::chrono::steady_clock::time_point started_at;

 private:
  struct Node {
    NodeSpec spec;
    std::uint32_t index = 0;
    pid_t pid = -1;
    std::string socket;
    std::string run_directory;
    UniqueFd listener;
    std::unique_ptr<FrameChannel> channel;
    std::optional<wire::JobdHello> hello;
    std::uint64_t grant = 0;
    bool in_job = false;
  };

  void MakeComponents(const RunSpec& spec);
  void StartJobd(Node& node);
  void Listen(Node& node);
  void Accept(Node& node);
  void OnFrame(Node& node, const wire::Frame& frame);
  void OnSessionFrame(const wire::Frame& frame);
  void OnGrantAsk(const wire::GrantAsk& ask);
  void OnRelease(std::uint64_t grant);
  wire::Member MemberOf(const Node& node) const;
  std::vector<wire::Member> Members() const;
  void TellMembers(const std::string& reason);
  void Reap();

  support::ScratchDirectory directory_;
  support::ScratchDirectory shm_{"/dev/shm"};
  std::unique_ptr<EventLoop> loop_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<std::string> order_;
  std::string head_;
  wire::LaunchJob launch_;
  std::uint64_t epoch_ = 1;
  std::uint32_t next_index_ = 0;
  std::uint32_t starts_ = 0;
  std::uint64_t next_session_ = 1;
  std::uint64_t next_grant_ = 1;
  std::set<std::uint64_t> answered_;
  std::string bad_ends_;
};

}  // namespace msa::jobd
