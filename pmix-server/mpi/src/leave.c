#define _GNU_SOURCE
#include "leave.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "msa/base/leave_order.h"

#include "task.h"

// The job daemon runs as this user. Whoever else does may send the same, and might kill us as well.
static void OnTerm(int signal, siginfo_t* info, void* context) {
  struct sigaction plain, now;
  int code = 0;
  (void)context;
  // A handler that the program has put before it may have called it, with the number alone.
  const bool ours =
      sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &OnTerm;
  if (ours && info->si_code == SI_QUEUE && info->si_uid == getuid() &&
      MsaReadLeaveOrder(info->si_value.sival_int, &code))
    _exit(code);
  memset(&plain, 0, sizeof plain);
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, NULL);
  raise(signal);  // comes when this handler has returned
}

void msa_leave_on_order(void) {
  struct sigaction now, own;
  if (!msa_task_get()->active || sigaction(SIGTERM, NULL, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  memset(&own, 0, sizeof own);
  own.sa_sigaction = &OnTerm;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&own.sa_mask);
  sigaction(SIGTERM, &own, NULL);
}
