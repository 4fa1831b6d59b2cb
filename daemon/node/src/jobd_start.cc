// How job daemons are started: for the pool, and for jobs that found it empty.
#include <fcntl.h>
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
  if (wanted == 0 && owner_is_self(user) && warm() < options_.pool && now >= refill_after_) wanted = 1;
  for (const auto& [seq, jobd] : jobds_) {
    const bool comes = jobd->phase == Phase::kStarting && jobd->record.job.value == 0 && !jobd->quitting;
    if (comes && jobd->record.user.uid == user.uid && wanted > 0) --wanted;
  }
  return wanted;
}

void JobdManager::Balance() {
  if (closing_ != Closing::kNo) return;
  std::vector<UserIdentity> users{Self()};
  for (const auto& entry : waiting_) {
    const UserIdentity& user = entry.second.start.user;
    if (std::none_of(users.begin(), users.end(), [&](const auto& u) { return u.uid == user.uid; }))
      users.push_back(user);
  }
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

// The next moment at which a start that is put off may be due.
void JobdManager::ArmBalance() {
  loop_.Cancel(balance_timer_);
  const SteadyTime now = SteadyNow();
  const SteadyTime due = std::max(refill_after_, backoff_until_);
  if (closing_ != Closing::kNo || (warm() >= options_.pool && waiting_.empty())) return;
  const SteadyTime next = waiting_.empty() ? due : backoff_until_;
  if (next <= now) return;
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
  if (status.ok()) status = MakeDirectory(paths.shm_root(user.uid), 0700, user);
  if (status.ok()) status = MakeDirectory(paths.shm_node(user.uid), 0700, user);
  // Noted before it runs: a job daemon that connects after our death and restart is still known by its
  // cookie.
  if (status.ok()) status = SaveRecord(paths, record);
  if (status.ok()) {
    struct stat log {};
    if (::stat(paths.jobd_log().c_str(), &log) == 0) jobd->log_offset = static_cast<std::size_t>(log.st_size);
    auto process = SpawnJobd(record);
    status = process.status();
    if (process.ok()) jobd->process = std::move(*process);
  }
  if (!status.ok()) {
    (void)RemoveTree(paths.run_directory(record.seq));
    (void)RemoveTree(paths.record(record.seq));
    return status;
  }
  jobd->is_child = true;
  record.pid = static_cast<std::uint32_t>(jobd->process.pid);
  record.process_start = ProcessStart(record.pid);
  if (const Status saved = SaveRecord(paths, record); !saved.ok()) spdlog::warn("{}", saved.message());
  const std::uint64_t seq = record.seq;
  jobd->hello_timer = loop_.After(options_.hello_timeout, [this, seq] {
    const auto late = jobds_.find(seq);
    if (late != jobds_.end()) Kill(*late->second);
  });
  Jobd& kept = *jobds_.emplace(seq, std::move(jobd)).first->second;
  return WatchProcess(kept);
}

Result<ProcessHandle> JobdManager::SpawnJobd(const JobdRecord& record) {
  const NodePaths& paths = options_.paths;
  UniqueFd log(
      ::open(paths.jobd_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return ErrnoError(errno, "open log '" + paths.jobd_log() + "'");
  SpawnSpec spec;
  if (!owner_is_self(record.user))
    spec.argv = {options_.run_as, "--run-as", fmt::format("{}:{}", record.user.uid, record.user.gid)};
  for (std::string word :
       {options_.jobd, std::string("--node"), options_.node, std::string("--noded"), paths.jobd_socket(),
        std::string("--directory"), paths.run_directory(record.seq), std::string("--topology-xml"),
        paths.topology_xml(), std::string("--trampoline"), options_.trampoline,
        std::string("--shm-directory"), paths.shm_node(record.user.uid)})
    spec.argv.push_back(std::move(word));
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
