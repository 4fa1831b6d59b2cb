#pragma once
/* For msa's own libraries on top of libmsanam, not installed: a segment's memory without a call, and a lock
 * that is waited for in the caller's way. */

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

/* As msa_nam_lock, but for as long as go_on(state), called between two tries, is not 0: it pauses, and may do
 * what the holder waits for. MSA_NAM_ERR_BUSY: it was 0. An exclusive lock that is waited for keeps new
 * shared holders out, as with msa_nam_lock. MSA_NAM_ERR_UNAVAILABLE: no namd for as long as the handle's
 * deadline. */
int msa_nam_lock_while(msa_nam_region_t region, uint32_t segment, enum msa_nam_lock_mode mode,
                       int (*go_on)(void*), void* state);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
