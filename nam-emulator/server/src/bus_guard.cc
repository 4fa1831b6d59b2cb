#include "bus_guard.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "msa/base/mutex.h"

namespace msa::namd {

struct BusGuard::Slot {
  std::atomic<std::uintptr_t> base{0};  // 0: free
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::size_t> page{0};
  std::atomic<bool> damaged{false};
  Slot* next = nullptr;  // set before the slot is reachable
};

struct BusGuardSlots {
  using Slot = BusGuard::Slot;
  static inline std::atomic<Slot*> first{nullptr};
  static inline std::atomic<int> wake{-1};
  static inline Mutex mu;  // for those who take and free slots
};

namespace {

using Slots = BusGuardSlots;

// Only what a signal handler may do.
void OnBusError(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (auto* slot = Slots::first.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    const std::uintptr_t base = slot->base.load(std::memory_order_acquire);
    if (base == 0 || at < base || at - base >= slot->bytes.load(std::memory_order_relaxed)) continue;
    const std::size_t page = slot->page.load(std::memory_order_relaxed);
    void* const hole = reinterpret_cast<void*>(at & ~(page - 1));
    if (::mmap(hole, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
      break;
    slot->damaged.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(Slots::wake.load(), &one, sizeof one);
    errno = saved;
    return;
  }
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  errno = saved;  // the instruction is repeated, and this time it is fatal
}

}  // namespace

Status BusGuard::Install() {
  if (wake_fd() >= 0) return Status::Ok();
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError(errno, "eventfd");
  Slots::wake = wake.release();  // for the life of the process: a handler may run at any time
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(SIGBUS, &action, nullptr) != 0) return ErrnoError(errno, "set handler of SIGBUS");
  return Status::Ok();
}

int BusGuard::wake_fd() { return Slots::wake.load(); }

void BusGuard::Acknowledge() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto n = ::read(wake_fd(), &count, sizeof count);
}

BusGuard::BusGuard(void* base, std::size_t bytes, std::size_t page) {
  MutexLock lock(Slots::mu);
  for (Slot* slot = Slots::first; slot != nullptr && slot_ == nullptr; slot = slot->next)
    if (slot->base == 0) slot_ = slot;
  const bool is_new = slot_ == nullptr;
  if (is_new) slot_ = new Slot;
  slot_->bytes = bytes;
  slot_->page = page;
  slot_->damaged = false;
  slot_->base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_release);
  if (!is_new) return;
  slot_->next = Slots::first;
  Slots::first.store(slot_, std::memory_order_release);
}

BusGuard::BusGuard(BusGuard&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}

BusGuard& BusGuard::operator=(BusGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

BusGuard::~BusGuard() {
  if (slot_ != nullptr) slot_->base.store(0, std::memory_order_release);
}

bool BusGuard::damaged() const { return slot_ != nullptr && slot_->damaged.load(std::memory_order_acquire); }

}  // namespace msa::namd
