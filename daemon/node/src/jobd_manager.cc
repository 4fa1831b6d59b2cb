#include "jobd_manager.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/files.h"
#include "msa/base/fault.h"

namespace msa::node {
namespace {

// A job of another user's has come: its start is through after this, and what a pool does then costs it
// nothing.
constexpr Millis kNextOfUser{200};

}  // namespace

JobdManager::JobdManager(EventLoop& loop, Options options, Handlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      pool_(options_.pool),
      boot_id_(BootId()),
      zygote_(loop, ZygoteOptions(), ZygoteHandlers()),
      worker_(loop) {}

JobdManager::~JobdManager() {
  if (listener_) loop_.Unwatch(listener_.get());
  loop_.Cancel(balance_timer_);
  for (auto& [seq, jobd] : jobds_) {
    loop_.Cancel(jobd->hello_timer);
    loop_.Cancel(jobd->kill_timer);
    if (jobd->process.pidfd && jobd->phase != Phase::kEnded) loop_.Unwatch(jobd->process.pidfd.get());
  }
  for (auto& [id, stranger] : strangers_) loop_.Cancel(stranger.timer);
}

Status JobdManager::Start() {
  MSA_ASSIGN_OR_RETURN(FoundRecords found, LoadRecords(options_.paths));
  next_seq_ = found.highest + 1;
  MSA_RETURN_IF_ERROR(Listen());
  for (const std::uint64_t seq : found.orphaned) SweepOrphanedDirectory(seq);
  for (JobdRecord& record : found.records) Adopt(std::move(record));
  Balance();
  return Status::Ok();
}

bool JobdManager::owner_is_self(const UserIdentity& user) const { return user.uid == ::geteuid(); }

void JobdManager::Assign(node_control::StartJob start) {
  const JobKey key{start.job, start.incarnation};
  if (FindJobd(key) != nullptr || waiting_.contains(key) || exit_kept_.contains(key)) return;
  auto header = wire::Decode<LaunchHeader>(start.frame.payload);
  if (!header.ok() || start.frame.type != LaunchHeader::kType)
    return ReportGone(
        {key,
         fmt::format("node {}: the launch message of job {} is malformed", options_.node, key.job),
         false,
         {},
         0,
         false});
  if (!owner_is_self(start.user) && ::geteuid() != 0)
    return ReportGone(
        {key,
         fmt::format("node {}: job {} belongs to uid {}, but the node daemon runs as uid {} and can start "
                     "jobs of that user only; run msa-noded as root to serve several users",
                     options_.node, key.job, start.user.uid, ::geteuid()),
         false,
         {},
         0,
         false});
  Waiting waiting{std::move(start), std::move(*header), 0, {}, {}};
  for (auto& [seq, jobd] : jobds_) {
    if (jobd->phase != Phase::kWarm || jobd->quitting || jobd->record.user.uid != waiting.start.user.uid)
      continue;
    Give(*jobd, std::move(waiting));
    return;
  }
  waiting_.emplace(key, std::move(waiting));
  Balance();
  if (handlers_.on_here && waiting_.contains(key)) handlers_.on_here(key);
}

void JobdManager::Give(Jobd& jobd, Waiting waiting) {
  JobdRecord& record = jobd.record;
  record.job = waiting.start.job;
  record.incarnation = waiting.start.incarnation;
  record.member_index = waiting.header.self_index;
  record.is_head = waiting.header.self_index == waiting.header.head_index;
  record.launch = std::move(waiting.start.frame.payload);
  jobd.phase = Phase::kAssigned;
  // On disk before the job daemon has it: a node daemon that is killed now finds the job again.
  if (const Status saved = SaveRecord(options_.paths, record); !saved.ok())
    spdlog::error("job {}: {}; a restart of the node daemon would lose it", record.job, saved.message());
  (void)Fault("noded.launch.recorded");
  jobd.channel->Send(wire::Pack(wire::LaunchJob::kType, 0, record.launch));
  for (const wire::Frame& frame : waiting.undelivered)
    jobd.channel->Send(wire::Pack(frame.type, frame.id, frame.payload));
  spdlog::info("job {}.{}: given to job daemon {} (pid {})", record.job, record.incarnation, record.seq,
               record.pid);
  if (handlers_.on_here) handlers_.on_here(record.key());
  if (owner_is_self(record.user))
    pool_.OnAssigned(SteadyNow());
  else
    ExpectUntil(record.user, SteadyNow() + kNextOfUser);
  Balance();
}

void JobdManager::Deliver(const JobKey& key, wire::Frame frame) {
  // 64 MiB would have to be sent within the moment of a reconnect.
  constexpr std::size_t kMaxUndelivered = 4096;
  std::vector<wire::Frame>* undelivered = nullptr;
  if (Jobd* jobd = FindJobd(key)) {
    if (frame.id == 0 && frame.type == wire::ExitAck::kType) jobd->record.exit_acked = true;
    if (jobd->channel) return jobd->channel->Send(wire::Pack(frame.type, frame.id, frame.payload));
    undelivered = &jobd->undelivered;
  } else if (const auto it = waiting_.find(key); it != waiting_.end()) {
    undelivered = &it->second.undelivered;
  } else if (frame.id == 0 && frame.type == wire::ExitAck::kType) {
    return ForgetExit(key);
  }
  if (undelivered == nullptr) return;
  if (undelivered->size() < kMaxUndelivered) return undelivered->push_back(std::move(frame));
  spdlog::error("job {}: dropped a message of type {:#06x}: {} wait for the job daemon", key.job, frame.type,
                kMaxUndelivered);
}

void JobdManager::QuitUnlessEnded(const JobKey& key, const std::string& reason) {
  if (Jobd* jobd = FindJobd(key)) {
    if (!jobd->record.is_head || jobd->quitting || jobd->phase == Phase::kEnded)
      return QuitJobd(*jobd, reason);
    if (jobd->job_ended) return StayForOwner(*jobd);
    if (jobd->channel) return QuitJobd(*jobd, reason);
    jobd->quit_reason = reason;
    return;
  }
  if (const auto it = waiting_.find(key); it != waiting_.end()) {
    waiting_.erase(it);
    return ReportGone({key, reason, true, {}, 0, false});
  }
  ForgetExit(key);
}

void JobdManager::ForgetExit(const JobKey& key) {
  const auto kept = exit_kept_.find(key);
  if (kept == exit_kept_.end()) return;
  const std::uint64_t seq = kept->second;
  exit_kept_.erase(kept);
  worker_.Run(
      [paths = options_.paths, seq] {
        for (const std::string& path : {paths.run_directory(seq), paths.record(seq)})
          if (const Status removed = RemoveTree(path); !removed.ok()) spdlog::warn("{}", removed.message());
      },
      nullptr);
}

void JobdManager::QuitAll(const std::string& reason, std::function<void()> done) {
  closing_ = Closing::kAll;
  zygote_.Stop();
  all_gone_ = std::move(done);
  loop_.Cancel(balance_timer_);
  for (const auto& [key, waiting] : std::exchange(waiting_, {}))
    ReportGone({key, reason, true, {}, 0, false});
  for (auto& [seq, jobd] : jobds_) QuitJobd(*jobd, reason);
  CheckClosed();
}

void JobdManager::QuitWarm(const std::string& reason, std::function<void()> done) {
  closing_ = Closing::kWarm;
  zygote_.Stop();
  all_gone_ = std::move(done);
  loop_.Cancel(balance_timer_);
  for (auto& [seq, jobd] : jobds_)
    if (jobd->record.job.value == 0) QuitJobd(*jobd, reason);
  CheckClosed();
}

void JobdManager::CheckClosed() {
  if (closing_ == Closing::kNo || !all_gone_ || zygote_.pid() != 0) return;
  for (const auto& [seq, jobd] : jobds_)
    if (closing_ == Closing::kAll || jobd->record.job.value == 0) return;
  loop_.Post(std::exchange(all_gone_, nullptr));
}

std::vector<node_control::JobdState> JobdManager::States() const {
  std::vector<node_control::JobdState> out;
  for (const auto& [seq, jobd] : jobds_) {
    const JobdRecord& record = jobd->record;
    if (record.job.value != 0)
      out.push_back({record.job, record.incarnation, record.member_index, record.is_head, jobd->job_ended});
  }
  for (const auto& [key, waiting] : waiting_)
    out.push_back({key.job, key.incarnation, waiting.header.self_index,
                   waiting.header.self_index == waiting.header.head_index, false});
  return out;
}

std::optional<JobdManager::Info> JobdManager::Find(const JobKey& key) const {
  if (const Jobd* jobd = FindJobd(key); jobd != nullptr && jobd->phase != Phase::kEnded)
    return Info{jobd->record.user, jobd->record.is_head};
  if (const auto it = waiting_.find(key); it != waiting_.end())
    return Info{it->second.start.user, it->second.header.self_index == it->second.header.head_index};
  return std::nullopt;
}

std::optional<std::string> JobdManager::JobSocket(const JobKey& key) const {
  const Jobd* jobd = FindJobd(key);
  if (jobd == nullptr || jobd->phase != Phase::kAssigned || jobd->quitting || jobd->quit_reason)
    return std::nullopt;
  return options_.paths.run_directory(jobd->record.seq) + "/job.sock";
}

std::optional<JobKey> JobdManager::FindJob(JobId job) const {
  std::optional<JobKey> newest;
  const auto consider = [&](const JobKey& key) {
    if (key.job == job && (!newest || key.incarnation > newest->incarnation)) newest = key;
  };
  for (const auto& [seq, jobd] : jobds_)
    if (jobd->phase != Phase::kEnded) consider(jobd->record.key());
  for (const auto& [key, waiting] : waiting_) consider(key);
  return newest;
}

bool JobdManager::congested(const JobKey& key) const {
  const Jobd* jobd = FindJobd(key);
  return jobd != nullptr && jobd->channel && jobd->channel->queued() > FrameChannel::kHighWater;
}

std::uint32_t JobdManager::warm() const {
  return static_cast<std::uint32_t>(std::count_if(jobds_.begin(), jobds_.end(), [this](const auto& entry) {
    const Jobd& jobd = *entry.second;
    return jobd.phase == Phase::kWarm && !jobd.quitting && owner_is_self(jobd.record.user);
  }));
}

JobdManager::Jobd* JobdManager::FindJobd(const JobKey& key) {
  return const_cast<Jobd*>(std::as_const(*this).FindJobd(key));
}

const JobdManager::Jobd* JobdManager::FindJobd(const JobKey& key) const {
  if (key.job.value == 0) return nullptr;
  for (const auto& [seq, jobd] : jobds_)
    if (jobd->record.key() == key) return jobd.get();
  return nullptr;
}

void JobdManager::ReportGone(GoneJob gone) {
  spdlog::log(gone.clean ? spdlog::level::info : spdlog::level::warn, "job {}.{}: {}", gone.key.job,
              gone.key.incarnation, gone.reason);
  // From the loop, so that no caller is surprised inside its own call.
  loop_.Post([this, gone = std::move(gone)]() mutable { handlers_.on_gone(std::move(gone)); });
}

}  // namespace msa::node
