#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/grpc/node_messages.h"
#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/adapters/process/worker.h"
#include "msa/base/messages.h"

#include "jobd_record.h"
#include "node_paths.h"
#include "pool_policy.h"
#include "zygote.h"

namespace msa::node {

// A job whose job daemon on this node is gone, with everything it had started.
struct GoneJob {
  JobKey key;
  std::string reason;
  bool clean = false;       // it left because it was told to, or after its job had ended
  std::string exit_record;  // payload of JobExit; empty: it left none, or the controller has it
  std::uint32_t member_index = 0;
  bool is_head = false;
  bool acknowledged = false;  // it left after ExitAck: nothing of it is news to the controller
};

// The job daemons of this node: the pool of warm ones, those that have jobs, and those that an earlier node
// daemon left. One thread, the loop's; the manager outlives no callback that it posted (destroy it on the
// loop's thread after Run has returned).
class JobdManager {
 public:
  struct Options {
    std::string node;
    NodePaths paths;
    std::string jobd;        // path of msa-jobd
    std::string trampoline;  // path of msa-exec
    std::string run_as;      // path of this executable: starts job daemons for other users
    PoolPolicy::Options pool;
    Millis hello_timeout{10'000};  // from start (or from our restart) to JobdHello
    Millis quit_timeout{3'000};    // from JobdQuit to SIGKILL
    Millis min_backoff{100};       // between failed starts, doubling
    Millis max_backoff{30'000};
    std::uint32_t attempts = 3;  // starts of a job daemon for one job before the job fails
  };
  struct Handlers {
    std::function<void(const JobKey&, wire::Frame)> on_report;         // for the controller
    std::function<void(const JobKey&, wire::Frame)> on_session_frame;  // frame.id: the session
    std::function<void(const JobKey&)> on_here;                        // the job is known here: Deliver works
    std::function<void(const JobKey&, Status)> on_sessions_lost;  // its connection broke: sessions are void
    std::function<void(const JobKey&)> on_drained;                // congested() turned false
    // Its process has ended; what it has left behind is killed next. Optional.
    std::function<void(const JobKey&, const std::string& reason)> on_ended;
    std::function<void(GoneJob)> on_gone;  // last word on a job
  };
  // What is known of a job here.
  struct Info {
    UserIdentity user;
    bool is_head = false;
  };

  JobdManager(EventLoop& loop, Options options, Handlers handlers);
  ~JobdManager();
  JobdManager(const JobdManager&) = delete;
  JobdManager& operator=(const JobdManager&) = delete;

  // Listens, takes over what an earlier node daemon left, fills the pool. kAlreadyExists: another node daemon
  // listens; kInvalidArgument: path too long; kNotFound, kPermissionDenied: directories.
  Status Start();

  // Gives a job to a warm job daemon, or to one started for it. Idempotent by (job, incarnation). Failures:
  // on_gone.
  void Assign(node_control::StartJob start);
  // A job of another user's is about to come, most likely: a job daemon for it is started now, and leaves
  // after the pool's idle time if none comes. Not as root, or without a pool: nothing.
  void Expect(const UserIdentity& user);
  // To the job's job daemon, in order, also before it is connected. Unknown jobs are ignored.
  void Deliver(const JobKey& key, wire::Frame frame);
  // The controller has no use for the job here. Its job daemon leaves, killed after quit_timeout; a head
  // whose job has ended stays as long as it keeps output for its owner. Of a head that an earlier node daemon
  // left and that has not connected yet, its JobdHello decides. Unknown jobs are ignored.
  void QuitUnlessEnded(const JobKey& key, const std::string& reason);
  // The controller has the job's end on disk: the exit record is not needed any more.
  void ForgetExit(const JobKey& key);
  // All leave; `done` when none is left.
  void QuitAll(const std::string& reason, std::function<void()> done);
  // Those without a job leave, jobs stay; `done` when none of them is left.
  void QuitWarm(const std::string& reason, std::function<void()> done);
  // A child ended, as SIGCHLD says: reaps whatever there is.
  void OnChildSignal();

  std::vector<node_control::JobdState> States() const;
  std::optional<Info> Find(const JobKey& key) const;
  // What the job's tasks connect to, once its job daemon has the job; none: it has it not, or leaves.
  std::optional<std::string> JobSocket(const JobKey& key) const;
  // The newest incarnation of a job here.
  std::optional<JobKey> FindJob(JobId job) const;
  // More than FrameChannel::kHighWater waits for the job daemon: senders should pause until on_drained.
  bool congested(const JobKey& key) const;
  // Of this process's own user, ready for a job.
  std::uint32_t warm() const;

 private:
  enum class Phase { kStarting, kWarm, kAssigned, kEnded };
  struct Jobd {
    JobdRecord record;
    Phase phase = Phase::kStarting;
    ProcessHandle process;
    bool is_child = false;
    bool ordered = false;  // of the zygote, which has not reported it yet
    bool quitting = false;
    std::optional<std::string> quit_reason;  // of QuitUnlessEnded, until it is connected
    bool job_ended = false;                  // told by JobdHello or by its JobExit
    std::optional<int> wait_status;
    std::unique_ptr<FrameChannel> channel;
    std::vector<wire::Frame> undelivered;  // until it is connected
    std::size_t log_offset = 0;            // of the job daemons' log at its start
    TimerId hello_timer{};
    TimerId kill_timer{};
  };
  // A job without a job daemon yet.
  struct Waiting {
    node_control::StartJob start;
    LaunchHeader header;
    std::uint32_t attempts = 0;
    std::string last_failure;
    std::vector<wire::Frame> undelivered;
  };
  // A user other than our own whose next job is worth a warm job daemon.
  struct Expected {
    UserIdentity user;
    SteadyTime from;   // no start before
    SteadyTime until;  // then it leaves
  };
  // A connection that has not said hello.
  struct Stranger {
    std::unique_ptr<FrameChannel> channel;
    TimerId timer{};
  };

  Status Listen();
  void Accept();
  void OnStrangerFrame(std::uint64_t stranger, const wire::Frame& frame);
  Status Welcome(Stranger stranger, const wire::JobdHello& hello);
  Status Recognise(Jobd& jobd, const wire::JobdHello& hello, pid_t pid, const UserIdentity& user);
  void OnConnected(Jobd& jobd, const wire::JobdHello& hello);
  void OnFrame(std::uint64_t seq, wire::Frame frame);
  void OnChannelClosed(std::uint64_t seq, const Status& why);

  void Adopt(JobdRecord record);
  void SweepOrphanedDirectory(std::uint64_t seq);

  void Balance();
  void ArmBalance();
  std::uint32_t WantedStarts(const UserIdentity& user) const;
  void ExpectUntil(const UserIdentity& user, SteadyTime from);
  void ShrinkPool();
  void DismissUnexpected(SteadyTime now);
  void RemoveShm(const UserIdentity& user);
  Status StartJobd(const UserIdentity& user);
  // By the zygote where it serves the user, else by exec.
  Status StartProcess(Jobd& jobd);
  Result<ProcessHandle> SpawnJobd(const JobdRecord& record);
  std::vector<std::string> CommonWords(uid_t uid) const;
  Zygote::Options ZygoteOptions() const;
  Zygote::Handlers ZygoteHandlers();
  void OnForked(std::uint64_t seq, pid_t pid);
  void DropUnborn(std::uint64_t seq);
  void NoteProcess(Jobd& jobd, ProcessHandle process);
  void StartFailed(const UserIdentity& user, const std::string& why);
  void Give(Jobd& jobd, Waiting waiting);
  Status WatchProcess(Jobd& jobd);

  void OnProcessEnd(std::uint64_t seq);
  void QuitJobd(Jobd& jobd, const std::string& reason);
  void StayForOwner(Jobd& jobd);
  void Kill(Jobd& jobd);
  void FinishEnd(std::uint64_t seq, GoneJob gone, int rounds_left);
  void CheckClosed();
  void KillStrays(Millis left);
  std::string EndReason(const Jobd& jobd) const;
  std::string LastWords(const Jobd& jobd) const;
  void ReportGone(GoneJob gone);

  Jobd* FindJobd(const JobKey& key);
  const Jobd* FindJobd(const JobKey& key) const;
  bool owner_is_self(const UserIdentity& user) const;

  EventLoop& loop_;
  Options options_;
  Handlers handlers_;
  UniqueFd listener_;
  std::map<std::uint64_t, std::unique_ptr<Jobd>> jobds_;  // by seq
  std::map<JobKey, Waiting> waiting_;
  std::map<JobKey, std::uint64_t> exit_kept_;  // seq whose exit record waits for the controller
  std::map<std::uint64_t, Stranger> strangers_;
  std::vector<Expected> expected_;  // the oldest first
  std::uint64_t next_seq_ = 1;
  std::uint64_t next_stranger_ = 1;
  std::uint64_t last_welcomed_ = 0;  // seq of the hello just handled, 0: refused
  std::uint32_t failures_ = 0;       // starts in a row
  PoolPolicy pool_;
  SteadyTime backoff_until_{};  // no start at all before
  TimerId balance_timer_{};
  enum class Closing { kNo, kWarm, kAll } closing_ = Closing::kNo;
  std::function<void()> all_gone_;
  std::string boot_id_;
  Zygote zygote_;
  Worker worker_;  // last: its thread ends before the rest goes
};

}  // namespace msa::node
