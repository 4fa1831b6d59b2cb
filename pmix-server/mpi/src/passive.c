// Passive target: locks and flushes. The locks are the region's own, so they hold across jobs.
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "refusal.h"
#include "transfer.h"

#define WINDOW_OR(otherwise)                      \
  struct msa_window* window = msa_window_of(win); \
  if (__builtin_expect(window == NULL, 0)) return msa_host_calls()->real.otherwise

// Transfers that are not complete, of windows whose memory is not mapped.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

enum { kMostPending = 256 };

static struct msa_pending* Take(struct msa_window* window, int target) {
  struct msa_pending* taken = NULL;
  pthread_mutex_lock(&mutex);
  for (struct msa_pending** at = &window->pending; *at != NULL;) {
    struct msa_pending* pending = *at;
    if (target >= 0 && pending->target != target) {
      at = &pending->next;
      continue;
    }
    *at = pending->next;
    pending->next = taken;
    taken = pending;
    --window->pending_count;
  }
  pthread_mutex_unlock(&mutex);
  return taken;
}

int msa_complete_pending(struct msa_window* window, int target, const char* call) {
  int first = MSA_NAM_OK;
  const int is_local = target >= 0 && window->region->local[target];
  atomic_thread_fence(memory_order_seq_cst);
  if (__builtin_expect(is_local, 1)) return MPI_SUCCESS;
  for (struct msa_pending* pending = Take(window, target); pending != NULL;) {
    struct msa_pending* next = pending->next;
    const int failed = msa_pending_finish(pending);
    if (first == MSA_NAM_OK) first = failed;
    pending = next;
  }
  // And what requests of the program's are waiting for.
  const int failed = msa_nam.flush(window->region->handle, target >= 0 ? (uint32_t)target : ~0u);
  if (first == MSA_NAM_OK) first = failed;
  return first == MSA_NAM_OK ? MPI_SUCCESS : msa_window_nam_error(window, call, first);
}

int msa_keep_pending(struct msa_window* window, struct msa_pending* pending, const char* call) {
  pthread_mutex_lock(&mutex);
  pending->next = window->pending;
  window->pending = pending;
  const int is_much = ++window->pending_count >= kMostPending;
  pthread_mutex_unlock(&mutex);
  return is_much ? msa_complete_pending(window, -1, call) : MPI_SUCCESS;
}

// --------------------------------------------------------------------------------------------- locks

// Its holder may need this process's MPI to come on: waiting drives the MPI's progress. Grows to 1 ms, as
// nodes have few cores and holders may be long.
static void Pause(const struct msa_window* window, unsigned round) {
  int found;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window->comm, &found, MPI_STATUS_IGNORE);
  if (round < 64) {
    sched_yield();
    return;
  }
  const long most = 1000 * 1000, grown = 10000L * (long)(round - 63);
  const struct timespec pause = {0, grown < most ? grown : most};
  nanosleep(&pause, NULL);
}

struct waiting {
  const struct msa_window* window;
  unsigned round;
};

static int PauseAndGoOn(void* state) {
  struct waiting* waiting = state;
  Pause(waiting->window, waiting->round++);
  return 1;
}

// In one call of libmsanam, so that the claim of an exclusive lock stands all the time and readers that take
// turns do not starve a writer.
static int Acquire(struct msa_window* window, int target, enum msa_held how, const char* call) {
  const enum msa_nam_lock_mode mode = how == kMsaExclusive ? MSA_NAM_EXCLUSIVE : MSA_NAM_SHARED;
  struct waiting waiting = {window, 0};
  const int failed =
      msa_nam.lock_while(window->region->handle, (uint32_t)target, mode, &PauseAndGoOn, &waiting);
  if (failed == MSA_NAM_ERR_ARG)  // this process holds it by another window of the same region
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: %s", call, msa_nam.error_text());
  if (failed != MSA_NAM_OK) return msa_window_nam_error(window, call, failed);
  __atomic_store_n(&window->held[target], (unsigned char)how, __ATOMIC_RELEASE);
  return MPI_SUCCESS;
}

