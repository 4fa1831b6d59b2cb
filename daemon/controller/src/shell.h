#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "msa/adapters/grpc/node_messages.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/job/controller.h"
#include "msa/ports/job_store.h"

namespace msa {

// A registered node's session, as the shell sees it. Calls never block.
class NodeLink {
 public:
  virtual ~NodeLink() = default;
  virtual void Send(const node_control::Registered& command) = 0;
  virtual void Send(node_control::StartJob command) = 0;
  virtual void Send(node_control::ToJobd command) = 0;
  virtual void Send(const node_control::QuitJob& command) = 0;
  virtual void Send(node_control::ToNamd command) = 0;
  virtual void Send(node_control::ToSlurm command) = 0;
  // Ends the session after what was sent.
  virtual void Close(Status why) = 0;
};

// Around the pure Controller: takes events, commits what comes out, and only then replies, sends and tells
// watchers. A Submit that cannot be committed is undone and answered with the error; so are those that shared
// its commit. Anything else that
// cannot is held and tried again each second; meanwhile requests are refused with the store's error, but for
// Cancel, whose kill goes out, those of UsesOnly, and removals of regions, whose memory is freed; what nodes
// report waits in order. One thread, the loop's, for all members
// and all callbacks.
class Shell {
 public:
  struct Options {
    std::string system_name;
    Millis heartbeat_interval{1000};
    Millis commit_retry{1000};
    bool slurm = false;  // Slurm schedules: node daemons listen to its plugin
    // Whether the store has room, asked before a region is made or changed: what is refused then needs not be
    // held. Empty: not asked.
    std::function<Status()> check_room = {};
    // Empty, or without a process: what is asked is asked again when there is one.
    std::function<void(const effect::ToSlurmAgent&)> to_slurm_agent = {};
  };
  // `job` of Submit and Cancel. Called once, unless the shell is destroyed first.
  using ReplyCallback = std::function<void(const Status& status, JobId job)>;
  // The present state of a watched job. The view is valid during the call.
  using WatchCallback = std::function<void(const JobView& job)>;
  using WatchId = std::uint64_t;
  // Called once, unless the shell is destroyed first. The body is valid during the call, and meaningless with
  // an error.
  using NamReplyCallback = std::function<void(const Status& status, const NamReplyBody& body)>;
  struct Submission {
    event::Submit submit;
    ReplyCallback reply;
  };

  // All three outlive the shell.
  Shell(EventLoop& loop, Controller& controller, JobStore& store, Options options);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Loads what the store holds and takes it up. Once, first. Errors of JobStore::LoadAll, Controller::Restore
  // and of the commit.
  Status Start();

  // An event without a reply. Reports of job daemons are taken up from the loop, those that came together
  // with one commit.
  void Handle(Event event);
  // Submit, Cancel, SignalJob, Drain, Resume: the reply tag is filled in here.
  template <class RequestEvent>
  void Request(RequestEvent request, ReplyCallback reply) {
    request.reply = Expect(std::move(reply));
    Handle(Event(std::move(request)));
  }

  // A request about network attached memory; the reply tag is filled in here.
  void CallNam(event::NamCall call, NamReplyCallback reply);

  // Submissions that came together: they share a commit, so each costs less; if it fails, these are refused.
  void RequestAll(std::vector<Submission> submissions);

  // `callback` is told each change from now on, and the present state at once. kNotFound: no such job.
  Result<WatchId> Watch(JobId job, WatchCallback callback);
  void Unwatch(WatchId watch);
  // `ended` is called once when the lease has ended, unless it is unwatched first (0: nothing).
  WatchId WatchLease(LeaseId lease, std::function<void()> ended);
  void UnwatchLease(WatchId watch);

  // A node's new session, before its NodeRegistered. It replaces an older one of the node, which is closed.
  void AddLink(const std::string& node, SessionId session, std::shared_ptr<NodeLink> link);
  // The session's stream is over: the link is dropped and, if it was the node's newest, NodeLost handled.
  void DropLink(const std::string& node, SessionId session);

  // From here on nothing is started, lost streams mean nothing, and requests are answered with kUnavailable:
  // the process is about to end.
  void Stop();

  const Controller& controller() const { return controller_; }
  const JobStore& store() const { return store_; }
  const Options& options() const { return options_; }

