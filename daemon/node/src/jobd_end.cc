// How job daemons end, and what is left to do then: sweep, exit record, directories.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/files.h"
#include "msa/adapters/process/sweep.h"

#include "jobd_manager.h"

namespace msa::node {
namespace {

// An exit record names at most 64 failed tasks.
constexpr std::size_t kMaxExitRecord = std::size_t{1} << 20;
// What a dead job daemon left is killed within this; a process in uninterruptible sleep may stay longer.
constexpr Millis kSweepLimit{2'000};
constexpr Millis kStrayRound{20};
constexpr std::size_t kLastWords = 2048;
constexpr Millis kDrainRound{5};
constexpr int kDrainRounds = 40;

// What there is to clear after a job daemon.
struct Remains {
  NodePaths paths;
  std::uint64_t seq = 0;
  JobKey key;
  uid_t uid = 0;
  std::string
      unseen_cookie;  // of one that was started by a node daemon which died before it could note the pid
  bool may_have_left = false;  // tasks
  bool keep_exit = false;
};

// Kills and removes; returns the exit record, if it is there and wanted, and then leaves it on disk. Any
// thread.
std::string Clear(const Remains& r) {
  const std::string directory = r.paths.run_directory(r.seq);
  if (!r.unseen_cookie.empty()) SweepEnvironment("MSA_JOBD_COOKIE=" + r.unseen_cookie, kSweepLimit);
  if (r.may_have_left) SweepLeftovers(directory + "/job.sock", kSweepLimit);
  std::string exit_record;
  if (r.keep_exit)
    if (auto text = ReadFile(directory + "/exit", kMaxExitRecord); text.ok()) exit_record = std::move(*text);
  std::vector<std::string> remove;
  if (r.key.job.value != 0) remove = {r.paths.peer_socket(r.uid, r.key), r.paths.shm_job(r.uid, r.key)};
  if (exit_record.empty()) remove.insert(remove.end(), {directory, r.paths.record(r.seq)});
  for (const std::string& path : remove)
    if (const Status removed = RemoveTree(path); !removed.ok()) spdlog::warn("{}", removed.message());
  return exit_record;
}

}  // namespace

void JobdManager::Adopt(JobdRecord record) {
  const std::uint64_t seq = record.seq;
  auto jobd = std::make_unique<Jobd>();
  jobd->record = std::move(record);
  Jobd& kept = *jobds_.emplace(seq, std::move(jobd)).first->second;
  const JobdRecord& r = kept.record;
  const bool same_boot = r.boot_id == boot_id_;
  const bool maybe_alive = same_boot && (r.pid == 0 || ProcessStart(r.pid) == r.process_start);
  if (maybe_alive && r.pid != 0) {
    auto process = OpenProcess(static_cast<pid_t>(r.pid));
    if (process.ok()) kept.process = std::move(*process);
  }
  if (!maybe_alive || (r.pid != 0 && (!kept.process.pidfd || !WatchProcess(kept).ok())))
    return OnProcessEnd(seq);
  if (r.job.value != 0) kept.phase = Phase::kAssigned;
  kept.hello_timer = loop_.After(options_.hello_timeout, [this, seq] {
    const auto late = jobds_.find(seq);
    if (late == jobds_.end()) return;
    spdlog::error("job daemon {} (pid {}) of an earlier node daemon did not connect within {} ms; killing it",
                  seq, late->second->record.pid, options_.hello_timeout.count());
    Kill(*late->second);
  });
}

void JobdManager::SweepOrphanedDirectory(std::uint64_t seq) {
  worker_.Run(
      [paths = options_.paths, seq] {
        const std::string directory = paths.run_directory(seq);
        SweepLeftovers(directory + "/job.sock", kSweepLimit);
        if (const Status removed = RemoveTree(directory); !removed.ok())
          spdlog::warn("{}", removed.message());
      },
      nullptr);
}

void JobdManager::QuitJobd(Jobd& jobd, const std::string& reason) {
  if (jobd.quitting || jobd.phase == Phase::kEnded) return;
  jobd.quitting = true;
  if (!jobd.channel && jobd.record.job.value == 0) return Kill(jobd);
  if (jobd.channel) jobd.channel->SendMessage(wire::JobdQuit{reason});
  const std::uint64_t seq = jobd.record.seq;
  jobd.kill_timer = loop_.After(options_.quit_timeout, [this, seq] {
    const auto late = jobds_.find(seq);
    if (late == jobds_.end()) return;
    spdlog::warn("job daemon {} (pid {}) ignored the request to leave; killing it", seq,
                 late->second->record.pid);
    Kill(*late->second);
  });
}

// The controller has the job's end on disk, or it would know the job: all that is left to do is the output.
void JobdManager::StayForOwner(Jobd& jobd) {
  spdlog::info("job {}.{}: has ended; its job daemon stays until its output is read", jobd.record.job,
               jobd.record.incarnation);
  Deliver(jobd.record.key(), {wire::ExitAck::kType, 0, 0, wire::Encode(wire::ExitAck{})});
}

void JobdManager::Kill(Jobd& jobd) {
  if (jobd.process.pidfd) {
    SignalProcess(jobd.process, SIGKILL);
    return;
  }
  // It was never seen to run: nothing but its directory can be there.
  const std::uint64_t seq = jobd.record.seq;
  loop_.Post([this, seq] { OnProcessEnd(seq); });
}

void JobdManager::OnChildSignal() {
  zygote_.Drain();
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    if (pid == zygote_.pid()) {
      zygote_.OnReaped();
      continue;
    }
    std::uint64_t ended = 0;
    for (auto& [seq, jobd] : jobds_) {
      if (!jobd->is_child || jobd->process.pid != pid || jobd->phase == Phase::kEnded) continue;
      jobd->wait_status = status;
      ended = seq;
    }
    if (ended != 0) OnProcessEnd(ended);
  }
}

void JobdManager::OnProcessEnd(std::uint64_t seq) {
  const auto it = jobds_.find(seq);
  if (it == jobds_.end() || it->second->phase == Phase::kEnded) return;
  Jobd& jobd = *it->second;
  const bool had_hello = jobd.phase != Phase::kStarting || !jobd.is_child;
  jobd.phase = Phase::kEnded;
  loop_.Cancel(jobd.hello_timer);
  loop_.Cancel(jobd.kill_timer);
  if (jobd.process.pidfd) loop_.Unwatch(jobd.process.pidfd.get());
  if (jobd.is_child && !jobd.wait_status) jobd.wait_status = ReapChild(jobd.process.pid);
  const JobdRecord& record = jobd.record;
  GoneJob gone{record.key(), EndReason(jobd), false, {}, record.member_index, record.is_head};
  const bool exited_zero =
      jobd.wait_status && WIFEXITED(*jobd.wait_status) && WEXITSTATUS(*jobd.wait_status) == 0;
  gone.clean = jobd.quitting || jobd.quit_reason || record.exit_acked || exited_zero;
  gone.acknowledged = record.exit_acked && !jobd.quitting;
  if (record.job.value == 0 && !jobd.quitting && closing_ == Closing::kNo) {
    const UserIdentity user = record.user;
    const std::string why = EndReason(jobd) + LastWords(jobd);
    if (had_hello)
      spdlog::warn("{}", why);
    else
      StartFailed(user, why);
  }
  if (record.job.value != 0 && handlers_.on_ended) handlers_.on_ended(gone.key, gone.reason);
  if (!exited_zero && jobd.is_child) KillStrays(kSweepLimit);
  // Its own end with code 0 means that it has killed and reaped all that it had started.
  const bool may_have_left = !exited_zero || !jobd.is_child;
  auto exit_record = std::make_shared<std::string>();
  const bool keep_exit = record.job.value != 0 && record.is_head && !record.exit_acked && !jobd.quitting;
  Remains remains{.paths = options_.paths,
                  .seq = seq,
                  .key = record.key(),
                  .uid = record.user.uid,
                  .unseen_cookie = jobd.process.pidfd || record.pid != 0 ? "" : record.cookie,
                  .may_have_left = may_have_left,
                  .keep_exit = keep_exit};
  worker_.Run([remains = std::move(remains), exit_record] { *exit_record = Clear(remains); },
              [this, seq, gone = std::move(gone), exit_record]() mutable {
                gone.exit_record = std::move(*exit_record);
                FinishEnd(seq, std::move(gone), kDrainRounds);
              });
}

void JobdManager::FinishEnd(std::uint64_t seq, GoneJob gone, int rounds_left) {
  const auto it = jobds_.find(seq);
  if (it == jobds_.end()) return;
  // Its last messages come before the news of its end; the end of the stream closes the channel.
  if (it->second->channel && rounds_left > 0) {
    loop_.After(kDrainRound, [this, seq, gone = std::move(gone), rounds_left]() mutable {
      FinishEnd(seq, std::move(gone), rounds_left - 1);
    });
    return;
  }
  const UserIdentity user = it->second->record.user;
  jobds_.erase(it);
  RemoveShm(user);
  if (gone.key.job.value != 0) {
    if (!gone.exit_record.empty()) exit_kept_[gone.key] = seq;
    ReportGone(std::move(gone));
  }
  CheckClosed();
  Balance();
}

// The last job daemon of another user takes his directories along. One that starts makes them in this thread.
void JobdManager::RemoveShm(const UserIdentity& user) {
  const auto is_his = [&](const auto& entry) { return entry.second->record.user.uid == user.uid; };
  if (owner_is_self(user) || std::any_of(jobds_.begin(), jobds_.end(), is_his)) return;
  ::rmdir(options_.paths.shm_node(user.uid).c_str());
  ::rmdir(options_.paths.shm_root(user.uid).c_str());
}

void JobdManager::KillStrays(Millis left) {
  const int killed = KillStrayChildren([this](pid_t pid) {
    // A job daemon is reported before it becomes our child: all that were listed are known after this.
    zygote_.Drain();
    return pid == zygote_.pid() || std::any_of(jobds_.begin(), jobds_.end(), [&](const auto& entry) {
             const Jobd& jobd = *entry.second;
             return jobd.is_child && jobd.phase != Phase::kEnded && jobd.process.pid == pid;
           });
  });
  OnChildSignal();
  // Once more after the last that was found: its own children come to us when it is reaped.
  if (killed > 0 && left > kStrayRound)
    loop_.After(kStrayRound, [this, left] { KillStrays(left - kStrayRound); });
}

std::string JobdManager::EndReason(const Jobd& jobd) const {
  const JobdRecord& record = jobd.record;
  const std::string who =
      record.job.value != 0
          ? fmt::format("job daemon of job {} on {}", record.job, options_.node)
          : fmt::format("job daemon {} (pid {}) on {}", record.seq, record.pid, options_.node);
  if (jobd.wait_status) return fmt::format("{} {}", who, DescribeWaitStatus(*jobd.wait_status));
  if (jobd.process.pidfd) return who + " has ended";
  return who + " ended while the node daemon was away";
}

std::string JobdManager::LastWords(const Jobd& jobd) const {
  const std::string path = options_.paths.jobd_log();
  struct stat log {};
  if (::stat(path.c_str(), &log) != 0 || static_cast<std::size_t>(log.st_size) <= jobd.log_offset)
    return fmt::format("; it wrote nothing to '{}'", path);
  std::string own =
      ReadTail(path, std::min(static_cast<std::size_t>(log.st_size) - jobd.log_offset, kLastWords));
  while (!own.empty() && (own.back() == '\n' || own.back() == ' ')) own.pop_back();
  std::replace(own.begin(), own.end(), '\n', ' ');
  return fmt::format("; it wrote: {}", own);
}

}  // namespace msa::node
