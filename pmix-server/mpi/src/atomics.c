// Accumulate, Get_accumulate, Fetch_and_op, Compare_and_swap and the request forms.
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "direct.h"
#include "transfer.h"

struct update {
  struct msa_transfer t;  // origin and target
  char* result;           // NULL: none is wanted
  struct msa_side into;
  enum msa_nam_op op;
};

// Pairs as whole structs.
static void TakeWhole(struct msa_side* side) {
  if (side->layout != NULL && side->layout->whole != NULL) side->layout = side->layout->whole;
}

static int OpError(const struct update* u, MPI_Op op) {
  (void)op;
  return msa_window_error(
      u->t.window, MPI_ERR_OP,
      "%s: not one of MPI's own operations, or not one for this datatype (MPI 4.0, table of "
      "6.9.2); windows know no operations of programs",
      u->t.call);
}

static int CheckSizes(const struct update* u) {
  const struct msa_side* to = &u->t.to;
  const uint64_t over = to->count * to->layout->size;
  const struct msa_side* sides[] = {u->op == MSA_NAM_NO_OP ? NULL : &u->t.from,
                                    u->result != NULL ? &u->into : NULL};
  for (int i = 0; i < 2; ++i) {
    if (sides[i] == NULL) continue;
    const uint64_t here = sides[i]->count * sides[i]->layout->size;
    if (here != over)
      return msa_window_error(u->t.window, MPI_ERR_COUNT, "%s: %llu bytes at the origin, %llu at the target",
                              u->t.call, (unsigned long long)here, (unsigned long long)over);
    if (over != 0 && sides[i]->layout->nam_type != to->layout->nam_type)
      return msa_window_error(u->t.window, MPI_ERR_TYPE,
                              "%s: origin and target are not of the same predefined datatype", u->t.call);
  }
  return MPI_SUCCESS;
}

struct arguments {
  long long count, result_count, target_count;
  MPI_Datatype type, result_type, target_type;
  long disp;
  MPI_Op op;
};

static int Make(struct update* u, const struct arguments* a) {
  struct msa_window* window = u->t.window;
  int failed = msa_side_make(window, u->t.call, a->target_count, a->target_type, &u->t.to);
  if (failed != MPI_SUCCESS) return failed;
  TakeWhole(&u->t.to);
  const struct msa_layout* layout = u->t.to.layout;
  const int op = msa_op_of(a->op, layout->kind);
  if (op < 0) return OpError(u, a->op);
  if (layout->nam_type < 0 && layout->size > 0)
    return msa_window_error(
        window, MPI_ERR_TYPE,
        "%s: a target of several predefined datatypes, or of one that cannot be accumulated", u->t.call);
  u->op = (enum msa_nam_op)op;
  if (op != MSA_NAM_NO_OP) failed = msa_side_make(window, u->t.call, a->count, a->type, &u->t.from);
  if (failed == MPI_SUCCESS && u->result != NULL)
    failed = msa_side_make(window, u->t.call, a->result_count, a->result_type, &u->into);
  if (failed != MPI_SUCCESS) return failed;
  TakeWhole(&u->t.from);
  TakeWhole(&u->into);
  failed = msa_target_check(&u->t, a->disp);
  return failed == MPI_SUCCESS ? CheckSizes(u) : failed;
}

static int Call(const struct update* u, uint64_t offset, const char* operand, char* result, uint64_t count) {
  const msa_nam_region_t handle = u->t.window->region->handle;
  const enum msa_nam_type type = (enum msa_nam_type)u->t.to.layout->nam_type;
  if (result == NULL)
    return msa_nam.accumulate(handle, (uint32_t)u->t.target, offset, u->op, type, operand, count);
  return msa_nam.get_accumulate(handle, (uint32_t)u->t.target, offset, u->op, type, operand, result, count);
}

// ------------------------------------------------------------------------------------------- packing

enum packing { kPack, kUnpack };

