// How job daemons are started: for the pool, and for jobs that found it empty.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/files.h"
#include "msa/base/fault.h"

#include "jobd_manager.h"

namespace msa::node {
namespace {

UserIdentity Self() { return {::geteuid(), ::getegid()}; }

}  // namespace

std::uint32_t JobdManager::WantedStarts(const UserIdentity& user) const {
  const SteadyTime now = SteadyNow();
  if (now < backoff_until_) return 0;
  std::uint32_t wanted = 0;
  for (const auto& [key, waiting] : waiting_)
    if (waiting.start.user.uid == user.uid) ++wanted;
  // One at a time for the pool: a launch on the other cores matters more than a full pool.
  const std::uint32_t ready = warm();
  if (wanted == 0 && owner_is_self(user) && ready < pool_.Target(now) && now >= pool_.RefillAfter(ready))
    wanted = 1;
  if (wanted == 0 && !owner_is_self(user))
    wanted =
        static_cast<std::uint32_t>(std::any_of(expected_.begin(), expected_.end(), [&](const Expected& one) {
          return one.user.uid == user.uid && one.from <= now && now < one.until;
        }));
  for (const auto& [seq, jobd] : jobds_) {
    const bool comes =
        (jobd->phase == Phase::kStarting || (jobd->phase == Phase::kWarm && !owner_is_self(user))) &&
        jobd->record.job.value == 0 && !jobd->quitting;
    if (comes && jobd->record.user.uid == user.uid && wanted > 0) --wanted;
  }
  return wanted;
}

void JobdManager::Expect(const UserIdentity& user) {
  if (owner_is_self(user) || ::geteuid() != 0 || options_.pool.least == 0 || closing_ != Closing::kNo) return;
  ExpectUntil(user, SteadyNow());
  Balance();
}

void JobdManager::ExpectUntil(const UserIdentity& user, SteadyTime from) {
  std::erase_if(expected_, [&](const Expected& one) { return one.user.uid == user.uid; });
  if (options_.pool.least == 0) return;
  // As many users as the pool may have job daemons.
  if (expected_.size() >= options_.pool.most) expected_.erase(expected_.begin());
  expected_.push_back({user, from, from + options_.pool.idle});
}

// Warm job daemons of users whose jobs have stopped coming.
void JobdManager::DismissUnexpected(SteadyTime now) {
  std::erase_if(expected_, [&](const Expected& one) { return one.until <= now; });
  for (auto& [seq, jobd] : jobds_) {
    const UserIdentity& user = jobd->record.user;
    if (jobd->phase != Phase::kWarm || jobd->quitting || owner_is_self(user)) continue;
    if (std::none_of(expected_.begin(), expected_.end(),
                     [&](const Expected& one) { return one.user.uid == user.uid; }))
      QuitJobd(*jobd, "no job of its user has come");
  }
}

// After a burst.
void JobdManager::ShrinkPool() {
  const std::uint32_t ready = warm();
  std::uint32_t surplus = ready - std::min(ready, pool_.Target(SteadyNow()));
  for (auto& [seq, jobd] : jobds_) {
    if (surplus == 0) return;
    if (jobd->phase != Phase::kWarm || jobd->quitting || !owner_is_self(jobd->record.user)) continue;
    QuitJobd(*jobd, "the pool of job daemons shrinks");
    --surplus;
  }
}

void JobdManager::Balance() {
  if (closing_ != Closing::kNo) return;
  ShrinkPool();
  DismissUnexpected(SteadyNow());
  std::vector<UserIdentity> users{Self()};
  const auto add = [&](const UserIdentity& user) {
    if (std::none_of(users.begin(), users.end(), [&](const auto& u) { return u.uid == user.uid; }))
      users.push_back(user);
  };
  for (const auto& entry : waiting_) add(entry.second.start.user);
  for (const Expected& one : expected_) add(one.user);
  for (const UserIdentity& user : users) {
    for (std::uint32_t left = WantedStarts(user); left > 0; --left) {
      const Status started = StartJobd(user);
      if (started.ok()) continue;
      StartFailed(user, started.message());
      break;
    }
  }
  ArmBalance();
}

// The next moment at which a start that is put off may be due, or the pool is too large.
void JobdManager::ArmBalance() {
  loop_.Cancel(balance_timer_);
  if (closing_ != Closing::kNo) return;
  const SteadyTime now = SteadyNow();
  SteadyTime next = SteadyTime::max();
  const auto consider = [&](SteadyTime due) {
    if (due > now) next = std::min(next, due);
  };
  const std::uint32_t ready = warm();
  const std::uint32_t target = pool_.Target(now);
  if (!waiting_.empty())
    consider(backoff_until_);
  else if (ready < target)
    consider(std::max(pool_.RefillAfter(ready), backoff_until_));
  if (target > options_.pool.least) consider(pool_.ShrinkAt());
  for (const Expected& one : expected_) {
    consider(std::max(one.from, backoff_until_));
    consider(one.until);
  }
  if (next == SteadyTime::max()) return;
  balance_timer_ = loop_.After(std::chrono::ceil<Millis>(next - now), [this] { Balance(); });
}

Status JobdManager::StartJobd(const UserIdentity& user) {
  MSA_RETURN_IF_ERROR(Fault("noded.jobd.start"));
  auto jobd = std::make_unique<Jobd>();
  JobdRecord& record = jobd->record;
  record.seq = next_seq_++;
  record.user = user;
  record.boot_id = boot_id_;
  MSA_ASSIGN_OR_RETURN(record.cookie, MakeCookie());
  const NodePaths& paths = options_.paths;
  Status status = MakeDirectory(paths.run_directory(record.seq), 0700, user);
  if (const std::string peers = paths.peer_directory(user.uid); status.ok() && peers != paths.base())
    status = MakeDirectory(peers, 0700, user);
  if (status.ok()) status = MakeDirectory(paths.shm_root(user.uid), 0700, user);
  if (status.ok()) status = MakeDirectory(paths.shm_node(user.uid), 0700, user);
  // Noted before it runs: a job daemon that connects after our death and restart is still known by its
  // cookie.
  if (status.ok()) status = SaveRecord(paths, record);
  if (status.ok()) {
    struct stat log {};
    if (::stat(paths.jobd_log().c_str(), &log) == 0) jobd->log_offset = static_cast<std::size_t>(log.st_size);
    status = StartProcess(*jobd);
  }
  if (!status.ok()) {
    (void)RemoveTree(paths.run_directory(record.seq));
    (void)RemoveTree(paths.record(record.seq));
    return status;
  }
  jobd->is_child = true;
  const std::uint64_t seq = record.seq;
  jobd->hello_timer = loop_.After(options_.hello_timeout, [this, seq] {
    const auto late = jobds_.find(seq);
    if (late == jobds_.end()) return;
    if (late->second->ordered) zygote_.Kill();  // it was to be there at once
    Kill(*late->second);
  });
  Jobd& kept = *jobds_.emplace(seq, std::move(jobd)).first->second;
  return kept.process.pidfd ? WatchProcess(kept) : Status::Ok();
}

Status JobdManager::StartProcess(Jobd& jobd) {
  const JobdRecord& record = jobd.record;
  if (options_.pool.least > 0) {
    const Status ordered =
        zygote_.Order(record.seq, {options_.paths.run_directory(record.seq), record.cookie,
                                   options_.paths.shm_node(record.user.uid),
                                   fmt::format("{}", record.user.uid), fmt::format("{}", record.user.gid)});
    jobd.ordered = ordered.ok();
    if (ordered.ok()) return ordered;
  }
  MSA_ASSIGN_OR_RETURN(ProcessHandle process, SpawnJobd(record));
  NoteProcess(jobd, std::move(process));
  return Status::Ok();
}

void JobdManager::NoteProcess(Jobd& jobd, ProcessHandle process) {
  JobdRecord& record = jobd.record;
  jobd.process = std::move(process);
  record.pid = static_cast<std::uint32_t>(jobd.process.pid);
  record.process_start = ProcessStart(record.pid);
  if (const Status saved = SaveRecord(options_.paths, record); !saved.ok())
    spdlog::warn("{}", saved.message());
}

// ------------------------------------------------------------------------------------------ zygote

Zygote::Options JobdManager::ZygoteOptions() const {
  Zygote::Options options;
  options.argv = CommonWords(::geteuid());
  // Those forked from it show theirs in this place.
  options.argv.insert(options.argv.end(), {"--directory", options_.paths.run_directory(99'999'999)});
  options.log = options_.paths.jobd_log();
  options.min_backoff = options_.min_backoff;
  options.max_backoff = options_.max_backoff;
  return options;
}

Zygote::Handlers JobdManager::ZygoteHandlers() {
  Zygote::Handlers handlers;
  handlers.on_forked = [this](std::uint64_t seq, pid_t pid) { OnForked(seq, pid); };
  handlers.on_refused = [this](std::uint64_t seq, const std::string& why) {
    const auto it = jobds_.find(seq);
    if (it == jobds_.end() || !it->second->ordered) return;
    const UserIdentity user = it->second->record.user;
    DropUnborn(seq);
    StartFailed(user, why);
  };
  handlers.on_lost = [this](std::uint64_t seq) { DropUnborn(seq); };
  handlers.on_reaped = [this] {
    CheckClosed();
    Balance();
  };
  return handlers;
}

void JobdManager::OnForked(std::uint64_t seq, pid_t pid) {
  const auto it = jobds_.find(seq);
  if (it == jobds_.end() || it->second->phase == Phase::kEnded) {
    // Given up meanwhile. It is our child, and so keeps its number until it is collected.
    ::kill(pid, SIGKILL);
    return;
  }
  Jobd& jobd = *it->second;
  jobd.ordered = false;
  if (jobd.process.pidfd) return;  // its hello was faster
  auto process = OpenProcess(pid);
  if (!process.ok()) return spdlog::error("job daemon {}: {}", seq, process.status().message());
  NoteProcess(jobd, std::move(*process));
  if (const Status watched = WatchProcess(jobd); !watched.ok()) spdlog::error("{}", watched.message());
}

// A job daemon that may never have come to be: without its directory it leaves by itself.
void JobdManager::DropUnborn(std::uint64_t seq) {
  const auto it = jobds_.find(seq);
  if (it == jobds_.end() || !it->second->ordered || it->second->process.pidfd) return;
  loop_.Cancel(it->second->hello_timer);
  loop_.Cancel(it->second->kill_timer);
  jobds_.erase(it);
  (void)RemoveTree(options_.paths.run_directory(seq));
  (void)RemoveTree(options_.paths.record(seq));
  // Later: orders may be under way.
  loop_.Cancel(balance_timer_);
  balance_timer_ = loop_.After(Millis(0), [this] { Balance(); });
}

std::vector<std::string> JobdManager::CommonWords(uid_t uid) const {
  const NodePaths& paths = options_.paths;
  return {options_.jobd,       "--node",          options_.node,        "--noded",
          paths.jobd_socket(), "--topology-xml",  paths.topology_xml(), "--trampoline",
          options_.trampoline, "--shm-directory", paths.shm_node(uid),  "--system",
          paths.system()};
}

Result<ProcessHandle> JobdManager::SpawnJobd(const JobdRecord& record) {
  const NodePaths& paths = options_.paths;
  UniqueFd log(
      ::open(paths.jobd_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return ErrnoError(errno, "open log '" + paths.jobd_log() + "'");
  SpawnSpec spec;
  if (!owner_is_self(record.user))
    spec.argv = {options_.run_as, "--run-as", fmt::format("{}:{}", record.user.uid, record.user.gid)};
  for (std::string& word : CommonWords(record.user.uid)) spec.argv.push_back(std::move(word));
  spec.argv.insert(spec.argv.end(), {"--directory", paths.run_directory(record.seq)});
  spec.env = CurrentEnvironment();
  std::erase_if(spec.env, [](const std::string& entry) {
    return entry.starts_with("MSA_JOBD_COOKIE=") || entry.starts_with("MSA_JOB_SOCKET=");
  });
  spec.env.push_back("MSA_JOBD_COOKIE=" + record.cookie);
  spec.out = log.get();
  spec.err = log.get();
  return Spawn(spec);
}

Status JobdManager::WatchProcess(Jobd& jobd) {
  const std::uint64_t seq = jobd.record.seq;
  return loop_.Watch(jobd.process.pidfd.get(), EPOLLIN, [this, seq](std::uint32_t) { OnProcessEnd(seq); });
}

void JobdManager::StartFailed(const UserIdentity& user, const std::string& why) {
  ++failures_;
  const auto shift = std::min<std::uint32_t>(failures_ - 1, 16);
  const Millis delay = std::min(options_.min_backoff * (std::int64_t{1} << shift), options_.max_backoff);
  spdlog::error("a job daemon did not start ({} in a row): {}; next attempt in {} ms", failures_, why,
                delay.count());
  // The job with the lowest number pays for the failed start.
  const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    return entry.second.start.user.uid == user.uid;
  });
  if (oldest != waiting_.end() && ++oldest->second.attempts >= options_.attempts) {
    const JobKey key = oldest->first;
    waiting_.erase(oldest);
    ReportGone({key,
                fmt::format("node {}: no job daemon could be started for job {} in {} attempts: {}",
                            options_.node, key.job, options_.attempts, why),
                false,
                {},
                0,
                false});
  }
  backoff_until_ = SteadyNow() + delay;
  ArmBalance();
}

}  // namespace msa::node
