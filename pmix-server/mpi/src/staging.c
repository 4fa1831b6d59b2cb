#include <stdlib.h>

#include "device.h"
#include "transfer.h"

// Piece by piece, in the order of the type map; neighbours as one.
static int Runs(const struct msa_staged* staged, const struct msa_device_copy* copy) {
  const uint64_t all = staged->side.count * staged->side.layout->size;
  if (staged->side.layout->is_contiguous)
    return msa_device_piece(copy, staged->device, staged->buffer, (size_t)all);
  struct msa_cursor at = msa_cursor_at(staged->side.layout, 0);
  int64_t begin = 0, end = 0;
  int failed = 0;
  for (uint64_t left = all; left > 0 && failed == 0;) {
    const uint64_t bytes = msa_cursor_left(&at);
    const int64_t offset = msa_cursor_offset(&at);
    if (offset != end && end > begin)
      failed = msa_device_piece(copy, staged->device + begin, staged->buffer + begin, (size_t)(end - begin));
    if (offset != end) begin = offset;
    end = offset + (int64_t)bytes;
    msa_cursor_advance(&at, bytes);
    left -= bytes;
  }
  return failed == 0 && end > begin
             ? msa_device_piece(copy, staged->device + begin, staged->buffer + begin, (size_t)(end - begin))
             : failed;
}

// The data alone: its gaps may be no memory, and another thread or the device may be writing there.
static int Copy(const struct msa_staged* staged, enum msa_device_direction direction) {
  struct msa_device_copy copy;
  struct msa_blocks blocks;
  int failed = -1;
  const struct msa_side* side = &staged->side;
  msa_device_begin(&copy, direction, staged->device + side->layout->run[0].offset);
  if (!side->layout->is_contiguous && msa_layout_blocks(side->layout, side->count, &blocks) &&
      blocks.count > 1 && blocks.stride >= (int64_t)blocks.block)
    failed = msa_device_blocks(&copy, staged->device + blocks.offset, staged->buffer + blocks.offset,
                               (size_t)blocks.stride, blocks.block, blocks.count);
  // Also where a device does not take such a stride.
  if (failed != 0) failed = Runs(staged, &copy);
  const int late = msa_device_end(&copy);
  return failed != 0 ? failed : late;
}

int msa_stage(struct msa_window* window, const char* call, const void* data, const struct msa_side* side,
              struct msa_staged* staged) {
  int64_t low = 0, high = 0;
  staged->buffer = (char*)data;
  staged->allocated = NULL;
  if (side->layout == NULL || side->count == 0 || side->layout->size == 0) return MPI_SUCCESS;
  // A byte of the data: where count 0 begins may be elsewhere, at MPI_BOTTOM say.
  if (!msa_is_on_device((char*)data + side->layout->run[0].offset)) return MPI_SUCCESS;
  if (msa_layout_span(side->layout, side->count, &low, &high) != 0 || high <= low) return MPI_SUCCESS;
  const size_t bytes = (size_t)(high - low);
  staged->side = *side;
  staged->device = (char*)data;
  staged->allocated = malloc(bytes);
  if (staged->allocated == NULL)
    return msa_window_error(window, MPI_ERR_NO_MEM, "%s: no memory for %zu bytes of a device's buffer", call,
                            bytes);
  staged->buffer = staged->allocated - low;
  const int failed = staged->how == kMsaStageIn ? Copy(staged, kMsaFromDevice) : 0;
  if (failed == 0) return MPI_SUCCESS;
  free(staged->allocated);
  staged->allocated = NULL;
  return msa_window_error(window, MPI_ERR_OTHER,
                          "%s: copying %llu bytes from the device failed, CUDA error %d", call,
                          (unsigned long long)(side->count * side->layout->size), failed);
}

int msa_unstage(struct msa_window* window, const char* call, struct msa_staged* staged, int has_failed) {
  int failed = 0;
  if (staged->allocated == NULL) return MPI_SUCCESS;
  if (staged->how == kMsaStageOut && !has_failed) failed = Copy(staged, kMsaToDevice);
  free(staged->allocated);
  staged->allocated = NULL;
  if (failed == 0) return MPI_SUCCESS;
  return msa_window_error(window, MPI_ERR_OTHER, "%s: copying %llu bytes to the device failed, CUDA error %d",
                          call, (unsigned long long)(staged->side.count * staged->side.layout->size), failed);
}
