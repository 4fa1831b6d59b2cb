#include "region/interrupt.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace msa::cli {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int signal) { noted.store(signal, std::memory_order_relaxed); }

void Handle(void (*handler)(int)) {
  for (const int signal : kSignals) {
    struct sigaction old {};
    if (::sigaction(signal, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handler;
    // No SA_RESTART: a read from a terminal or a pipe comes back.
    if (handler != SIG_DFL) action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  noted.store(0, std::memory_order_relaxed);
  Handle(&Note);
}
InterruptGuard::~InterruptGuard() { Handle(SIG_DFL); }

int InterruptGuard::signal() noexcept { return noted.load(std::memory_order_relaxed); }

}  // namespace msa::cli
