// MPI_Win_allocate in network attached memory, MPI_Win_create_dynamic on a region, MPI_Win_free.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "inter.h"
#include "refusal.h"
#include "window.h"

// What each rank asks for.
struct request {
  int64_t bytes, unit;
};

static void FreeWindow(struct msa_window* window) {
  if (window == NULL) return;
  if (window->win != MPI_WIN_NULL) msa_host_calls()->real.Win_free(&window->win);
  if (window->comm != MPI_COMM_NULL) PMPI_Comm_free(&window->comm);
  free(window->held);
  free(window->taking);
  free(window->start_ranks);
  free(window->post_ranks);
  free(window->post_requests);
  free(window);
}

// The stand-in has size 0 and this process alone: it carries no data, and Debian's Open MPI makes windows
// over several nodes only where its osc setting is changed. By MPI_Win_allocate, as that Open MPI fails to
// make other windows on communicators of one rank.
static void StandIn(struct msa_window* window, MPI_Comm of, int unit, MPI_Info info,
                    struct msa_verdict* verdict) {
  MPI_Comm own = MPI_COMM_NULL;
  void* nothing = NULL;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  int failed = PMPI_Comm_dup(of, &own);
  if (failed == MPI_SUCCESS) {
    // Not to the handler of MPI_COMM_SELF: all processes get the error, by that of their communicator.
    PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    failed = msa_host_calls()->real.Win_allocate(0, unit, info, own, &nothing, &window->win);
    PMPI_Comm_free(&own);
  }
  if (failed == MPI_SUCCESS) return;
  window->win = MPI_WIN_NULL;
  PMPI_Error_string(failed, text, &length);
  PMPI_Error_class(failed, &failed);
  msa_verdict_set(verdict, failed, "the MPI makes no window of size 0: %s", text);
}

// Collective. NULL: an error that was raised.
static struct msa_window* MakeStandIn(MPI_Comm comm, int unit, MPI_Info info, int* failed) {
  struct msa_window* window = calloc(1, sizeof *window);
  struct msa_verdict verdict = {0};
  if (window == NULL) PMPI_Abort(comm, 1);  // the other ranks would wait for ever
  window->win = MPI_WIN_NULL;
  window->comm = MPI_COMM_NULL;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  *failed = PMPI_Comm_split(comm, 0, rank, &window->comm);
  if (*failed == MPI_SUCCESS) {
    StandIn(window, MPI_COMM_SELF, unit, info, &verdict);
    msa_agree(window->comm, &verdict);
    if (verdict.code != MPI_SUCCESS) {
      // Open MPI with osc=sm makes none in one process, but one in several on a node.
      if (window->win != MPI_WIN_NULL) msa_host_calls()->real.Win_free(&window->win);
      verdict = (struct msa_verdict){0};
      StandIn(window, window->comm, unit, info, &verdict);
      msa_agree(window->comm, &verdict);
    }
    if (verdict.code != MPI_SUCCESS) *failed = msa_comm_error(comm, verdict.code, verdict.text);
  }
  if (*failed != MPI_SUCCESS || verdict.code != MPI_SUCCESS) {
    FreeWindow(window);
    return NULL;
  }
  PMPI_Comm_rank(window->comm, &window->rank);
  PMPI_Comm_size(window->comm, &window->size);
  window->model = MPI_WIN_UNIFIED;
  return window;
}

// Fills in what depends on the region, and makes the window known.
static void Adopt(struct msa_window* window, struct msa_region* region, struct msa_verdict* verdict) {
  window->region = region;
  window->held = calloc((size_t)region->count + 1, 1);
  window->taking = calloc((size_t)region->count + 1, 1);
  if (window->held == NULL || window->taking == NULL)
    msa_verdict_set(verdict, MPI_ERR_NO_MEM, "out of memory for %d targets", region->count);
  else if (msa_window_insert(window) != 0)
    msa_verdict_set(verdict, MPI_ERR_NO_MEM, "out of memory for one more window; free some");
  msa_device_look();
}

// ------------------------------------------------------------------------------------------- allocate

static void CheckRequests(const struct request* requests, int count, struct msa_verdict* verdict) {
  for (int i = 0; i < count; ++i) {
    if (requests[i].bytes < 0)
      msa_verdict_set(verdict, MPI_ERR_SIZE, "MPI_Win_allocate: size %lld of rank %d; expected 0 or more",
                      (long long)requests[i].bytes, i);
    if (requests[i].unit < 1 || requests[i].unit > INT_MAX)
      msa_verdict_set(verdict, MPI_ERR_DISP,
                      "MPI_Win_allocate: displacement unit %lld of rank %d; expected 1 to %d",
                      (long long)requests[i].unit, i, INT_MAX);
  }
}

