#include "bus_guard.h"

#include <fcntl.h>
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
  std::atomic<std::uint64_t> inode{0};
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

// From here on only what a signal handler may do.

Slots::Slot* Find(std::uintptr_t at) {
  for (auto* slot = Slots::first.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    const std::uintptr_t base = slot->base.load(std::memory_order_acquire);
    if (base != 0 && at >= base && at - base < slot->bytes.load(std::memory_order_relaxed)) return slot;
  }
  return nullptr;
}

Slots::Slot* FindInode(std::uint64_t inode) {
  for (auto* slot = Slots::first.load(std::memory_order_acquire); slot != nullptr; slot = slot->next)
    if (slot->base.load(std::memory_order_acquire) != 0 &&
        slot->inode.load(std::memory_order_relaxed) == inode)
      return slot;
  return nullptr;
}

std::uint64_t Number(const char*& text, unsigned base) {
  std::uint64_t value = 0;
  for (;; ++text) {
    const char c = *text;
    const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                  : base;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

// The inode of a line of /proc/self/maps, "begin-end rw-s offset major:minor inode path", if the address is
// in it and it is shared; else 0.
std::uint64_t InodeIn(const char* line, std::uintptr_t at) {
  const std::uint64_t begin = Number(line, 16);
  if (*line != '-') return 0;
  const std::uint64_t end = Number(++line, 16);
  if (at < begin || at >= end || *line != ' ') return 0;
  for (int i = 1; i <= 4; ++i)
    if (line[i] == '\0') return 0;
  if (line[4] != 's') return 0;
  for (int spaces = 0; spaces < 4; ++line) {
    if (*line == '\0') return 0;
    if (*line == ' ') ++spaces;
  }
  return Number(line, 10);
}

std::uint64_t InodeAt(std::uintptr_t at) {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char buffer[4096];
  char line[128] = {};  // what is of interest stands in front of the path
  std::size_t length = 0;
  std::uint64_t inode = 0;
  ssize_t n = 0;
  while (inode == 0 && (n = ::read(fd, buffer, sizeof buffer)) > 0)
    for (ssize_t i = 0; i < n && inode == 0; ++i) {
      if (buffer[i] != '\n') {
        if (length + 1 < sizeof line) line[length++] = buffer[i];
        continue;
      }
      line[length] = '\0';
      inode = InodeIn(line, at);
      length = 0;
    }
  ::close(fd);
  return inode;
}

void OnBusError(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  auto* slot = Find(at);
  if (slot == nullptr)
    if (const std::uint64_t inode = InodeAt(at); inode != 0) slot = FindInode(inode);
  if (slot != nullptr) {
    const std::size_t page = slot->page.load(std::memory_order_relaxed);
    void* const hole = reinterpret_cast<void*>(at & ~(page - 1));
    if (::mmap(hole, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        MAP_FAILED) {
      slot->damaged.store(true, std::memory_order_release);
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto n = ::write(Slots::wake.load(), &one, sizeof one);
      errno = saved;
      return;
    }
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

BusGuard::BusGuard(const Range& range) {
  MutexLock lock(Slots::mu);
  for (Slot* slot = Slots::first; slot != nullptr && slot_ == nullptr; slot = slot->next)
    if (slot->base == 0) slot_ = slot;
  const bool is_new = slot_ == nullptr;
  if (is_new) slot_ = new Slot;
  slot_->bytes = range.bytes;
  slot_->page = range.page;
  slot_->inode = range.inode;
  slot_->damaged = false;
  slot_->base.store(reinterpret_cast<std::uintptr_t>(range.base), std::memory_order_release);
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
