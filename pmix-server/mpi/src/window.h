#pragma once
// A NAM window: a stand-in of the MPI (a window of size 0 of this process alone, which gives the handle, the
// name and the error handler), and beside it, in a table, what msa knows of it.

#include <stdatomic.h>
#include <stdint.h>

#include "backend.h"
#include "nam_library.h"
#include "window_table.h"

struct msa_pending;

// A region that this process has attached; shared by windows and stand-in inter-communicators.
struct msa_region {
  msa_nam_region_t handle;
  atomic_int references;
  int count;        // segments, the targets of its windows
  MPI_Aint* bytes;  // MPIX_WIN_SIZES
  int* units;       // MPIX_WIN_DISP_UNITS
  void** address;   // NULL: not mapped
  char* local;      // is the memory mapped?
  struct msa_nam_direct* direct;
  char name[128];
  char port[48];
};

enum msa_held { kMsaFree = 0, kMsaShared, kMsaExclusive, kMsaUnchecked /* MPI_MODE_NOCHECK */ };
enum msa_flavor { kMsaAllocated, kMsaAttached };

// Epochs that give access to all targets.
enum { kMsaFence = 1, kMsaStart = 2, kMsaLockAll = 4, kMsaLockAllUnchecked = 8 };

struct msa_window {
  MPI_Win win;
  MPI_Comm comm;  // a duplicate
  int rank, size;
  enum msa_flavor flavor;
  int is_persistent;
  struct msa_region* region;
  unsigned epochs;
  // By target. `held`: enum msa_held, read by any thread at each access; in a lock_all epoch the thread that
  // has set `taking` takes the lock and sets it.
  unsigned char *held, *taking;
  // MPI_WIN_BASE and so on: attributes are pointers to these.
  void* base;
  MPI_Aint bytes;
  int unit, create_flavor, model;
  // MPI_Win_start and MPI_Win_post: ranks of the group.
  int start_count, post_count;
  int *start_ranks, *post_ranks;
  MPI_Request* post_requests;  // receives of what ends the exposure, then sends of what began it
  // Transfers to memory that is not mapped, not yet complete.
  struct msa_pending* pending;
  int pending_count;
};

// ---- the windows that there are

// NULL: a window of the MPI's own.
static inline struct msa_window* msa_window_of(MPI_Win win) { return msa_window_find((uintptr_t)win); }
// 0, or -1: out of memory. The first one installs the calls of this library (window_install.c).
int msa_window_insert(struct msa_window* window);
void msa_window_remove(struct msa_window* window);

// ---- errors (window_error.c)

// The text for MPI_Error_string; on stderr too if the handler of the window is MPI_ERRORS_ARE_FATAL, which
// shows no text of ours. Calls the handler; returns `code`, a class.
__attribute__((format(printf, 3, 4))) int msa_window_error(struct msa_window* window, int code,
                                                           const char* format, ...);
// The same of a libmsanam result, with libmsanam's text.
int msa_window_nam_error(struct msa_window* window, const char* call, int nam_error);
int msa_comm_error(MPI_Comm comm, int code, const char* text);
int msa_class_of_nam(int nam_error);

// What the ranks of a communicator agree on: the failure of the lowest rank that has one.
struct msa_verdict {
  int code;
  char text[MPI_MAX_ERROR_STRING];
};
__attribute__((format(printf, 3, 4))) void msa_verdict_set(struct msa_verdict* verdict, int code,
                                                           const char* format, ...);
void msa_verdict_nam(struct msa_verdict* verdict, const char* call, int nam_error);
// Collective: all get the same.
void msa_agree(MPI_Comm comm, struct msa_verdict* verdict);

// ---- regions (window_region.c)

// Takes the handle, also on failure. NULL: *verdict says why.
struct msa_region* msa_region_make(msa_nam_region_t handle, struct msa_verdict* verdict);
void msa_region_hold(struct msa_region* region);
// The last one closes it.
void msa_region_drop(struct msa_region* region);
// Collective: `root` has made or opened `handle` (or says in *verdict why not); all others attach by its
// lease. All get the same verdict; NULL if it is a failure, and nothing stays open.
struct msa_region* msa_region_share(MPI_Comm comm, int root, msa_nam_region_t handle,
                                    struct msa_verdict* verdict);

// ---- the calls

int msa_comm_connect(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* inter);
int msa_win_allocate(long size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int msa_win_allocate_c(long size, long unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int msa_win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win);
int msa_win_free(MPI_Win* win);
int msa_win_get_attr(MPI_Win win, int key, void* value, int* flag);
int msa_win_attribute_of(const int* fortran_win, int key, intptr_t* value, int* flag);
int msa_win_get_group(MPI_Win win, MPI_Group* group);
int msa_win_get_info(MPI_Win win, MPI_Info* info);
int msa_win_set_info(MPI_Win win, MPI_Info info);
int msa_win_attach(MPI_Win win, void* base, long size);
// Installs what the first NAM window needs.
void msa_install_rma(struct msa_calls* calls);
void msa_install_counts(struct msa_calls* calls);
void msa_install_atomics(struct msa_calls* calls);
void msa_install_passive(struct msa_calls* calls);
void msa_install_active(struct msa_calls* calls);

// ---- epochs (window_passive.c)

static inline int msa_held(const struct msa_window* window, int target) {
  return __atomic_load_n(&window->held[target], __ATOMIC_ACQUIRE);
}

// May the window's target be accessed now? Takes the shared lock of a lock_all epoch at its first access.
// MPI_SUCCESS, or an error that was raised.
int msa_epoch_enter(struct msa_window* window, int target, const char* call);
// Completes transfers to `target`, -1: to all.
int msa_complete_pending(struct msa_window* window, int target, const char* call);
// Until then. When there are many, all are completed first.
int msa_keep_pending(struct msa_window* window, struct msa_pending* pending, const char* call);
void msa_unlock_everything(struct msa_window* window);

// The value of an info's key, "" if it has none; `fallback` is a second key for the same.
void msa_info_value(MPI_Info info, const char* key, const char* fallback, char* value, int size);
enum msa_kind { kMsaOrdinary, kMsaNam, kMsaNamPersistent, kMsaBadKind };
// deep_mem_kind, else msa_mem_kind. kMsaBadKind: `text` (of 64) is what stands at *key. kMsaOrdinary: neither
// is there.
enum msa_kind msa_memory_kind(MPI_Info info, char* text, const char** key);
// Of a call, *key and `text`.
#define MSA_BAD_KIND                                                                                      \
  "%s: %s is '%s'; expected deep_nam or deep_nam_persistent (msa_mem_kind: nam, nam_persistent too), in " \
  "lower case; leave the key out for the MPI's own memory"