static void Pack(const struct msa_side* side, char* data, char* packed, enum packing packing) {
  struct msa_cursor at = msa_cursor_at(side->layout, 0);
  for (uint64_t left = side->count * side->layout->size; left > 0;) {
    const uint64_t bytes = msa_cursor_left(&at);
    char* here = data + msa_cursor_offset(&at);
    memcpy(packing == kPack ? packed : here, packing == kPack ? here : packed, bytes);
    msa_cursor_advance(&at, bytes);
    packed += bytes;
    left -= bytes;
  }
}

// The data one after the other: the program's own buffer, or *copy, to be freed. NULL: no memory.
static char* Flat(const struct msa_side* side, char* data, char** copy, int is_input) {
  *copy = NULL;
  if (data == NULL || side->layout == NULL || side->layout->is_contiguous) return data;
  *copy = malloc(side->count * side->layout->size);
  if (*copy != NULL && is_input) Pack(side, data, *copy, kPack);
  return *copy;
}

static int Sweep(const struct update* u, const char* operand, char* result) {
  const uint64_t element = msa_nam.type_bytes((enum msa_nam_type)u->t.to.layout->nam_type);
  struct msa_cursor at = msa_cursor_at(u->t.to.layout, (int64_t)u->t.offset);
  for (uint64_t left = u->t.to.count * u->t.to.layout->size; left > 0;) {
    const uint64_t bytes = msa_cursor_left(&at);
    const int failed = Call(u, (uint64_t)msa_cursor_offset(&at), operand, result, bytes / element);
    if (failed != MSA_NAM_OK) return failed;
    msa_cursor_advance(&at, bytes);
    if (operand != NULL) operand += bytes;
    if (result != NULL) result += bytes;
    left -= bytes;
  }
  return MSA_NAM_OK;
}

static int Apply(struct update* u) {
  char *operand_copy = NULL, *result_copy = NULL;
  const char* operand = u->op == MSA_NAM_NO_OP ? NULL : Flat(&u->t.from, u->t.origin, &operand_copy, 1);
  char* result = Flat(&u->into, u->result, &result_copy, 0);
  int failed = MPI_SUCCESS;
  if ((operand == NULL && u->op != MSA_NAM_NO_OP) || (result == NULL && u->result != NULL)) {
    failed = msa_window_error(u->t.window, MPI_ERR_NO_MEM, "%s: no memory to pack %llu bytes", u->t.call,
                              (unsigned long long)(u->t.to.count * u->t.to.layout->size));
  } else {
    const int nam_failed = Sweep(u, operand, result);
    if (nam_failed == MSA_NAM_OK && result_copy != NULL) Pack(&u->into, u->result, result_copy, kUnpack);
    if (nam_failed != MSA_NAM_OK) failed = msa_window_nam_error(u->t.window, u->t.call, nam_failed);
  }
  free(operand_copy);
  free(result_copy);
  return failed;
}

// Buffers of a device through the host.
static int Staged(struct update* u) {
  struct msa_staged origin = {.how = kMsaStageIn}, result = {.how = kMsaStageOut};
  int failed = MPI_SUCCESS;
  if (u->op != MSA_NAM_NO_OP) failed = msa_stage(u->t.window, u->t.call, u->t.origin, &u->t.from, &origin);
  if (failed != MPI_SUCCESS) return failed;
  if (u->result != NULL) failed = msa_stage(u->t.window, u->t.call, u->result, &u->into, &result);
  if (failed == MPI_SUCCESS) {
    if (u->op != MSA_NAM_NO_OP) u->t.origin = origin.buffer;
    if (u->result != NULL) u->result = result.buffer;
    failed = Apply(u);
  }
  const int back = msa_unstage(u->t.window, u->t.call, &result, failed != MPI_SUCCESS);
  msa_unstage(u->t.window, u->t.call, &origin, failed != MPI_SUCCESS);
  return failed != MPI_SUCCESS ? failed : back;
}