// The first access of a lock_all epoch to a target. Threads that come at once: one takes the lock, the others
// wait for it, as their accesses need it too, and drive the MPI meanwhile. By target, since what one waits
// for may be freed only after another has done its part elsewhere.
static int AcquireOnce(struct msa_window* window, int target, const char* call) {
  for (unsigned round = 0; __atomic_exchange_n(&window->taking[target], 1, __ATOMIC_ACQUIRE) != 0; ++round) {
    Pause(window, round);
    if (msa_held(window, target) != kMsaFree) return MPI_SUCCESS;
  }
  const int failed =
      msa_held(window, target) == kMsaFree ? Acquire(window, target, kMsaShared, call) : MPI_SUCCESS;
  __atomic_store_n(&window->taking[target], 0, __ATOMIC_RELEASE);
  return failed;
}

int msa_epoch_enter(struct msa_window* window, int target, const char* call) {
  if (__builtin_expect(msa_held(window, target) != kMsaFree, 1)) return MPI_SUCCESS;
  if (window->epochs & (kMsaFence | kMsaStart | kMsaLockAllUnchecked)) return MPI_SUCCESS;
  if (window->epochs & kMsaLockAll) return AcquireOnce(window, target, call);
  return msa_window_error(window, MPI_ERR_RMA_SYNC,
                          "%s: no epoch gives access to target %d; call MPI_Win_lock, MPI_Win_lock_all, "
                          "MPI_Win_fence or MPI_Win_start first",
                          call, target);
}

static int Release(struct msa_window* window, int target, const char* call) {
  const int how = window->held[target];
  window->held[target] = kMsaFree;
  if (how == kMsaFree || how == kMsaUnchecked) return MPI_SUCCESS;
  const int failed = msa_nam.unlock(window->region->handle, (uint32_t)target);
  return failed == MSA_NAM_OK ? MPI_SUCCESS : msa_window_nam_error(window, call, failed);
}

void msa_unlock_everything(struct msa_window* window) {
  for (int target = 0; target < window->region->count; ++target)
    if (window->held[target] == kMsaShared || window->held[target] == kMsaExclusive)
      msa_nam.unlock(window->region->handle, (uint32_t)target);
  memset(window->held, kMsaFree, (size_t)window->region->count);
  window->epochs = 0;
}

static int TargetError(struct msa_window* window, int target, const char* call) {
  return msa_window_error(window, MPI_ERR_RANK, "%s: target %d; the window has %d", call, target,
                          window->region->count);
}

static int IsTarget(const struct msa_window* window, int target) {
  return (unsigned)target < (unsigned)window->region->count;
}

static int WinLock(int type, int target, int assertion, MPI_Win win) {
  WINDOW_OR(Win_lock)(type, target, assertion, win);
  static const char kCall[] = "MPI_Win_lock";
  if (target == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!IsTarget(window, target)) return TargetError(window, target, kCall);
  if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED)
    return msa_window_error(window, MPI_ERR_LOCKTYPE,
                            "%s: type %d; expected MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED", kCall, type);
  if (window->held[target] != kMsaFree || (window->epochs & (kMsaLockAll | kMsaLockAllUnchecked)) != 0)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: target %d is locked by this process already",
                            kCall, target);
  if (assertion & MPI_MODE_NOCHECK) {
    window->held[target] = kMsaUnchecked;
    return MPI_SUCCESS;
  }
  return Acquire(window, target, type == MPI_LOCK_EXCLUSIVE ? kMsaExclusive : kMsaShared, kCall);
}

static int WinUnlock(int target, MPI_Win win) {
  WINDOW_OR(Win_unlock)(target, win);
  static const char kCall[] = "MPI_Win_unlock";
  if (target == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!IsTarget(window, target)) return TargetError(window, target, kCall);
  if (window->held[target] == kMsaFree || (window->epochs & (kMsaLockAll | kMsaLockAllUnchecked)) != 0)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: target %d is not locked by MPI_Win_lock", kCall,
                            target);
  // Freeing the lock of what is mapped is an atomic instruction, before which all stores become visible.
  const int is_fenced = window->region->local[target] && window->held[target] != kMsaUnchecked;
  const int failed = is_fenced ? MPI_SUCCESS : msa_complete_pending(window, target, kCall);
  const int unlock_failed = Release(window, target, kCall);
  return failed != MPI_SUCCESS ? failed : unlock_failed;
}

