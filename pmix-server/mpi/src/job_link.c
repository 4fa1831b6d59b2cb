#define _GNU_SOURCE
#include "job_link.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "task.h"

struct msa_link {
  int fd;
  pid_t owner;  // a forked child must not speak on its parent's connection
  uint64_t id;
  uint32_t world_size;
  struct msa_link* next;
};

// More lie ready only if so many threads spawned at once.
enum { kMaxReady = 8 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct msa_link* ready;
static int ready_count;

int64_t msa_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t msa_pause_ns(int64_t waited) {
  const int64_t pause = waited / 16;
  return pause < 1000 ? 1000 : pause > 10000000 ? 10000000 : pause;
}

static int Fail(struct msa_link_error* error, const char* what, const char* reason) {
  snprintf(error->text, sizeof error->text, "job daemon at %s: %s: %s", msa_task_get()->socket, what, reason);
  return -1;
}

// ------------------------------------------------------------------------------------ one connection

static void Destroy(struct msa_link* link) {
  close(link->fd);
  free(link);
}

int msa_link_send(struct msa_link* link, const struct msa_buffer* frames, struct msa_link_error* error) {
  if (frames->failed) return Fail(error, "cannot ask", "out of memory");
  for (size_t at = 0; at < frames->size;) {
    const ssize_t sent = send(link->fd, frames->data + at, frames->size - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Fail(error, "cannot send", strerror(errno));
    at += (size_t)sent;
  }
  return 0;
}

struct wait {
  void (*progress)(void*);
  void* context;
  int64_t begin;
};

static int Fill(struct msa_link* link, void* bytes, size_t size, struct wait* wait,
                struct msa_link_error* error) {
  for (size_t at = 0; at < size;) {
    struct pollfd poll_fd = {link->fd, POLLIN, 0};
    struct timespec pause = {0, msa_pause_ns(msa_now_ns() - wait->begin)};
    const int polled = ppoll(&poll_fd, 1, wait->progress != NULL ? &pause : NULL, NULL);
    if (polled < 0 && errno != EINTR) return Fail(error, "cannot wait", strerror(errno));
    if (polled <= 0) {
      if (wait->progress != NULL) wait->progress(wait->context);
      continue;
    }
    const ssize_t got = recv(link->fd, (char*)bytes + at, size - at, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Fail(error, "cannot receive", strerror(errno));
    if (got == 0) return Fail(error, "no answer", "it closed the connection");
    at += (size_t)got;
  }
  return 0;
}

uint64_t msa_link_next_id(struct msa_link* link) { return ++link->id; }

int msa_link_receive(struct msa_link* link, uint16_t type, uint64_t id, void (*progress)(void*),
                     void* context, void** payload, size_t* size, struct msa_link_error* error) {
  struct wait wait = {progress, context, msa_now_ns()};
  for (;;) {
    unsigned char bytes[kMsaHeaderBytes];
    if (Fill(link, bytes, sizeof bytes, &wait, error) != 0) return -1;
    const struct msa_header header = msa_get_header(bytes);
    if (header.length > kMsaMaxAnswer) return Fail(error, "bad answer", "longer than 16 MiB");
    void* data = malloc(header.length + 1);
    if (data == NULL) return Fail(error, "cannot receive", "out of memory");
    if (Fill(link, data, header.length, &wait, error) != 0) {
      free(data);
      return -1;
    }
    if (header.type == type && header.id == id) {
      *payload = data;
      *size = header.length;
      return 0;
    }
    free(data);  // of a newer job daemon, or of a question given up
  }
}

static int Greet(struct msa_link* link, struct msa_link_error* error) {
  const struct msa_task* task = msa_task_get();
  struct msa_buffer hello = {0};
  const uint64_t id = msa_link_next_id(link);
  msa_put_hello(&hello, id, task->nspace, task->rank);
  int failed = msa_link_send(link, &hello, error);
  msa_buffer_free(&hello);
  void* payload = NULL;
  size_t size = 0;
  struct msa_welcome welcome;
  if (failed == 0) failed = msa_link_receive(link, kMsaWelcome, id, NULL, NULL, &payload, &size, error);
  if (failed == 0 && msa_get_welcome(payload, size, &welcome) != 0)
    failed = Fail(error, "bad greeting", "malformed");
  else if (failed == 0 && welcome.version != kMsaProtocolVersion)
    failed = Fail(error, "cannot be asked", "it speaks another version of the protocol");
  if (failed == 0) link->world_size = welcome.world_size;
  free(payload);
  return failed;
}

static struct msa_link* Connect(struct msa_link_error* error) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  _Static_assert(sizeof address.sun_path == sizeof msa_task_get()->socket, "as long as a socket's path");
  strcpy(address.sun_path, msa_task_get()->socket);
  struct msa_link* link = calloc(1, sizeof *link);
  if (link == NULL) {
    Fail(error, "cannot connect", "out of memory");
    return NULL;
  }
  link->owner = getpid();
  link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (link->fd < 0) {
    Fail(error, "no socket", strerror(errno));
    free(link);
    return NULL;
  }
  int failed;
  do failed = connect(link->fd, (struct sockaddr*)&address, sizeof address);
  while (failed != 0 && errno == EINTR);
  if (failed != 0) Fail(error, "cannot connect", strerror(errno));
  if (failed != 0 || Greet(link, error) != 0) {
    Destroy(link);
    return NULL;
  }
  return link;
}

// ---------------------------------------------------------------------------------- those that lie ready

// The job daemon may have closed it: then there is an end of file to be read.
static int IsAlive(const struct msa_link* link) {
  struct pollfd poll_fd = {link->fd, POLLIN, 0};
  return link->owner == getpid() && poll(&poll_fd, 1, 0) == 0;
}

struct msa_link* msa_link_acquire(uint32_t* world_size, struct msa_link_error* error) {
  struct msa_link* link;
  do {
    pthread_mutex_lock(&mutex);
    link = ready;
    if (link != NULL) {
      ready = link->next;
      --ready_count;
    }
    pthread_mutex_unlock(&mutex);
    if (link == NULL || IsAlive(link)) break;
    Destroy(link);
  } while (1);
  if (link == NULL) link = Connect(error);
  if (link != NULL && world_size != NULL) *world_size = link->world_size;
  return link;
}

void msa_link_release(struct msa_link* link) {
  pthread_mutex_lock(&mutex);
  const int keep = ready_count < kMaxReady;
  if (keep) {
    link->next = ready;
    ready = link;
    ++ready_count;
  }
  pthread_mutex_unlock(&mutex);
  if (!keep) Destroy(link);
}

void msa_link_close(struct msa_link* link) {
  if (link != NULL) Destroy(link);
}

void msa_link_close_all(void) {
  pthread_mutex_lock(&mutex);
  struct msa_link* link = ready;
  ready = NULL;
  ready_count = 0;
  pthread_mutex_unlock(&mutex);
  while (link != NULL) {
    struct msa_link* next = link->next;
    Destroy(link);
    link = next;
  }
}