static void Options(MPI_Info info, char* name, int size, struct msa_nam_create_options* options,
                    struct msa_verdict* verdict) {
  char placement[32];
  msa_info_value(info, "msa_win_name", NULL, name, size);
  if (name[0] != '\0') options->name = name;
  msa_info_value(info, "msa_nam_placement", NULL, placement, sizeof placement);
  if (strcmp(placement, "spread") == 0)
    options->placement = MSA_NAM_SPREAD;
  else if (placement[0] != '\0' && strcmp(placement, "pack") != 0)
    msa_verdict_set(verdict, MPI_ERR_INFO_VALUE, "msa_nam_placement is '%s'; expected pack or spread",
                    placement);
}

// Rank 0: one segment a rank.
static msa_nam_region_t Create(const struct request* requests, int count, enum msa_kind kind, MPI_Info info,
                               struct msa_verdict* verdict) {
  struct msa_nam_create_options options = {0};
  struct msa_nam_segment* segments = calloc((size_t)count, sizeof *segments);
  msa_nam_region_t handle = NULL;
  char name[256];
  CheckRequests(requests, count, verdict);
  Options(info, name, sizeof name, &options, verdict);
  const char* missing = msa_nam_load();
  if (missing != NULL) msa_verdict_set(verdict, MPI_ERR_OTHER, "libmsanam.so cannot be loaded: %s", missing);
  if (segments == NULL) msa_verdict_set(verdict, MPI_ERR_NO_MEM, "out of memory for %d segments", count);
  if (verdict->code == MPI_SUCCESS) {
    for (int i = 0; i < count; ++i) {
      segments[i].bytes = (uint64_t)requests[i].bytes;
      segments[i].disp_unit = (uint32_t)requests[i].unit;
    }
    options.segments = segments;
    options.segment_count = (uint32_t)count;
    options.lifetime = kind == kMsaNamPersistent ? MSA_NAM_PERSISTENT : MSA_NAM_LEASE;
    const int failed = msa_nam.create(&options, &handle);
    if (failed == MSA_NAM_ERR_ARG && options.name != NULL)  // sizes and units are checked
      msa_verdict_set(verdict, MPI_ERR_INFO_VALUE, "MPI_Win_allocate: msa_win_name: %s",
                      msa_nam.error_text());
    msa_verdict_nam(verdict, "MPI_Win_allocate", failed);
  }
  free(segments);
  return verdict->code == MPI_SUCCESS ? handle : NULL;
}

// Rank 0, when all others have closed it. A closed handle may take a moment to be known as such.
static void Remove(const char* port, int is_forced) {
  for (int tries = 0; tries < 50; ++tries) {
    const struct timespec pause = {0, 10 * 1000 * 1000};
    if (msa_nam.delete(port, is_forced) != MSA_NAM_ERR_BUSY) return;
    nanosleep(&pause, NULL);
  }
}

// After a failure that rank 0 learnt of when the region was there already.
static void Withdraw(struct msa_window* window) {
  char port[sizeof window->region->port] = "";
  if (window->region == NULL) return;
  memcpy(port, window->region->port, sizeof port);
  if (window->rank != 0) msa_region_drop(window->region);
  PMPI_Barrier(window->comm);
  if (window->rank == 0) {
    msa_region_drop(window->region);
    Remove(port, 1);
  }
  window->region = NULL;
}

static void Allocate(struct msa_window* window, struct request request, enum msa_kind kind, MPI_Info info,
                     struct msa_verdict* verdict) {
  struct request* requests = calloc((size_t)window->size, sizeof *requests);
  msa_nam_region_t handle = NULL;
  if (requests == NULL) PMPI_Abort(window->comm, 1);
  PMPI_Gather(&request, (int)sizeof request, MPI_BYTE, requests, (int)sizeof request, MPI_BYTE, 0,
              window->comm);
  if (window->rank == 0) handle = Create(requests, window->size, kind, info, verdict);
  free(requests);
  struct msa_region* region = msa_region_share(window->comm, 0, handle, verdict);
  if (region == NULL) return;
  Adopt(window, region, verdict);
  if (verdict->code == MPI_SUCCESS && window->rank >= region->count)
    msa_verdict_set(verdict, MPI_ERR_INTERN, "the region has %d segments for %d ranks", region->count,
                    window->size);
  msa_agree(window->comm, verdict);
  if (verdict->code == MPI_SUCCESS) return;
  msa_window_remove(window);
  Withdraw(window);
}

