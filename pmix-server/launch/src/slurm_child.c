// A spawned child in a job of Slurm. What it is to run comes from its job daemon, not by srun's command line:
// nothing is quoted, and one srun starts several programs.
#define _GNU_SOURCE
#include "slurm_child.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "msa/launch/child_protocol.h"

extern char** environ;

static int Fail(int code, const char* what, const char* why) {
  fprintf(stderr, "msa-exec: %s%s%s\n", what, *why != '\0' ? ": " : "", why);
  return code;
}

static int Connect(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int failed = fd < 0;
  if (!failed) do
      failed = connect(fd, (struct sockaddr*)&address, sizeof address);
    while (failed != 0 && errno == EINTR);
  return failed ? -1 : fd;
}

static void PutInt(unsigned char* at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t GetInt(const unsigned char* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static int SendAsk(int fd) {
  unsigned char frame[kChildHeaderBytes + 4] = {0};
  PutInt(frame, 4, 4);
  PutInt(frame + 4, kChildAskType, 2);
  PutInt(frame + kChildHeaderBytes, kChildProtocolVersion, 4);
  ssize_t sent;
  do sent = send(fd, frame, sizeof frame, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == (ssize_t)sizeof frame ? 0 : -1;
}

static int Fill(int fd, unsigned char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t got = read(fd, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = ECONNRESET;
    if (got <= 0) return -1;
    bytes += got;
    size -= (size_t)got;
  }
  return 0;
}

struct reader {
  unsigned char* at;
  size_t left;
  int ok;
};

static uint32_t TakeInt(struct reader* in) {
  if (in->left < 4) in->ok = 0;
  if (!in->ok) return 0;
  const uint32_t value = (uint32_t)GetInt(in->at, 4);
  in->at += 4;
  in->left -= 4;
  return value;
}

// A text lies behind its length, without a zero at its end: the text is moved over the length, which makes
// room for one.
static char* TakeText(struct reader* in) {
  unsigned char* const begin = in->at;
  const uint32_t size = TakeInt(in);
  if (in->left < size) in->ok = 0;
  if (!in->ok) return NULL;
  memmove(begin, in->at, size);
  begin[size] = '\0';
  if (strlen((char*)begin) != size) in->ok = 0;
  in->at += size;
  in->left -= size;
  return (char*)begin;
}

// With room for `more` entries and the null at the end; `count` is that of the texts.
static char** TakeList(struct reader* in, size_t more, size_t* count) {
  *count = TakeInt(in);
  if (*count > in->left / 4) in->ok = 0;
  if (!in->ok) return NULL;
  char** const list = calloc(*count + more + 1, sizeof(char*));
  if (list == NULL) in->ok = 0;
  for (size_t i = 0; in->ok && i < *count; ++i) list[i] = TakeText(in);
  return list;
}

// srun's word on this process: rank, step, nodes.
static int IsOfSlurm(const char* line) { return strncmp(line, "SLURM", 5) == 0; }

static int Become(unsigned char* payload, size_t size) {
  struct reader in = {payload, size, 1};
  size_t own = 0, arguments = 0, inherited = 0;
  for (char** line = environ; *line != NULL; ++line) own += IsOfSlurm(*line);
  const char* const program = TakeText(&in);
  const char* const cwd = TakeText(&in);
  char** const argv = TakeList(&in, 0, &arguments);
  char** const env = TakeList(&in, own, &inherited);
  const uint32_t code = TakeInt(&in);
  const char* const reason = TakeText(&in);
  if (!in.ok) return Fail(125, "the job daemon's answer is malformed", "");
  if (*program == '\0') return Fail((int)code, reason, "");
  if (arguments == 0) return Fail(125, "the job daemon's answer names no program", "");
  for (char** line = environ; *line != NULL; ++line)
    if (IsOfSlurm(*line)) env[inherited++] = *line;
  if (*cwd != '\0' && chdir(cwd) != 0) return Fail(126, cwd, strerror(errno));
  execve(program, argv, env);
  return Fail(errno == ENOENT ? 127 : 126, program, strerror(errno));
}

int BecomeChild(void) {
  const char* const path = getenv("MSA_JOB_SOCKET");
  if (path == NULL) return Fail(125, "MSA_JOB_SOCKET is not set", "is msa_spank.so loaded on this node?");
  const int fd = Connect(path);
  if (fd < 0) return Fail(125, path, strerror(errno));
  unsigned char header[kChildHeaderBytes];
  if (SendAsk(fd) != 0 || Fill(fd, header, sizeof header) != 0)
    return Fail(125, "the job daemon does not answer", strerror(errno));
  const uint32_t length = (uint32_t)GetInt(header, 4);
  if (GetInt(header + 4, 2) != kChildExecType || length > kChildMaxAnswer)
    return Fail(125, "the job daemon's answer is malformed", "");
  unsigned char* const payload = malloc((size_t)length + 1);
  if (payload == NULL || Fill(fd, payload, length) != 0)
    return Fail(125, "the job daemon's answer", strerror(errno));
  return Become(payload, length);
}
