#include "transfer.h"

#include <stdlib.h>
#include <string.h>

// Pieces of one call of libmsanam: 12 KiB of stack.
enum { kPieces = 512 };

int msa_side_make(struct msa_window* window, const char* call, long long count, MPI_Datatype type,
                  struct msa_side* side) {
  side->count = (uint64_t)count;
  side->layout = NULL;
  if (count < 0)
    return msa_window_error(window, MPI_ERR_COUNT, "%s: count %lld; expected 0 or more", call, count);
  side->layout = msa_layout_of(type);
  if (side->layout != NULL) return MPI_SUCCESS;
  return msa_window_error(window, MPI_ERR_TYPE,
                          "%s: not a datatype, or one of more pieces than this process has memory to list",
                          call);
}

static int RangeError(const struct msa_transfer* transfer, long disp) {
  const struct msa_region* region = transfer->window->region;
  int64_t low = 0, high = 0;
  const char* call = transfer->call;
  const long long bytes = region->bytes[transfer->target];
  const int unit = region->units[transfer->target];
  if (msa_layout_span(transfer->to.layout, transfer->to.count, &low, &high) != 0)
    return msa_window_error(transfer->window, MPI_ERR_RMA_RANGE,
                            "%s: the data spans more than 2^63 bytes; segment %d has %lld", call,
                            transfer->target, bytes);
  return msa_window_error(transfer->window, MPI_ERR_RMA_RANGE,
                          "%s: displacement %ld * %d bytes and %lld bytes from there leave segment %d, which "
                          "has %lld bytes",
                          call, disp, unit, (long long)(high - low), transfer->target, bytes);
}

int msa_target_check(struct msa_transfer* transfer, long disp) {
  struct msa_window* window = transfer->window;
  const int target = transfer->target;
  if ((unsigned)target >= (unsigned)window->region->count)
    return msa_window_error(window, MPI_ERR_RANK, "%s: target %d; the window has %d", transfer->call, target,
                            window->region->count);
  int64_t low = 0, high = 0, offset = 0;
  const int64_t size = window->region->bytes[target];
  const int is_open = msa_epoch_enter(window, target, transfer->call);
  if (is_open != MPI_SUCCESS) return is_open;
  if (__builtin_mul_overflow((int64_t)disp, (int64_t)window->region->units[target], &offset) ||
      msa_layout_span(transfer->to.layout, transfer->to.count, &low, &high) != 0)
    return RangeError(transfer, disp);
  transfer->offset = (uint64_t)offset;
  if (transfer->to.count == 0 || transfer->to.layout->size == 0) return MPI_SUCCESS;
  if (__builtin_add_overflow(offset, low, &low) || __builtin_add_overflow(offset, high, &high) || low < 0 ||
      high > size)
    return RangeError(transfer, disp);
  return MPI_SUCCESS;
}

// ------------------------------------------------------------------------------------------- requests

void msa_pending_free(struct msa_pending* pending) {
  if (pending == NULL) return;
  free(pending->requests);
  free(pending);
}

int msa_pending_finish(struct msa_pending* pending) {
  int first = MSA_NAM_OK;
  for (int i = 0; pending != NULL && i < pending->count; ++i) {
    int failed = msa_nam.wait(pending->requests[i]);
    if (first == MSA_NAM_OK) first = failed;
  }
  msa_pending_free(pending);
  return first;
}

static int Grow(struct msa_pending* pending) {
  const int capacity = pending->capacity > 0 ? 2 * pending->capacity : 4;
  msa_nam_request_t* more = realloc(pending->requests, (size_t)capacity * sizeof *more);
  if (more == NULL) return -1;
  pending->requests = more;
  pending->capacity = capacity;
  return 0;
}

// --------------------------------------------------------------------------------------------- pieces

struct batch {
  const struct msa_transfer* transfer;
  enum msa_direction direction;
  struct msa_pending* pending;  // NULL: each batch is done when it is sent
  size_t count;
  struct msa_nam_piece pieces[kPieces];
};

static int Send(struct batch* batch) {
  const msa_nam_region_t handle = batch->transfer->window->region->handle;
  const uint32_t segment = (uint32_t)batch->transfer->target;
  const int is_put = batch->direction == kMsaPut;
  const size_t count = batch->count;
  struct msa_pending* pending = batch->pending;
  batch->count = 0;
  if (count == 0) return MSA_NAM_OK;
  if (pending == NULL || (pending->count == pending->capacity && Grow(pending) != 0))
    return is_put ? msa_nam.putv(handle, segment, batch->pieces, count)
                  : msa_nam.getv(handle, segment, batch->pieces, count);
  msa_nam_request_t* request = &pending->requests[pending->count];
  const int failed = is_put ? msa_nam.iputv(handle, segment, batch->pieces, count, request)
                            : msa_nam.igetv(handle, segment, batch->pieces, count, request);
  pending->count += failed == MSA_NAM_OK;
  return failed;
}

