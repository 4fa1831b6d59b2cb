// msa-exec: turns itself into a task. Started by the launcher, see exec_spec.h, or by srun as a spawned
// child, see slurm_child.c. Process group, signal dispositions and mask were set by posix_spawn. Static and
// without C++, since it is exec'ed once per task.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec_spec.h"
#include "slurm_child.h"

static uint32_t task_index;

static _Noreturn void Fail(enum ExecStage stage, int error, int detail) {
  const struct ExecFailure failure = {task_index, (int32_t)stage, error, detail};
  const ssize_t written = write(kExecStatusFd, &failure, sizeof failure);
  _exit(written == (ssize_t)sizeof failure ? 125 : 124);
}

static char* MapSpec(size_t* size) {
  struct stat status;
  if (fstat(kExecSpecFd, &status) != 0) Fail(kExecStageSpec, errno, 0);
  *size = (size_t)status.st_size;
  if (*size < sizeof(struct ExecHeader)) Fail(kExecStageSpec, EPROTO, 0);
  char* const spec = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, kExecSpecFd, 0);
  if (spec == MAP_FAILED) Fail(kExecStageSpec, errno, 0);
  if (spec[*size - 1] != '\0') Fail(kExecStageSpec, EPROTO, 0);
  return spec;
}

static void CloseRange(unsigned first, unsigned last) {
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max > 1048576) limit.rlim_max = 1048576;
  for (unsigned fd = first; fd <= last && fd < limit.rlim_max; ++fd) close((int)fd);
}

// Everything above the status pipe but the channel: what the launcher and its libraries left without
// close-on-exec.
static void CloseOthers(int keep_channel) {
  if (fcntl(kExecStatusFd, F_SETFD, FD_CLOEXEC) != 0) Fail(kExecStageSpec, errno, 0);
  close(kExecSpecFd);
  if (keep_channel) CloseRange(kExecStatusFd + 1, kExecChannelFd - 1);
  CloseRange(keep_channel ? kExecChannelFd + 1 : kExecStatusFd + 1, ~0U);
}

// posix_spawn of glibc 2.36 leaves the two signals that it uses itself ignored.
static void RestoreInternalSignals(void) {
  const unsigned long none[4] = {
      0};  // the kernel's sigaction: default handler, no flags, no restorer, empty mask
  for (int signal = 32; signal <= 33; ++signal) syscall(SYS_rt_sigaction, signal, none, NULL, 8);
}

static void SetLimits(const struct ExecLimit* limits, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const int resource = (int)limits[i].resource;
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) Fail(kExecStageLimit, errno, resource);
    // RLIM_INFINITY is the largest value: the comparison lowers it too.
    struct rlimit wanted = {limits[i].soft, limits[i].hard};
    if (wanted.rlim_max > now.rlim_max) wanted.rlim_max = now.rlim_max;
    if (wanted.rlim_cur > wanted.rlim_max) wanted.rlim_cur = wanted.rlim_max;
    if (setrlimit(resource, &wanted) != 0) Fail(kExecStageLimit, errno, resource);
  }
}

// Splits `count` strings off; the result ends with a null pointer.
static char** Strings(char** cursor, const char* end, uint32_t count) {
  char** const list = malloc(((size_t)count + 1) * sizeof(char*));
  if (list == NULL) Fail(kExecStageSpec, ENOMEM, 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (*cursor >= end) Fail(kExecStageSpec, EPROTO, 0);
    list[i] = *cursor;
    *cursor += strlen(*cursor) + 1;
  }
  list[count] = NULL;
  return list;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--ticket") == 0) return BecomeChild();
  // By hand: nothing was handed over.
  if (fcntl(kExecStatusFd, F_GETFD) < 0 || fcntl(kExecSpecFd, F_GETFD) < 0) {
    static const char text[] = "msa-exec: a part of msa, started by its job daemon only\n";
    return write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 125 : 2;
  }
  size_t size = 0;
  char* const spec = MapSpec(&size);
  struct ExecHeader header;
  memcpy(&header, spec, sizeof header);
  task_index = header.index;
  const uint64_t fixed =
      sizeof header + (uint64_t)header.limits * sizeof(struct ExecLimit) + header.mask_bytes;
  if (header.magic != kExecMagic || header.mask_bytes % 8 != 0 || fixed >= size)
    Fail(kExecStageSpec, EPROTO, 0);

  // A launcher that died before the prctl left this process to another parent.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(kExecStageSpec, errno, 0);
  if (getppid() != header.parent) Fail(kExecStageSpec, ESRCH, 0);
  CloseOthers(header.channel != 0);
  RestoreInternalSignals();

  const char* const mask = spec + sizeof header + header.limits * sizeof(struct ExecLimit);
  if (header.mask_bytes > 0 && sched_setaffinity(0, header.mask_bytes, (const cpu_set_t*)mask) != 0)
    Fail(kExecStageBind, errno, 0);
  SetLimits((const struct ExecLimit*)(spec + sizeof header), header.limits);

  char* cursor = spec + fixed;
  char** const paths = Strings(&cursor, spec + size, 2);
  char** const arguments = Strings(&cursor, spec + size, header.argc);
  char** const environment = Strings(&cursor, spec + size, header.envc);
  if (paths[1][0] != '\0' && chdir(paths[1]) != 0) Fail(kExecStageDirectory, errno, 0);
  execve(paths[0], arguments, environment);
  Fail(kExecStageExec, errno, 0);
}
