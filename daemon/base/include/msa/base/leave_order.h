#pragma once
// The job daemon's SIGTERM to a task that is to end with an exit code: the signal's value says which. C too:
// libmsampi reads it in the task.

#include <stdbool.h>

// "msa" in the upper bytes, the code in the lowest.
enum { kMsaLeaveOrder = 0x6d736100 };

// What a SIGTERM sent by sigqueue(3) carries. Codes are 1 to 255: what a parent sees of an exit status.
static inline int MsaLeaveOrder(int exit_code) { return kMsaLeaveOrder | (exit_code & 0xff); }

// False: the value is none of msa's, or orders no code. Async-signal-safe.
static inline bool MsaReadLeaveOrder(int value, int* exit_code) {
  *exit_code = value & 0xff;
  return (value & ~0xff) == kMsaLeaveOrder && *exit_code != 0;
}
