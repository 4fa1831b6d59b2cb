// MPI requests of transfers that libmsanam carries out. They are generalized requests, completed from the
// MPI's own progress: in MPICH by its poll function (MPIX_Grequest_start), in Open MPI by a function among
// those that opal_progress calls. So the Test and Wait families see them move, and no thread of ours enters
// an MPI that was started without threads.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "refusal.h"
#include "transfer.h"

struct operation {
  struct operation* next;
  struct msa_pending* pending;
  struct msa_region* region;  // stays open until the request is gone, whatever becomes of the window
  MPI_Request request;
  int at;  // requests before it are complete
  int complete;
  int failed;  // a class
  char text[MPI_MAX_ERROR_STRING];
  const char* call;
};

int msa_request_done(struct msa_window* window, MPI_Request* request) {
  return PMPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, window->comm, request);
}

// 1: all of it is complete.
static int Advance(struct operation* operation) {
  struct msa_pending* pending = operation->pending;
  while (operation->at < pending->count) {
    int done = 0;
    const int failed = msa_nam.test(pending->requests[operation->at], &done);
    if (!done) return 0;
    ++operation->at;
    if (failed == MSA_NAM_OK || operation->failed != MPI_SUCCESS) continue;
    struct msa_verdict verdict = {0};
    msa_verdict_nam(&verdict, operation->call, failed);
    operation->failed = verdict.code;
    __builtin_memcpy(operation->text, verdict.text, sizeof operation->text);
  }
  return 1;
}

static int Query(void* state, MPI_Status* status) {
  struct operation* operation = state;
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  if (operation->failed != MPI_SUCCESS) msa_refusal_set(operation->failed, operation->text);
  return operation->failed;
}

static int Free(void* state) {
  struct operation* operation = state;
  msa_pending_free(operation->pending);
  msa_region_drop(operation->region);
  free(operation);
  return MPI_SUCCESS;
}

static int Cancel(void* state, int is_complete) {
  (void)state, (void)is_complete;
  return MPI_SUCCESS;  // what is on its way cannot be called back
}

#ifdef MPICH_VERSION

// MPICH polls requests that are complete, too, and completing one twice is an error.
static void CompleteOnce(struct operation* operation) {
  if (!operation->complete) PMPI_Grequest_complete(operation->request);
  operation->complete = 1;
}

static int Poll(void* state, MPI_Status* status) {
  struct operation* operation = state;
  (void)status;
  if (Advance(operation)) CompleteOnce(operation);
  return MPI_SUCCESS;
}

static int Wait(int count, void** states, double timeout, MPI_Status* status) {
  (void)timeout, (void)status;
  for (int i = 0; i < count; ++i) {
    struct operation* operation = states[i];
    while (!Advance(operation)) sched_yield();
    CompleteOnce(operation);
  }
  return MPI_SUCCESS;
}

static int Start(struct operation* operation) {
  return PMPIX_Grequest_start(&Query, &Free, &Cancel, &Poll, &Wait, operation, &operation->request);
}

#else

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct operation* operations;

// From any thread that drives the MPI's progress.
static int Progress(void) {
  int completed = 0;
  if (__atomic_load_n(&operations, __ATOMIC_RELAXED) == NULL || pthread_mutex_trylock(&mutex) != 0) return 0;
  struct operation* finished = NULL;
  for (struct operation** at = &operations; *at != NULL;) {
    struct operation* operation = *at;
    if (!Advance(operation)) {
      at = &operation->next;
      continue;
    }
    __atomic_store_n(at, operation->next, __ATOMIC_RELAXED);
    operation->next = finished;
    finished = operation;
  }
  pthread_mutex_unlock(&mutex);
  while (finished != NULL) {
    // Complete, it may be freed by another thread at once.
    struct operation* operation = finished;
    finished = operation->next;
    PMPI_Grequest_complete(operation->request);
    ++completed;
  }
  return completed;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_progress;

static void Register(void) {
  typedef int (*function)(int (*)(void));
  void* pal = dlopen("libopen-pal.so.40", RTLD_LAZY | RTLD_NOLOAD);
  function add = NULL;
  if (pal != NULL) *(void**)&add = dlsym(pal, "opal_progress_register");
  has_progress = add != NULL && add(&Progress) == 0;
}

static int Start(struct operation* operation) {
  pthread_once(&once, &Register);
  if (!has_progress) return MPI_ERR_OTHER;
  const int failed = PMPI_Grequest_start(&Query, &Free, &Cancel, operation, &operation->request);
  if (failed != MPI_SUCCESS) return failed;
  pthread_mutex_lock(&mutex);
  operation->next = operations;
  __atomic_store_n(&operations, operation, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&mutex);
  return MPI_SUCCESS;
}

#endif

int msa_request_of(struct msa_window* window, struct msa_pending* pending, const char* call,
                   MPI_Request* request) {
  struct operation* operation = calloc(1, sizeof *operation);
  if (operation != NULL) {
    operation->pending = pending;
    operation->call = call;
    operation->region = window->region;
    msa_region_hold(window->region);
    if (Start(operation) == MPI_SUCCESS) {
      *request = operation->request;
      return MPI_SUCCESS;
    }
    msa_region_drop(window->region);
    free(operation);
  }
  // Another Open MPI than the one that is known: it is done before the call returns.
  const int failed = msa_pending_finish(pending);
  return failed == MSA_NAM_OK ? msa_request_done(window, request)
                              : msa_window_nam_error(window, call, failed);
}
