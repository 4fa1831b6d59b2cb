// A program's signal handlers and its opening of a region of network attached memory: those that libraries of
// the fabric install when they are loaded must not replace them.
//
//   nam_signals REGION     opens it; "kept N signals", code 0, or a line for each that has changed, code 1;
//                          then ends by SIGTERM's own handler, code 42
#include <msa_nam.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// SA_RESTORER: the C library sets it whenever it sets an action.
enum { kRestorer = 0x04000000 };

static void Ignore(int signal) { (void)signal; }
static void End(int signal) {
  (void)signal;
  _exit(42);
}

int main(int argc, char** argv) {
  struct sigaction before[NSIG], after, own = {0};
  msa_nam_region_t region;
  int changed = 0, known = 0;
  own.sa_flags = SA_RESTART;
  own.sa_handler = &End;
  sigaction(SIGTERM, &own, NULL);
  own.sa_handler = &Ignore;
  sigaction(SIGUSR1, &own, NULL);
  sigaction(SIGSEGV, &own, NULL);
  for (int s = 1; s < NSIG; ++s)
    if (sigaction(s, NULL, &before[s]) != 0) memset(&before[s], 0, sizeof before[s]);
  sigset_t mask_before, mask_after;
  sigprocmask(SIG_SETMASK, NULL, &mask_before);
  const int failed = msa_nam_open(argc > 1 ? argv[1] : "", MSA_NAM_READ, &region);
  if (failed != 0) return printf("open: %s\n", msa_nam_error_text()), 1;
  sigprocmask(SIG_SETMASK, NULL, &mask_after);
  for (int s = 1; s < NSIG; ++s) {
    if (sigaction(s, NULL, &after) != 0) continue;
    ++known;
    const int is_same = after.sa_handler == before[s].sa_handler &&
                        (after.sa_flags | kRestorer) == (before[s].sa_flags | kRestorer) &&
                        sigismember(&mask_before, s) == sigismember(&mask_after, s);
    if (!is_same) ++changed, printf("signal %d (%s) has changed\n", s, strsignal(s));
  }
  if (changed == 0) printf("kept %d signals\n", known);
  fflush(stdout);
  msa_nam_close(region);
  if (changed != 0) return 1;
  raise(SIGTERM);
  return 2;
}
