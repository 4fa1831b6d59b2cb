// The callback API of gRPC 1.51 polls with two threads, each of which, after a second without an event,
// sleeps 100 ms without polling (CallbackAlternativeCQ in completion_queue_cc.cc). A call that arrives while
// both sleep waits: measured, for a server that was idle for 1.07 s, a median of 35 ms and up to 98. Programs
// are linked with --wrap=gpr_sleep_until, so that the threads poll again at once. Its only other caller waits
// at the start for a clock that stands still, and asks again.

#include <grpc/support/time.h>

extern "C" void __wrap_gpr_sleep_until(gpr_timespec) {}  // NOLINT(bugprone-reserved-identifier)
