#pragma once
// NAM windows by the MPI's handle. Lookups take no lock, and in the first 3,072 windows look at nothing else;
// inserting and removing take one. Slots are used again, and the table grows by further ones, twice as large
// each, so that nothing moves under a lookup.

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct msa_window;

struct msa_window_slot {
  _Atomic(uintptr_t) key;  // 0: searches end here
  _Atomic(struct msa_window*) window;
};
struct msa_window_level {
  struct msa_window_slot* slots;
  unsigned bits;  // 2^bits slots
  unsigned used;  // not 0; of who holds the lock
  _Atomic(struct msa_window_level*) next;
};
enum { kMsaFirstLevelBits = 12 };
extern struct msa_window_slot msa_window_slots[1 << kMsaFirstLevelBits];
extern struct msa_window_level msa_window_first;

static inline struct msa_window* msa_window_find_in(const struct msa_window_slot* slots, unsigned bits,
                                                    uintptr_t key) {
  const size_t last = ((size_t)1 << bits) - 1;
  for (size_t at = (key * (uintptr_t)0x9e3779b97f4a7c15u) >> (64 - bits);; at = (at + 1) & last) {
    const uintptr_t found = atomic_load_explicit(&slots[at].key, memory_order_acquire);
    if (found == key) return atomic_load_explicit(&slots[at].window, memory_order_acquire);
    if (found == 0) return NULL;
  }
}
struct msa_window* msa_window_find_further(uintptr_t key);

// NULL: there is none. `key` is neither 0 nor 1.
static inline struct msa_window* msa_window_find(uintptr_t key) {
  struct msa_window* found = msa_window_find_in(msa_window_slots, kMsaFirstLevelBits, key);
  if (found != NULL || atomic_load_explicit(&msa_window_first.next, memory_order_acquire) == NULL)
    return found;
  return msa_window_find_further(key);
}
// 0, or -1: out of memory.
int msa_window_table_insert(uintptr_t key, struct msa_window* window);
void msa_window_table_remove(uintptr_t key);