static int Run(struct update* u, const struct arguments* a) {
  if (u->t.target == MPI_PROC_NULL) return MPI_SUCCESS;
  int failed = Make(u, a);
  if (failed != MPI_SUCCESS || u->t.to.count == 0 || u->t.to.layout->size == 0) return failed;
  const int is_plain = u->t.to.layout->is_contiguous &&
                       (u->op == MSA_NAM_NO_OP || u->t.from.layout->is_contiguous) &&
                       (u->result == NULL || u->into.layout->is_contiguous);
  if (!is_plain || msa_is_on_device(u->t.origin) || msa_is_on_device(u->result)) return Staged(u);
  const uint64_t element = msa_nam.type_bytes((enum msa_nam_type)u->t.to.layout->nam_type);
  failed = Call(u, u->t.offset, u->op == MSA_NAM_NO_OP ? NULL : u->t.origin, u->result,
                u->t.to.count * u->t.to.layout->size / element);
  return failed == MSA_NAM_OK ? MPI_SUCCESS : msa_window_nam_error(u->t.window, u->t.call, failed);
}

// Atomics are done at once: of one that is only begun it would not be known whether it counts.
static int RunRequest(struct update* u, const struct arguments* a, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  const int failed = Run(u, a);
  return failed == MPI_SUCCESS ? msa_request_done(u->t.window, request) : failed;
}

// ------------------------------------------------------------------------------------------ the calls

#define WINDOW_OR(otherwise)                      \
  struct msa_window* window = msa_window_of(win); \
  if (__builtin_expect(window == NULL, 0)) return msa_host_calls()->real.otherwise
#define UPDATE(name, into)                                                                             \
  struct update u = {.t = {.call = name, .window = window, .origin = (char*)origin, .target = target}, \
                     .result = into}

#define ACCUMULATE_ARGUMENTS                                \
  const struct arguments a = {.count = origin_count,        \
                              .type = origin_type,          \
                              .disp = disp,                 \
                              .target_count = target_count, \
                              .target_type = target_type,   \
                              .op = op}
#define FETCH_ARGUMENTS                                     \
  const struct arguments a = {.count = origin_count,        \
                              .type = origin_type,          \
                              .result_count = result_count, \
                              .result_type = result_type,   \
                              .target_count = target_count, \
                              .target_type = target_type,   \
                              .disp = disp,                 \
                              .op = op}

#define DEFINE(suffix, count)                                                                                \
  static int Accumulate##suffix(MSA_TRANSFER(count, const), MPI_Op op, MPI_Win win) {                        \
    WINDOW_OR(Accumulate##suffix)(MSA_TRANSFER_ARGS, op, win);                                               \
    if (origin_count == 1 && target_count == 1 && origin_type == target_type &&                              \
        msa_direct_update(window, origin, NULL, origin_type, target, disp, op))                              \
      return MPI_SUCCESS;                                                                                    \
    UPDATE("MPI_Accumulate", NULL);                                                                          \
    ACCUMULATE_ARGUMENTS;                                                                                    \
    return Run(&u, &a);                                                                                      \
  }                                                                                                          \
  static int Raccumulate##suffix(MSA_TRANSFER(count, const), MPI_Op op, MPI_Win win, MPI_Request* request) { \
    WINDOW_OR(Raccumulate##suffix)(MSA_TRANSFER_ARGS, op, win, request);                                     \
    UPDATE("MPI_Raccumulate", NULL);                                                                         \
    ACCUMULATE_ARGUMENTS;                                                                                    \
    return RunRequest(&u, &a, request);                                                                      \
  }                                                                                                          \
  static int Get_accumulate##suffix(MSA_FETCH(count), MPI_Win win) {                                         \
    WINDOW_OR(Get_accumulate##suffix)(MSA_FETCH_ARGS, win);                                                  \
    UPDATE("MPI_Get_accumulate", result);                                                                    \
    FETCH_ARGUMENTS;                                                                                         \
    return Run(&u, &a);                                                                                      \
  }                                                                                                          \
  static int Rget_accumulate##suffix(MSA_FETCH(count), MPI_Win win, MPI_Request* request) {                  \
    WINDOW_OR(Rget_accumulate##suffix)(MSA_FETCH_ARGS, win, request);                                        \
    UPDATE("MPI_Rget_accumulate", result);                                                                   \
    FETCH_ARGUMENTS;                                                                                         \
    return RunRequest(&u, &a, request);                                                                      \
  }
DEFINE(, int)
DEFINE(_c, long long)