 private:
  struct Link {
    SessionId session = 0;
    std::shared_ptr<NodeLink> link;
    bool registered = false;  // commands may be sent
  };
  struct Waiting {
    Event event;
    Instant came;
  };
  struct Watcher {
    JobId job;
    WatchCallback callback;
  };

  ReplyTag Expect(ReplyCallback reply);
  void Answer(ReplyTag tag, const Status& status, JobId job);
  void AnswerNam(ReplyTag tag, const Status& status, const NamReplyBody& body);
  void Accept(Event event);
  void ProcessWaiting();
  void ProcessGroup();
  std::vector<Effect> Step(Event event, Instant at);
  // Of a group that could not be committed: kept, and tried again.
  void HoldBack(std::vector<Effect> effects, const Status& why);
  void Hold(Event event);
  Status Commit(const std::vector<Effect>& effects);
  // Of a request that needs nothing written: the answers go, and what is left of `effects` is held.
  void TellAsker(std::vector<Effect>& effects);
  // Of a removal: the memory goes now, the record when it can be written. A namd frees once.
  void FreeNow(std::vector<Effect>& effects);
  // Steps, and adds what comes out to what is held.
  void HoldStep(Event event);
  void Refuse(const Event& event, const Status& why);
  // Of a request that was taken while nothing can be written: ends tasks at once, and tells the caller.
  void AnswerUnwritten(std::vector<Effect>& effects);
  // Of held effects: who waits for them is told, too.
  void AnswerNamUnwritten(std::vector<Effect>& effects);
  void UndoSubmits(const std::vector<Effect>& effects, const Status& why);
  void RetryCommit();
  void Execute(std::vector<Effect> effects);
  void SchedulePass();
  void ArmTick();
  Link* FindLink(const std::string& node);
  void Notify(JobId job);

  void Do(const effect::SendStartJob& effect);
  void Do(const effect::SendToJobd& effect);
  void Do(const effect::SendQuitJob& effect);
  void Do(const effect::Registered& effect);
  void Do(const effect::CloseSession& effect);
  void Do(const effect::JobChanged& effect);
  void Do(const effect::NeedSchedulePass& effect);
  void Do(const effect::Reply& effect);
  void Do(const effect::WakeAt& effect);
  void Do(const effect::Log& effect);
  void Do(const effect::SendToNamd& effect);
  void Do(const effect::NamReply& effect);
  void Do(const effect::SlurmVerdict& effect);
  void Do(const effect::ToSlurmAgent& effect) {
    if (options_.to_slurm_agent) options_.to_slurm_agent(effect);
  }
  // The store's part was done before.
  void Do(const effect::PutJob&) {}
  void Do(const effect::DeleteJob&) {}
  void Do(const effect::PutNode&) {}
  void Do(const effect::PutGrant&) {}
  void Do(const effect::DeleteGrant&) {}
  void Do(const nam_effect::PutRegion&) {}
  void Do(const nam_effect::DeleteRegion&) {}
  void Do(const nam_effect::PutLease&) {}
  void Do(const nam_effect::DeleteLease& effect);

  EventLoop& loop_;
  Controller& controller_;
  JobStore& store_;
  const Options options_;
  bool stopped_ = false;

  ReplyTag next_tag_ = 1;
  std::unordered_map<ReplyTag, ReplyCallback> replies_;
  std::unordered_map<ReplyTag, NamReplyCallback> nam_replies_;
  WatchId next_watch_ = 1;
  std::map<WatchId, Watcher> watchers_;
  std::map<JobId, std::set<WatchId>> watched_jobs_;
  struct LeaseWatch {
    LeaseId lease;
    std::function<void()> ended;
  };
  std::map<WatchId, LeaseWatch> lease_watches_;  // few: of rpcs that are open
  std::unordered_map<std::string, Link> links_;

  // Events that came while one was processed (a callback asked for more) or while a commit is held.
  bool busy_ = false;
  bool reports_posted_ = false;
  std::deque<Waiting> waiting_;
  Instant last_now_;                                             // that the controller was given
  std::map<std::string, event::NodeHeartbeat> held_heartbeats_;  // the newest of each node
  std::optional<std::vector<Effect>> held_;                      // not committed yet
  Status trouble_;                                               // why
  TimerId retry_timer_{};

  bool pass_wanted_ = false;
  SteadyTime next_pass_{};
  TimerId pass_timer_{};
  std::set<Instant> wakes_;
  std::optional<Instant> armed_;
  TimerId tick_timer_{};
  // Timers and posted work of a shell that is gone do nothing.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace msa