static int WinLockAll(int assertion, MPI_Win win) {
  WINDOW_OR(Win_lock_all)(assertion, win);
  static const char kCall[] = "MPI_Win_lock_all";
  int is_held = (window->epochs & (kMsaLockAll | kMsaLockAllUnchecked)) != 0;
  for (int target = 0; target < window->region->count; ++target) is_held |= window->held[target] != kMsaFree;
  if (is_held)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: this process holds a lock of the window already",
                            kCall);
  if (assertion & MPI_MODE_NOCHECK) {
    window->epochs |= kMsaLockAllUnchecked;
    return MPI_SUCCESS;
  }
  // The locks themselves are taken at the first access of each target; that of the process's own memory at
  // once, which it may load and store without a call.
  window->epochs |= kMsaLockAll;
  const int failed = window->base != NULL ? AcquireOnce(window, window->rank, kCall) : MPI_SUCCESS;
  if (failed != MPI_SUCCESS) window->epochs &= ~(unsigned)kMsaLockAll;
  return failed;
}

static int WinUnlockAll(MPI_Win win) {
  WINDOW_OR(Win_unlock_all)(win);
  static const char kCall[] = "MPI_Win_unlock_all";
  if ((window->epochs & (kMsaLockAll | kMsaLockAllUnchecked)) == 0)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: there was no MPI_Win_lock_all", kCall);
  int first = msa_complete_pending(window, -1, kCall);
  window->epochs &= ~(unsigned)(kMsaLockAll | kMsaLockAllUnchecked);
  for (int target = 0; target < window->region->count; ++target) {
    if (window->held[target] == kMsaFree) continue;
    const int failed = Release(window, target, kCall);
    if (first == MPI_SUCCESS) first = failed;
  }
  return first;
}

// -------------------------------------------------------------------------------------------- flushes

static int Flush(struct msa_window* window, int target, const char* call) {
  if (target == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!IsTarget(window, target)) return TargetError(window, target, call);
  if (window->held[target] == kMsaFree && (window->epochs & (kMsaLockAll | kMsaLockAllUnchecked)) == 0)
    return msa_window_error(window, MPI_ERR_RMA_SYNC, "%s: target %d is not locked by this process", call,
                            target);
  return msa_complete_pending(window, target, call);
}

static int WinFlush(int target, MPI_Win win) {
  WINDOW_OR(Win_flush)(target, win);
  return Flush(window, target, "MPI_Win_flush");
}
static int WinFlushLocal(int target, MPI_Win win) {
  WINDOW_OR(Win_flush_local)(target, win);
  return Flush(window, target, "MPI_Win_flush_local");
}
static int WinFlushAll(MPI_Win win) {
  WINDOW_OR(Win_flush_all)(win);
  return msa_complete_pending(window, -1, "MPI_Win_flush_all");
}
static int WinFlushLocalAll(MPI_Win win) {
  WINDOW_OR(Win_flush_local_all)(win);
  return msa_complete_pending(window, -1, "MPI_Win_flush_local_all");
}
static int WinSync(MPI_Win win) {
  struct msa_window* window = msa_window_of(win);
  if (window == NULL) return msa_host_calls()->real.Win_sync(win);
  atomic_thread_fence(memory_order_seq_cst);
  return MPI_SUCCESS;
}

void msa_install_passive(struct msa_calls* calls) {
  calls->Win_lock = &WinLock;
  calls->Win_unlock = &WinUnlock;
  calls->Win_lock_all = &WinLockAll;
  calls->Win_unlock_all = &WinUnlockAll;
  calls->Win_flush = &WinFlush;
  calls->Win_flush_local = &WinFlushLocal;
  calls->Win_flush_all = &WinFlushAll;
  calls->Win_flush_local_all = &WinFlushLocalAll;
  calls->Win_sync = &WinSync;
}
