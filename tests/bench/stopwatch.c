// stopwatch COMMAND [ARGUMENT]...   prints "NANOSECONDS CODE": from before posix_spawn to after waitpid, and
// how it ended (128 + N for signal N). The command's stdout and stderr go to the file named by
// $STOPWATCH_OUTPUT, or nowhere.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static long long Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* output = getenv("STOPWATCH_OUTPUT");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output != NULL ? output : "/dev/null",
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int status = 0;
  const long long begin = Now();
  const int error = posix_spawnp(&child, argv[1], &actions, NULL, argv + 1, environ);
  if (error != 0) {
    fprintf(stderr, "stopwatch: %s: %s\n", argv[1], strerror(error));
    return 1;
  }
  waitpid(child, &status, 0);
  const long long end = Now();
  printf("%lld %d\n", end - begin, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  return 0;
}