// What is contiguous is one piece, however many elements the type map has: not a piece a byte for MPI_BYTE.
static uint64_t PieceLeft(const struct msa_cursor* cursor, uint64_t left) {
  return cursor->layout->is_contiguous ? left : msa_cursor_left(cursor);
}
static void Pass(struct msa_cursor* cursor, uint64_t bytes) {
  if (cursor->layout->is_contiguous)
    cursor->base += (int64_t)bytes;
  else
    msa_cursor_advance(cursor, bytes);
}

// Both type maps side by side.
static int Walk(struct batch* batch) {
  const struct msa_transfer* t = batch->transfer;
  struct msa_cursor here = msa_cursor_at(t->from.layout, 0);
  struct msa_cursor there = msa_cursor_at(t->to.layout, (int64_t)t->offset);
  for (uint64_t left = t->to.count * t->to.layout->size; left > 0;) {
    const uint64_t a = PieceLeft(&here, left), b = PieceLeft(&there, left);
    const uint64_t bytes = a < b ? a : b;
    if (batch->count == kPieces) {
      const int failed = Send(batch);
      if (failed != MSA_NAM_OK) return failed;
    }
    batch->pieces[batch->count++] = (struct msa_nam_piece){(uint64_t)msa_cursor_offset(&there),
                                                           t->origin + msa_cursor_offset(&here), bytes};
    Pass(&here, bytes);
    Pass(&there, bytes);
    left -= bytes;
  }
  return Send(batch);
}

// Equal blocks on one side, one piece or blocks of that size on the other. -1: they are not.
static int Strided(const struct msa_transfer* t, enum msa_direction direction) {
  struct msa_blocks here, there;
  if (!msa_layout_blocks(t->from.layout, t->from.count, &here) ||
      !msa_layout_blocks(t->to.layout, t->to.count, &there))
    return -1;
  // What is contiguous counts as blocks of the other side's size.
  if (t->from.layout->is_contiguous)
    here = (struct msa_blocks){0, (int64_t)there.block, there.block, there.count};
  if (t->to.layout->is_contiguous)
    there = (struct msa_blocks){0, (int64_t)here.block, here.block, here.count};
  if (here.block != there.block || here.count != there.count) return -1;
  const struct msa_nam_strided shape = {t->offset + (uint64_t)there.offset, there.stride, here.stride,
                                        here.block, here.count};
  char* origin = t->origin + here.offset;
  const msa_nam_region_t handle = t->window->region->handle;
  return direction == kMsaPut ? msa_nam.put_strided(handle, (uint32_t)t->target, &shape, origin)
                              : msa_nam.get_strided(handle, (uint32_t)t->target, &shape, origin);
}

static int AtOnce(const struct msa_transfer* t, enum msa_direction direction) {
  const msa_nam_region_t handle = t->window->region->handle;
  const uint64_t bytes = t->to.count * t->to.layout->size;
  if (t->from.layout->is_contiguous && t->to.layout->is_contiguous)
    return direction == kMsaPut ? msa_nam.put(handle, (uint32_t)t->target, t->offset, t->origin, bytes)
                                : msa_nam.get(handle, (uint32_t)t->target, t->offset, t->origin, bytes);
  const int done = Strided(t, direction);
  if (done >= 0) return done;
  struct batch batch;
  batch.transfer = t;
  batch.direction = direction;
  batch.pending = NULL;
  batch.count = 0;
  return Walk(&batch);
}

int msa_transfer_run(const struct msa_transfer* t, enum msa_direction direction,
                     struct msa_pending** pending) {
  struct batch batch;
  if (pending == NULL || t->window->region->local[t->target]) return AtOnce(t, direction);
  *pending = calloc(1, sizeof **pending);
  if (*pending == NULL) return AtOnce(t, direction);
  (*pending)->target = t->target;
  batch.transfer = t;
  batch.direction = direction;
  batch.pending = *pending;
  batch.count = 0;
  int failed = Walk(&batch);
  if (failed == MSA_NAM_OK && (*pending)->count > 0) return MSA_NAM_OK;
  const int others = msa_pending_finish(*pending);
  *pending = NULL;
  return failed != MSA_NAM_OK ? failed : others;
}
