// Put, Get and their request forms.
#include "direct.h"
#include "refusal.h"
#include "transfer.h"

// MPI's arguments after the target's rank.
struct there {
  long disp;
  long long count;
  MPI_Datatype type;
};

static int Make(struct msa_transfer* t, long long count, MPI_Datatype type, const struct there* there) {
  int failed = msa_side_make(t->window, t->call, count, type, &t->from);
  if (failed == MPI_SUCCESS) failed = msa_side_make(t->window, t->call, there->count, there->type, &t->to);
  if (failed == MPI_SUCCESS) failed = msa_target_check(t, there->disp);
  if (failed != MPI_SUCCESS) return failed;
  const uint64_t here = t->from.count * t->from.layout->size, over = t->to.count * t->to.layout->size;
  if (here == over) return MPI_SUCCESS;
  return msa_window_error(t->window, MPI_ERR_COUNT, "%s: %llu bytes at the origin, %llu at the target",
                          t->call, (unsigned long long)here, (unsigned long long)over);
}

// *pending: as for msa_transfer_run.
static int Move(struct msa_transfer* t, enum msa_direction direction, struct msa_pending** pending) {
  struct msa_staged staged = {.how = direction == kMsaGet ? kMsaStageOut : kMsaStageIn};
  if (t->to.count == 0 || t->to.layout->size == 0) return MPI_SUCCESS;
  const int stage_failed = msa_stage(t->window, t->call, t->origin, &t->from, &staged);
  if (stage_failed != MPI_SUCCESS) return stage_failed;
  t->origin = staged.buffer;
  const int failed = msa_transfer_run(t, direction, staged.allocated != NULL ? NULL : pending);
  const int unstage_failed = msa_unstage(t->window, t->call, &staged, failed != MSA_NAM_OK);
  if (__builtin_expect(failed != MSA_NAM_OK, 0)) return msa_window_nam_error(t->window, t->call, failed);
  return unstage_failed;
}

static int Run(struct msa_transfer* t, enum msa_direction direction, long long count, MPI_Datatype type,
               const struct there* there) {
  struct msa_pending* pending = NULL;
  if (t->target == MPI_PROC_NULL) return MPI_SUCCESS;
  int failed = Make(t, count, type, there);
  if (failed != MPI_SUCCESS) return failed;
  failed = Move(t, direction, &pending);
  if (pending == NULL) return failed;
  return failed == MPI_SUCCESS ? msa_keep_pending(t->window, pending, t->call) : failed;
}

static int RunRequest(struct msa_transfer* t, enum msa_direction direction, long long count,
                      MPI_Datatype type, const struct there* there, MPI_Request* request) {
  struct msa_pending* pending = NULL;
  *request = MPI_REQUEST_NULL;
  if (t->target != MPI_PROC_NULL) {
    int failed = Make(t, count, type, there);
    if (failed == MPI_SUCCESS) failed = Move(t, direction, &pending);
    if (failed != MPI_SUCCESS) return failed;
  }
  return pending != NULL ? msa_request_of(t->window, pending, t->call, request)
                         : msa_request_done(t->window, request);
}

#define WINDOW_OR(otherwise)                      \
  struct msa_window* window = msa_window_of(win); \
  if (__builtin_expect(window == NULL, 0)) return msa_host_calls()->real.otherwise

#define TRANSFER(name) \
  struct msa_transfer t = {.call = name, .window = window, .origin = (char*)origin, .target = target}
#define THERE const struct there there = {disp, target_count, target_type}

// The same predefined datatype and count on both sides, in mapped memory.
#define DIRECT(access)                                                                                   \
  uint64_t bytes;                                                                                        \
  char* at =                                                                                             \
      origin_type == target_type && (long long)origin_count == (long long)target_count                   \
          ? msa_direct_transfer(window, origin, origin_count, origin_type, target, disp, &bytes, access) \
          : NULL

#define DEFINE(suffix, count)                                                              \
  static int Put##suffix(MSA_TRANSFER(count, const), MPI_Win win) {                        \
    WINDOW_OR(Put##suffix)(MSA_TRANSFER_ARGS, win);                                        \
    DIRECT(kMsaWrites);                                                                    \
    if (__builtin_expect(at != NULL, 1)) {                                                 \
      msa_direct_copy(at, origin, bytes);                                                  \
      return MPI_SUCCESS;                                                                  \
    }                                                                                      \
    TRANSFER("MPI_Put");                                                                   \
    THERE;                                                                                 \
    return Run(&t, kMsaPut, origin_count, origin_type, &there);                            \
  }                                                                                        \
  static int Get##suffix(MSA_TRANSFER(count, ), MPI_Win win) {                             \
    WINDOW_OR(Get##suffix)(MSA_TRANSFER_ARGS, win);                                        \
    DIRECT(kMsaReads);                                                                     \
    if (__builtin_expect(at != NULL, 1)) {                                                 \
      msa_direct_copy(origin, at, bytes);                                                  \
      return MPI_SUCCESS;                                                                  \
    }                                                                                      \
    TRANSFER("MPI_Get");                                                                   \
    THERE;                                                                                 \
    return Run(&t, kMsaGet, origin_count, origin_type, &there);                            \
  }                                                                                        \
  static int Rput##suffix(MSA_TRANSFER(count, const), MPI_Win win, MPI_Request* request) { \
    WINDOW_OR(Rput##suffix)(MSA_TRANSFER_ARGS, win, request);                              \
    TRANSFER("MPI_Rput");                                                                  \
    THERE;                                                                                 \
    return RunRequest(&t, kMsaPut, origin_count, origin_type, &there, request);            \
  }                                                                                        \
  static int Rget##suffix(MSA_TRANSFER(count, ), MPI_Win win, MPI_Request* request) {      \
    WINDOW_OR(Rget##suffix)(MSA_TRANSFER_ARGS, win, request);                              \
    TRANSFER("MPI_Rget");                                                                  \
    THERE;                                                                                 \
    return RunRequest(&t, kMsaGet, origin_count, origin_type, &there, request);            \
  }
DEFINE(, int)
DEFINE(_c, long long)

void msa_install_rma(struct msa_calls* calls) {
  calls->Put = &Put;
  calls->Get = &Get;
  calls->Rput = &Rput;
  calls->Rget = &Rget;
}

void msa_install_counts(struct msa_calls* calls) {
  calls->Put_c = &Put_c;
  calls->Get_c = &Get_c;
  calls->Rput_c = &Rput_c;
  calls->Rget_c = &Rget_c;
}
