#include "gate.h"

#include <algorithm>
#include <map>
#include <thread>

#include "msa/base/mutex.h"

namespace msa::nam {
namespace {

struct Registry {
  Mutex mu;
  std::map<GatesKey, std::weak_ptr<Gates>> gates MSA_GUARDED_BY(mu);
};
// Never destroyed: threads may outlive static objects.
std::atomic<Registry*> the_registry{new Registry};

}  // namespace

std::shared_ptr<Gates> GatesOf(const GatesKey& key, std::size_t slots) {
  Registry& registry = *the_registry.load();
  const MutexLock lock(registry.mu);
  std::erase_if(registry.gates, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Gates>& known = registry.gates[key];
  std::shared_ptr<Gates> gates = known.lock();
  if (!gates || gates->size() < slots) known = gates = std::make_shared<Gates>(slots);
  return gates;
}

void ForgetInheritedGates() noexcept { the_registry.store(new Registry); }

bool Gate::Backoff::Pause() {
  if (++spins_ < 256) {
    __builtin_ia32_pause();
    return true;
  }
  const SteadyTime now = SteadyNow();
  if (now >= deadline_) return false;
  std::this_thread::sleep_for(std::min<SteadyTime::duration>(sleep_, deadline_ - now));
  sleep_ = std::min(sleep_ * 2, std::chrono::microseconds(1000));
  return true;
}

bool Gate::TryEnter(const LockWords& words, Access& access) {
  std::uint32_t state = state_.load(std::memory_order_relaxed);
  switch (state & kModes) {
    case 0:
      if (!state_.compare_exchange_strong(state, kSettling, std::memory_order_acquire)) return false;
      access = Access::kConcurrent;
      if (TryLock(*words.lock, LockMode::kShared, words.owner, kMaxOwners)) {
        state_.store(kTransient | 1, std::memory_order_release);
        return true;
      }
      state_.store(0, std::memory_order_release);
      return false;
    case kTransient:
      // A writer of another process waits for us to leave.
      if (words.lock->exclusive.load(std::memory_order_relaxed) != 0) return false;
      [[fallthrough]];
    case kShared:
    case kClaiming:
      if ((state & kWanted) != 0) return false;
      access = Access::kConcurrent;
      return (state & kCount) < kCount &&
             state_.compare_exchange_strong(state, state + 1, std::memory_order_acquire);
    case kExclusive:
      // Plain updates of two threads would lose some: one at a time.
      access = Access::kExclusive;
      return (state & kCount) == 0 &&
             state_.compare_exchange_strong(state, state + 1, std::memory_order_acquire);
    default:
      return false;
  }
}

bool Gate::TryAcquire(const void* handle, LockMode mode, const LockWords& words) noexcept {
  std::uint32_t state = 0;
  if (!state_.compare_exchange_strong(state, kSettling, std::memory_order_acquire)) return false;
  bool taken = false;
  if (mode == LockMode::kShared) {
    taken = TryLock(*words.lock, mode, words.owner, kMaxOwners);
  } else if (ClaimExclusive(*words.lock, words.owner)) {
    // The highest owner is read behind the claim: who comes later sees it.
    taken = Drained(*words.lock, words.owner, words.highest_owner->load());
    if (!taken) Unlock(*words.lock, mode, words.owner);
  }
  if (taken) handle_ = handle;
  state_.store(!taken ? 0 : mode == LockMode::kShared ? kShared : kExclusive, std::memory_order_release);
  return taken;
}

bool Gate::TryRelease(const LockWords& words) noexcept {
  std::uint32_t state = state_.load(std::memory_order_relaxed);
  // No updates under way, and one of the two locks.
  if (state != kShared && state != kExclusive) return false;
  const LockMode mode = state == kShared ? LockMode::kShared : LockMode::kExclusive;
  if (!state_.compare_exchange_strong(state, kSettling)) return false;
  Unlock(*words.lock, mode, words.owner);
  handle_ = nullptr;
  state_.store(0, std::memory_order_release);
  return true;
}

Result<Access> Gate::EnterSlowly(const LockWords& words, Millis timeout) {
  Access access = Access::kConcurrent;
  if (TryEnter(words, access)) return access;
  Backoff backoff(SteadyNow() + timeout);
  while (backoff.Pause())
    if (TryEnter(words, access)) return access;
  return Error(Code::kDeadlineExceeded,
               "the segment is locked exclusively by owner {} until the deadline; wait longer "
               "(msa_nam_set_timeout), or let it unlock",
               words.lock->exclusive.load());
}

void Gate::LeaveSlowly(const LockWords& words) noexcept {
  std::uint32_t state = state_.load(std::memory_order_relaxed);
  for (;;) {
    const bool last = (state & kModes) == kTransient && (state & kCount) == 1;
    if (!state_.compare_exchange_weak(state, last ? kSettling : state - 1, std::memory_order_acq_rel))
      continue;
    if (!last) return;
    Unlock(*words.lock, LockMode::kShared, words.owner);
    state_.store(0, std::memory_order_release);
    return;
  }
}

// The claim keeps writers out, so that updates beside those of the readers are right.
bool Gate::PauseOpenly(const Pause& pause) {
  state_.store(kClaiming, std::memory_order_release);
  bool goes_on = pause();
  state_.fetch_or(kWanted);
  for (;;) {
    std::uint32_t quiet = kClaiming | kWanted;
    if (state_.compare_exchange_weak(quiet, kSettling)) return goes_on;
    // Updates under way end by themselves; whoever gives up waits for them too.
    if (goes_on)
      goes_on = pause();
    else
      std::this_thread::yield();
  }
}

Status Gate::Settle(const Pause& pause) {
  for (;;) {
    std::uint32_t state = state_.load();
    const std::uint32_t mode = state & kModes;
    if (mode == kShared || mode == kExclusive)
      return Error(
          Code::kInvalidArgument,
          "this process holds the segment's lock already ({}); a process holds one lock of a segment at "
          "a time: unlock it first",
          mode == kShared ? "shared" : "exclusive");
    if (mode == 0 && state_.compare_exchange_strong(state, kSettling)) return Status::Ok();
    if (mode == kTransient) state_.compare_exchange_strong(state, state | kWanted);
    if (!pause())
      return Status(Code::kDeadlineExceeded, "other threads of this process are at the segment's lock");
  }
}

Status Gate::Unsettle(SteadyTime deadline, LockMode& mode) {
  Backoff backoff(deadline);
  for (;;) {
    std::uint32_t state = state_.load();
    mode = this->mode();
    if (mode == LockMode::kNone)
      return Status(Code::kInvalidArgument, "this process holds no lock of the segment; lock it first");
    if ((state & kCount) == 0 && state_.compare_exchange_strong(state, kSettling)) return Status::Ok();
    if (!backoff.Pause())
      return Status(Code::kDeadlineExceeded, "other threads of this process are updating the segment");
  }
}

}  // namespace msa::nam