static int AllocateWindow(struct request request, enum msa_kind kind, MPI_Info info, MPI_Comm comm,
                          void* base, MPI_Win* win) {
  struct msa_verdict verdict = {0};
  int failed = MPI_SUCCESS;
  *win = MPI_WIN_NULL;
  const int is_valid = request.unit >= 1 && request.unit <= INT_MAX;
  struct msa_window* window = MakeStandIn(comm, is_valid ? (int)request.unit : 1, info, &failed);
  if (window == NULL) return failed;
  window->flavor = kMsaAllocated;
  window->create_flavor = MPI_WIN_FLAVOR_ALLOCATE;
  window->is_persistent = kind == kMsaNamPersistent;
  Allocate(window, request, kind, info, &verdict);
  if (verdict.code != MPI_SUCCESS) {
    FreeWindow(window);
    return msa_comm_error(comm, verdict.code, verdict.text);
  }
  window->bytes = window->region->bytes[window->rank];
  window->unit = window->region->units[window->rank];
  window->base = window->region->address[window->rank];
  *(void**)base = window->base;
  *win = window->win;
  return MPI_SUCCESS;
}

static int IsOurs(MPI_Info info, MPI_Comm comm, enum msa_kind* kind, int* failed) {
  char text[64], reason[320];
  const char* key;
  int is_inter = 0;
  if (info == MPI_INFO_NULL || comm == MPI_COMM_NULL) return 0;
  *kind = msa_memory_kind(info, text, &key);
  if (*kind == kMsaOrdinary) return 0;
  if (msa_host_calls()->real.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter) return 0;
  *failed = MPI_SUCCESS;
  if (*kind == kMsaBadKind) {
    snprintf(reason, sizeof reason, MSA_BAD_KIND, "MPI_Win_allocate", key, text);
    *failed = msa_comm_error(comm, MPI_ERR_INFO_VALUE, reason);
  }
  return 1;
}

int msa_win_allocate(long size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  enum msa_kind kind;
  int failed;
  if (!IsOurs(info, comm, &kind, &failed))
    return msa_host_calls()->real.Win_allocate(size, unit, info, comm, base, win);
  if (failed != MPI_SUCCESS) return failed;
  return AllocateWindow((struct request){size, unit}, kind, info, comm, base, win);
}

int msa_win_allocate_c(long size, long unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  enum msa_kind kind;
  int failed;
  if (!IsOurs(info, comm, &kind, &failed))
    return msa_host_calls()->real.Win_allocate_c(size, unit, info, comm, base, win);
  if (failed != MPI_SUCCESS) return failed;
  return AllocateWindow((struct request){size, unit}, kind, info, comm, base, win);
}

// --------------------------------------------------------------------------------------------- attach

int msa_win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  struct msa_region* region = msa_inter_region(comm);
  struct msa_verdict verdict = {0};
  int failed = MPI_SUCCESS;
  if (region == NULL || win == NULL) return msa_host_calls()->real.Win_create_dynamic(info, comm, win);
  *win = MPI_WIN_NULL;
  struct msa_window* window = MakeStandIn(comm, 1, info, &failed);
  if (window == NULL) return failed;
  window->flavor = kMsaAttached;
  window->create_flavor = MPI_WIN_FLAVOR_DYNAMIC;
  window->is_persistent = 1;
  window->unit = 1;
  msa_region_hold(region);
  Adopt(window, region, &verdict);
  msa_agree(window->comm, &verdict);
  if (verdict.code != MPI_SUCCESS) {
    msa_window_remove(window);
    msa_region_drop(region);
    FreeWindow(window);
    return msa_comm_error(comm, verdict.code, verdict.text);
  }
  *win = window->win;
  return MPI_SUCCESS;
}

// ----------------------------------------------------------------------------------------------- free

// Rank 0. What was asked for last, of an attached region too: MPI_Win_set_info.
static void End(struct msa_window* window) {
  char port[sizeof window->region->port];
  memcpy(port, window->region->port, sizeof port);
  if (window->is_persistent) {
    msa_region_drop(window->region);
    return;
  }
  // Should another job use it still, it stays until this job ends.
  msa_nam.set_lifetime(window->region->handle, MSA_NAM_LEASE);
  msa_region_drop(window->region);
  Remove(port, 0);
}

int msa_win_free(MPI_Win* win) {
  struct msa_window* window = win != NULL ? msa_window_of(*win) : NULL;
  if (window == NULL) return msa_host_calls()->real.Win_free(win);
  int failed = msa_complete_pending(window, -1, "MPI_Win_free"), found;
  // Requests that were freed while they were pending are complete now: the MPI's progress lets go of them.
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window->comm, &found, MPI_STATUS_IGNORE);
  msa_unlock_everything(window);
  PMPI_Barrier(window->comm);  // all have finished with it
  msa_window_remove(window);
  if (window->rank != 0) msa_region_drop(window->region);
  PMPI_Barrier(window->comm);
  if (window->rank == 0) End(window);
  PMPI_Barrier(window->comm);  // a window that is gone is gone for all
  FreeWindow(window);
  *win = MPI_WIN_NULL;
  return failed;
}
