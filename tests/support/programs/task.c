// A task without MPI, for what the launcher itself promises: task KIND [ARGUMENT]...
//   lines N WIDTH    N numbered lines "RANK:NUMBER:xxx" of WIDTH bytes to stdout and as many to stderr, then
//   "end RANK" stubborn         ignores SIGTERM, SIGINT and SIGHUP, prints "up", waits for ever family starts
//   a child in its own session and one in its own group, prints "up PID PID", waits for ever orphan starts a
//   child in its own session that outlives it, prints its pid, ends signals          prints "up", then the
//   number of each signal that it gets; leaves at SIGTERM with code 0 cpus             prints "cpus LIST" of
//   the logical cores that it may use limit            prints "nofile SOFT"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void WaitForEver(void) {
  for (;;) pause();
}

static int Lines(int count, int width) {
  const char* rank = getenv("MSA_RANK") != NULL ? getenv("MSA_RANK") : "0";
  char* fill = malloc((size_t)width + 1);
  memset(fill, 'x', (size_t)width);
  fill[width] = '\0';
  for (int i = 0; i < count; ++i) {
    printf("%s:%d:%s\n", rank, i, fill);
    fprintf(stderr, "%s:%d:%s\n", rank, i, fill);
  }
  printf("end %s\n", rank);
  free(fill);
  return fflush(stdout) == 0 ? 0 : 1;
}

static int Stubborn(void) {
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  puts("up");
  fflush(stdout);
  WaitForEver();
  return 0;
}

static pid_t StartChild(int own_session) {
  const pid_t child = fork();
  if (child == 0) {
    if (own_session)
      setsid();
    else
      setpgid(0, 0);
    signal(SIGTERM, SIG_IGN);
    close(1);
    close(2);
    WaitForEver();
  }
  return child;
}

static int Family(int stay) {
  const pid_t session = StartChild(1);
  const pid_t group = stay ? StartChild(0) : session;
  printf("up %d %d\n", (int)session, (int)group);
  fflush(stdout);
  if (stay) WaitForEver();
  return 0;
}

static int Signals(void) {
  sigset_t set;
  sigfillset(&set);
  sigprocmask(SIG_BLOCK, &set, NULL);
  puts("up");
  fflush(stdout);
  for (;;) {
    int got = 0;
    if (sigwait(&set, &got) != 0) return 1;
    printf("signal %d\n", got);
    fflush(stdout);
    if (got == SIGTERM) return 0;
  }
}

static int Cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  printf("cpus");
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) printf(" %d", i);
  puts("");
  return 0;
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  if (strcmp(kind, "lines") == 0 && argc == 4) return Lines(atoi(argv[2]), atoi(argv[3]));
  if (strcmp(kind, "stubborn") == 0) return Stubborn();
  if (strcmp(kind, "family") == 0) return Family(1);
  if (strcmp(kind, "orphan") == 0) return Family(0);
  if (strcmp(kind, "signals") == 0) return Signals();
  if (strcmp(kind, "cpus") == 0) return Cpus();
  if (strcmp(kind, "limit") == 0) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("nofile %lu\n", (unsigned long)limit.rlim_cur);
    return 0;
  }
  fprintf(stderr, "task: unknown kind '%s'\n", kind);
  return 2;
}
