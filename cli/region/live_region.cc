#include "region/live_region.h"

#include <poll.h>

#include <algorithm>

namespace msa::cli {
namespace {

// One call into the library: Ctrl-C is looked at between two of them.
constexpr Millis kAttempt{5000};
constexpr Millis kPause{100};

void Poll(Millis pause) { ::poll(nullptr, 0, static_cast<int>(pause.count())); }

// What passes when a daemon comes back.
bool MayPass(Code code) { return code == Code::kUnavailable || code == Code::kDeadlineExceeded; }

}  // namespace

LiveRegion::LiveRegion(const NamLibrary& library, LeaseSource source, LiveOptions options)
    : library_(library), source_(std::move(source)), options_(std::move(options)) {}

LiveRegion::~LiveRegion() { Detach(); }

Result<std::unique_ptr<RegionIo>> LiveRegion::Open(const NamLibrary& library, LeaseSource source,
                                                   LiveOptions options) {
  std::unique_ptr<LiveRegion> out(new LiveRegion(library, std::move(source), std::move(options)));
  // A NAM daemon that was restarted may have its fabric yet to start: a later lease says where that is.
  const SteadyTime deadline = out->options_.now() + out->options_.patience;
  for (Status status = out->Attach(); !status.ok(); status = out->Attach()) {
    if (!MayPass(status.code())) return status;
    MSA_RETURN_IF_ERROR(out->Wait(deadline, status));
  }
  return std::unique_ptr<RegionIo>(std::move(out));
}

Status LiveRegion::Attach() {
  auto leased = source_();
  const bool first = !lease_.info.uuid.valid();
  const bool is_gone =
      leased.ok() ? leased->info.uuid != lease_.info.uuid : leased.status().code() == Code::kNotFound;
  if (!first && is_gone)
    return Error(Code::kAborted, "region '{}' was removed meanwhile{}", lease_.info.name,
                 leased.ok() ? "; another one has its name now" : "");
  MSA_ASSIGN_OR_RETURN(RegionLease lease, std::move(leased));
  if (!first && lease.info.generation != lease_.info.generation)
    return Error(Code::kAborted, "region '{}' was resized or restored meanwhile", lease.info.name);
  msa_nam_region_t handle = nullptr;
  if (const int error = library_.attach(lease.blob.data(), lease.blob.size(), &handle))
    return NamError(library_, error, fmt::format("region '{}': attach", lease.info.name));
  handle_ = handle;
  lease_ = std::move(lease);
  const Millis attempt = std::min(kAttempt, options_.patience);
  if (const int error = library_.set_timeout(handle_, static_cast<std::uint32_t>(attempt.count())))
    return NamError(library_, error, fmt::format("region '{}': set a deadline", lease_.info.name));
  return Status::Ok();
}

void LiveRegion::Detach() {
  // Its result tells of outstanding operations, and there are none.
  if (handle_ != nullptr) (void)library_.close(handle_);
  handle_ = nullptr;
  lease_.hold.reset();
}

Status LiveRegion::Wait(SteadyTime deadline, const Status& why) const {
  if (options_.stop && options_.stop())
    return Error(Code::kCancelled, "interrupted while it was waited for: {}", why.message());
  if (options_.now() >= deadline)
    return why.WithContext(fmt::format("given up after {} s", options_.patience.count() / 1000));
  (options_.pause ? options_.pause : &Poll)(kPause);
  return Status::Ok();
}

Status LiveRegion::Do(const char* what, Late late, const std::function<int(msa_nam_region_t)>& call) {
  const SteadyTime deadline = options_.now() + options_.patience;
  for (;;) {
    Status status;
    if (handle_ == nullptr) {
      status = Attach();
      if (!status.ok() && !MayPass(status.code())) return status;
    }
    if (status.ok()) {
      const int error = call(handle_);
      if (error == MSA_NAM_OK) return Status::Ok();
      status = NamError(library_, error, fmt::format("region '{}': {}", lease_.info.name, what));
      const bool again = late == Late::kAsk && error == MSA_NAM_ERR_TIMEOUT;
      if (error != MSA_NAM_ERR_STALE && !MayPass(status.code())) return status;
      if (!again) {
        Detach();
        if (std::exchange(locks_, 0) > 0)
          return Error(Code::kAborted, "the lock was lost: {}; do it again", status.message());
      }
    }
    MSA_RETURN_IF_ERROR(Wait(deadline, status));
  }
}

Status LiveRegion::Read(std::uint32_t segment, std::uint64_t offset, std::span<std::byte> to) {
  return Do("get", Late::kRenew, [&](msa_nam_region_t region) {
    return library_.get(region, segment, offset, to.data(), to.size());
  });
}

Status LiveRegion::Write(std::uint32_t segment, std::uint64_t offset, std::span<const std::byte> from) {
  return Do("put", Late::kRenew, [&](msa_nam_region_t region) {
    return library_.put(region, segment, offset, from.data(), from.size());
  });
}

Status LiveRegion::Take(std::uint32_t segment, Lock lock) {
  const auto mode = lock == Lock::kShared ? MSA_NAM_SHARED : MSA_NAM_EXCLUSIVE;
  MSA_RETURN_IF_ERROR(
      Do("lock", Late::kAsk, [&](msa_nam_region_t region) { return library_.lock(region, segment, mode); }));
  ++locks_;
  return Status::Ok();
}

Status LiveRegion::Free(std::uint32_t segment) {
  // Lost with its lease.
  if (locks_ == 0 || handle_ == nullptr) return Status::Ok();
  --locks_;
  if (const int error = library_.unlock(handle_, segment))
    return NamError(library_, error, fmt::format("region '{}': unlock", lease_.info.name));
  return Status::Ok();
}

}  // namespace msa::cli
