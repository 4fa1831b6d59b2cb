#pragma once
/* For msa's own libraries on top of libmsanam, not installed: a segment's memory without a call. */

#include <msa_nam.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* *put (*get) is where the segment's first byte lies for writing (reading), NULL if it is not mapped, may not
 * be written (read), or has become stale: load it with acquire order before each use, and make the call where
 * it is NULL. Both stay until the handle is closed. Elements of 1, 2, 4 or 8 bytes at multiples of their size
 * may be updated by the machine's atomic instructions while this process holds the segment's shared lock, and
 * only then. */
struct msa_nam_direct {
  void* const* put;
  void* const* get;
  uint64_t bytes;
};
int msa_nam_direct(msa_nam_region_t region, uint32_t segment, struct msa_nam_direct* direct);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