static int FetchAndOpSlowly(const void* origin, void* result, MPI_Datatype type, int target, long disp,
                            MPI_Op op, struct msa_window* window) {
  UPDATE("MPI_Fetch_and_op", result);
  const struct arguments a = {1, 1, 1, type, type, type, disp, op};
  return Run(&u, &a);
}

static int FetchAndOp(const void* origin, void* result, MPI_Datatype type, int target, long disp, MPI_Op op,
                      MPI_Win win) {
  WINDOW_OR(Fetch_and_op)(origin, result, type, target, disp, op, win);
  if (__builtin_expect(result != NULL && msa_direct_update(window, origin, result, type, target, disp, op),
                       1))
    return MPI_SUCCESS;
  return FetchAndOpSlowly(origin, result, type, target, disp, op, window);
}

static int CompareAndSwapSlowly(const void* origin, const void* compare, void* result, MPI_Datatype type,
                                int target, long disp, struct msa_window* window) {
  UPDATE("MPI_Compare_and_swap", NULL);
  char values[3][16];
  if (target == MPI_PROC_NULL) return MPI_SUCCESS;
  int failed = msa_side_make(window, u.t.call, 1, type, &u.t.to);
  if (failed == MPI_SUCCESS) failed = msa_target_check(&u.t, disp);
  if (failed != MPI_SUCCESS) return failed;
  const struct msa_layout* layout = u.t.to.layout;
  if (layout->nam_type < 0 || layout->size > 8 || !layout->is_contiguous ||
      (layout->kind != kMsaInteger && layout->kind != kMsaLogical && layout->kind != kMsaBytes))
    return msa_window_error(window, MPI_ERR_TYPE,
                            "MPI_Compare_and_swap: not an integer, a logical or MPI_BYTE of 1 to 8 bytes");
  const void* buffers[] = {origin, compare, result};
  const struct msa_side one = {layout, 1};
  struct msa_staged staged[3] = {{.how = kMsaStageIn}, {.how = kMsaStageIn}, {.how = kMsaStageOut}};
  for (int i = 0; failed == MPI_SUCCESS && i < 3; ++i)
    failed = msa_stage(window, u.t.call, buffers[i], &one, &staged[i]);
  for (int i = 0; failed == MPI_SUCCESS && i < 2; ++i) memcpy(values[i], staged[i].buffer, layout->size);
  if (failed == MPI_SUCCESS) {
    failed = msa_nam.compare_swap(window->region->handle, (uint32_t)target, u.t.offset,
                                  (enum msa_nam_type)layout->nam_type, values[1], values[0], values[2]);
    if (failed == MSA_NAM_OK)
      memcpy(staged[2].buffer, values[2], layout->size);
    else
      failed = msa_window_nam_error(window, u.t.call, failed);
  }
  for (int i = 0; i < 3; ++i) {
    const int back = msa_unstage(window, u.t.call, &staged[i], failed != MPI_SUCCESS);
    if (failed == MPI_SUCCESS) failed = back;
  }
  return failed;
}

static int CompareAndSwap(const void* origin, const void* compare, void* result, MPI_Datatype type,
                          int target, long disp, MPI_Win win) {
  WINDOW_OR(Compare_and_swap)(origin, compare, result, type, target, disp, win);
  if (__builtin_expect(msa_direct_swap(window, origin, compare, result, type, target, disp), 1))
    return MPI_SUCCESS;
  return CompareAndSwapSlowly(origin, compare, result, type, target, disp, window);
}

void msa_install_atomics(struct msa_calls* calls) {
  calls->Accumulate = &Accumulate;
  calls->Raccumulate = &Raccumulate;
  calls->Get_accumulate = &Get_accumulate;
  calls->Rget_accumulate = &Rget_accumulate;
  calls->Accumulate_c = &Accumulate_c;
  calls->Raccumulate_c = &Raccumulate_c;
  calls->Get_accumulate_c = &Get_accumulate_c;
  calls->Rget_accumulate_c = &Rget_accumulate_c;
  calls->Fetch_and_op = &FetchAndOp;
  calls->Compare_and_swap = &CompareAndSwap;
}
