// Active target: fence, and post-start-complete-wait by empty messages on the window's own communicator.
#include <stdlib.h>

#include "refusal.h"
#include "window.h"

#define WINDOW_OR(otherwise)                      \
  struct msa_window* window = msa_window_of(win); \
  if (__builtin_expect(window == NULL, 0)) return msa_host_calls()->real.otherwise

enum { kPosted = 1, kCompleted = 2 };  // tags

static int WinFence(int assertion, MPI_Win win) {
  WINDOW_OR(Win_fence)(assertion, win);
  const int failed = msa_complete_pending(window, -1, "MPI_Win_fence");
  // What one rank could not complete is its error; the others must not wait for it.
  const int barrier = PMPI_Barrier(window->comm);
  if (assertion & MPI_MODE_NOSUCCEED)
    window->epochs &= ~(unsigned)kMsaFence;
  else
    window->epochs |= kMsaFence;
  atomic_thread_fence(memory_order_seq_cst);
  return failed != MPI_SUCCESS ? failed : barrier;
}

// The group's ranks in the window's communicator. -1: no memory, or a process that is not in it.
static int RanksOf(struct msa_window* window, MPI_Group group, int** ranks) {
  MPI_Group own;
  int count = 0, is_foreign = 0;
  PMPI_Group_size(group, &count);
  int* theirs = calloc((size_t)count + 1, sizeof *theirs);
  *ranks = calloc((size_t)count + 1, sizeof **ranks);
  if (theirs != NULL && *ranks != NULL) {
    for (int i = 0; i < count; ++i) theirs[i] = i;
    PMPI_Comm_group(window->comm, &own);
    PMPI_Group_translate_ranks(group, count, theirs, own, *ranks);
    PMPI_Group_free(&own);
    for (int i = 0; i < count; ++i) is_foreign |= (*ranks)[i] == MPI_UNDEFINED;
    if (!is_foreign) {
      free(theirs);
      return count;
    }
  }
  free(theirs);
  free(*ranks);
  *ranks = NULL;
  return -1;
}

static int GroupError(struct msa_window* window, const char* call) {
  return msa_window_error(window, MPI_ERR_GROUP, "%s: the group has processes that are not the window's",
                          call);
}

static int WinPost(MPI_Group group, int assertion, MPI_Win win) {
  WINDOW_OR(Win_post)(group, assertion, win);
  static const char kCall[] = "MPI_Win_post";
  if (window->post_ranks != NULL)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: the one before was not waited for", kCall);
  const int count = RanksOf(window, group, &window->post_ranks);
  if (count < 0) return GroupError(window, kCall);
  window->post_count = count;
  window->post_requests = calloc(2 * (size_t)count + 1, sizeof *window->post_requests);
  if (window->post_requests == NULL) PMPI_Abort(window->comm, 1);  // the starters would wait for ever
  atomic_thread_fence(memory_order_seq_cst);
  // Posting waits for nobody: not even an empty message may be sent by MPI_Send, which MPICH does not buffer
  // where it goes to the process itself.
  for (int i = 0; i < count; ++i) {
    PMPI_Irecv(NULL, 0, MPI_BYTE, window->post_ranks[i], kCompleted, window->comm, &window->post_requests[i]);
    PMPI_Isend(NULL, 0, MPI_BYTE, window->post_ranks[i], kPosted, window->comm,
               &window->post_requests[count + i]);
  }
  return MPI_SUCCESS;
}

static int WinStart(MPI_Group group, int assertion, MPI_Win win) {
  WINDOW_OR(Win_start)(group, assertion, win);
  static const char kCall[] = "MPI_Win_start";
  if (window->epochs & kMsaStart)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: the one before was not completed", kCall);
  const int count = RanksOf(window, group, &window->start_ranks);
  if (count < 0) return GroupError(window, kCall);
  window->start_count = count;
  for (int i = 0; i < count; ++i)
    PMPI_Recv(NULL, 0, MPI_BYTE, window->start_ranks[i], kPosted, window->comm, MPI_STATUS_IGNORE);
  window->epochs |= kMsaStart;
  atomic_thread_fence(memory_order_seq_cst);
  return MPI_SUCCESS;
}

static int WinComplete(MPI_Win win) {
  WINDOW_OR(Win_complete)(win);
  static const char kCall[] = "MPI_Win_complete";
  if ((window->epochs & kMsaStart) == 0)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: there was no MPI_Win_start", kCall);
  const int failed = msa_complete_pending(window, -1, kCall);
  window->epochs &= ~(unsigned)kMsaStart;
  // Each target posted the receive of this before it said that it had posted.
  for (int i = 0; i < window->start_count; ++i)
    PMPI_Send(NULL, 0, MPI_BYTE, window->start_ranks[i], kCompleted, window->comm);
  free(window->start_ranks);
  window->start_ranks = NULL;
  return failed;
}

static int EndPost(struct msa_window* window) {
  free(window->post_ranks);
  free(window->post_requests);
  window->post_ranks = NULL;
  window->post_requests = NULL;
  atomic_thread_fence(memory_order_seq_cst);
  return MPI_SUCCESS;
}

static int WinWait(MPI_Win win) {
  WINDOW_OR(Win_wait)(win);
  if (window->post_ranks == NULL)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "MPI_Win_wait: there was no MPI_Win_post");
  for (int i = 0; i < 2 * window->post_count; ++i) PMPI_Wait(&window->post_requests[i], MPI_STATUS_IGNORE);
  return EndPost(window);
}

static int WinTest(MPI_Win win, int* flag) {
  WINDOW_OR(Win_test)(win, flag);
  *flag = 0;
  if (window->post_ranks == NULL)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "MPI_Win_test: there was no MPI_Win_post");
  // Those that came are null from then on, which counts as come.
  *flag = 1;
  for (int i = 0; *flag && i < 2 * window->post_count; ++i)
    PMPI_Test(&window->post_requests[i], flag, MPI_STATUS_IGNORE);
  return *flag ? EndPost(window) : MPI_SUCCESS;
}

void msa_install_active(struct msa_calls* calls) {
  calls->Win_fence = &WinFence;
  calls->Win_post = &WinPost;
  calls->Win_start = &WinStart;
  calls->Win_complete = &WinComplete;
  calls->Win_wait = &WinWait;
  calls->Win_test = &WinTest;
}
