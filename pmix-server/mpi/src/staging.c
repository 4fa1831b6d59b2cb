#include <stdlib.h>

#include "device.h"
#include "transfer.h"

int msa_stage(struct msa_window* window, const char* call, const void* data, const struct msa_side* side,
              struct msa_staged* staged) {
  int64_t low = 0, high = 0;
  staged->buffer = (char*)data;
  staged->allocated = NULL;
  if (side->layout == NULL || side->count == 0 || !msa_is_on_device(data)) return MPI_SUCCESS;
  if (msa_layout_span(side->layout, side->count, &low, &high) != 0 || high <= low) return MPI_SUCCESS;
  staged->bytes = (size_t)(high - low);
  staged->device = (char*)data + low;
  staged->allocated = malloc(staged->bytes);
  if (staged->allocated == NULL)
    return msa_window_error(window, MPI_ERR_NO_MEM, "%s: no memory for %zu bytes of a device's buffer", call,
                            staged->bytes);
  staged->buffer = staged->allocated - low;
  // With its gaps, also before a get: they are copied back as they were.
  const int failed = msa_device_copy(staged->allocated, staged->device, staged->bytes, staged->device);
  if (failed == 0) return MPI_SUCCESS;
  free(staged->allocated);
  staged->allocated = NULL;
  return msa_window_error(window, MPI_ERR_OTHER,
                          "%s: copying %zu bytes from the device failed, CUDA error %d", call, staged->bytes,
                          failed);
}

int msa_unstage(struct msa_window* window, const char* call, struct msa_staged* staged, enum msa_stage how) {
  int failed = 0;
  if (staged->allocated == NULL) return MPI_SUCCESS;
  if (how == kMsaStageInOut)
    failed = msa_device_copy(staged->device, staged->allocated, staged->bytes, staged->device);
  free(staged->allocated);
  staged->allocated = NULL;
  if (failed == 0) return MPI_SUCCESS;
  return msa_window_error(window, MPI_ERR_OTHER, "%s: copying %zu bytes to the device failed, CUDA error %d",
                          call, staged->bytes, failed);
}
