#include "task.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct msa_task task;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Longer values than fit count as not given.
static void Copy(char* to, size_t size, const char* name) {
  const char* value = getenv(name);
  if (value != NULL && strlen(value) < size) strcpy(to, value);
}

static void Read(void) {
  Copy(task.socket, sizeof task.socket, "MSA_JOB_SOCKET");
  Copy(task.nspace, sizeof task.nspace, "PMIX_NAMESPACE");
  Copy(task.parent, sizeof task.parent, "MSA_PARENT_NAMESPACE");
  const char* rank = getenv("PMIX_RANK");
  if (rank == NULL) rank = getenv("MSA_RANK");
  if (rank != NULL) task.rank = (uint32_t)strtoul(rank, NULL, 10);
  const char* size = getenv("MSA_WORLD_SIZE");
  if (size != NULL) task.world_size = strtol(size, NULL, 10);
  task.active = task.socket[0] != '\0';
}

const struct msa_task* msa_task_get(void) {
  pthread_once(&once, &Read);
  return &task;
}

void msa_say(const char* format, ...) {
  char line[2048];
  va_list arguments;
  memcpy(line, "msa: ", 5);
  va_start(arguments, format);
  int size = vsnprintf(line + 5, sizeof line - 6, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  size = size > (int)sizeof line - 7 ? (int)sizeof line - 7 : size;
  line[size + 5] = '\n';
  // Past stdio: a line must neither mix with those of other threads nor wait in a buffer when MPI aborts.
  const ssize_t written = write(STDERR_FILENO, line, (size_t)size + 6);
  (void)written;
}
