#pragma once
// The short way of what programs do most: plain transfers and word updates of mapped memory, in one branch
// each. Whatever is not plain, also any error, goes the long way, which looks at everything again.

#include <msa_nam.h>

#include "device.h"
#include "layout.h"
#include "window.h"

static inline int msa_is_open(const struct msa_window* window, int target) {
  return msa_held(window, target) != kMsaFree ||
         (window->epochs & (kMsaFence | kMsaStart | kMsaLockAllUnchecked)) != 0;
}

enum msa_access { kMsaWrites, kMsaReads };

// Where `bytes` bytes at `disp` of a target lie that is mapped; NULL: the long way. `target` is one of the
// window's.
static inline char* msa_direct_at(const struct msa_window* window, int target, long disp, uint64_t bytes,
                                  enum msa_access access) {
  const struct msa_nam_direct* direct = &window->region->direct[target];
  char* base = (char*)__atomic_load_n(access == kMsaWrites ? direct->put : direct->get, __ATOMIC_ACQUIRE);
  int64_t offset;
  // Negative ones are beyond all ends.
  const int is_off = __builtin_mul_overflow((int64_t)disp, (int64_t)window->region->units[target], &offset);
  if (is_off || (uint64_t)offset > direct->bytes || bytes > direct->bytes - (uint64_t)offset) return NULL;
  return base != NULL ? base + offset : NULL;
}

static inline int msa_is_target(const struct msa_window* window, int target) {
  return (unsigned)target < (unsigned)window->region->count;
}

// Of a transfer of `count` elements of one predefined datatype on both sides: the target, and *bytes. NULL:
// the long way.
static inline char* msa_direct_transfer(const struct msa_window* window, const void* origin, long long count,
                                        MPI_Datatype type, int target, long disp, uint64_t* bytes,
                                        enum msa_access access) {
  const struct msa_layout* layout = msa_layout_known(type);
  if (!msa_is_target(window, target) || layout == NULL || !layout->is_contiguous || origin == NULL ||
      __builtin_mul_overflow((uint64_t)count, layout->size, bytes) || !msa_is_open(window, target))
    return NULL;
  char* const at = msa_direct_at(window, target, disp, *bytes, access);
  return at != NULL && !msa_is_on_device(origin) ? at : NULL;
}

// Eight bytes without a call.
static inline void msa_direct_copy(char* to, const char* from, uint64_t bytes) {
  if (bytes == 8)
    __builtin_memcpy(to, from, 8);
  else
    __builtin_memcpy(to, from, bytes);
}

// ---- updates of one element that the machine's atomic instructions do. Under the shared lock of the epoch
// alone: its holder need not say so for each update, since nobody has the exclusive one and updates plainly.

static inline char* msa_direct_word(const struct msa_window* window, const struct msa_layout* layout,
                                    int target, long disp) {
  if (!msa_is_target(window, target) || msa_held(window, target) != kMsaShared || layout == NULL) return NULL;
  if (layout->size != 8 && layout->size != 4) return NULL;
  char* at = msa_direct_at(window, target, disp, layout->size, kMsaWrites);
  return ((uintptr_t)at & (layout->size - 1)) == 0 ? at : NULL;
}

#define MSA_WORD_OPS(bits)                                                                                 \
  static inline uint##bits##_t msa_word_update##bits(void* at, int op, int is_real, const void* value) {   \
    uint##bits##_t* word = at;                                                                             \
    uint##bits##_t mine = 0, old;                                                                          \
    if (op == MSA_NAM_NO_OP) return __atomic_load_n(word, __ATOMIC_SEQ_CST);                               \
    __builtin_memcpy(&mine, value, sizeof mine);                                                           \
    if (op == MSA_NAM_REPLACE) return __atomic_exchange_n(word, mine, __ATOMIC_SEQ_CST);                   \
    if (!is_real) return __atomic_fetch_add(word, mine, __ATOMIC_SEQ_CST);                                 \
    old = __atomic_load_n(word, __ATOMIC_RELAXED);                                                         \
    for (uint##bits##_t sum = 0;;) {                                                                       \
      msa_real##bits a, b;                                                                                 \
      __builtin_memcpy(&a, &old, sizeof a);                                                                \
      __builtin_memcpy(&b, &mine, sizeof b);                                                               \
      a += b;                                                                                              \
      __builtin_memcpy(&sum, &a, sizeof a);                                                                \
      if (__atomic_compare_exchange_n(word, &old, sum, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return old; \
    }                                                                                                      \
  }
typedef float msa_real32;
typedef double msa_real64;
MSA_WORD_OPS(32)
MSA_WORD_OPS(64)

// 1: done. `result`: NULL: not wanted.
static inline int msa_direct_update(const struct msa_window* window, const void* origin, void* result,
                                    MPI_Datatype type, int target, long disp, MPI_Op op) {
  const struct msa_layout* layout = msa_layout_known(type);
  const int nam_op = op == MPI_SUM       ? MSA_NAM_SUM
                     : op == MPI_REPLACE ? MSA_NAM_REPLACE
                     : op == MPI_NO_OP   ? MSA_NAM_NO_OP
                                         : -1;
  char* at = msa_direct_word(window, layout, target, disp);
  if (at == NULL || nam_op < 0 || (layout->kind != kMsaInteger && layout->kind != kMsaReal)) return 0;
  if ((origin == NULL && nam_op != MSA_NAM_NO_OP) || msa_is_on_device(origin) || msa_is_on_device(result))
    return 0;
  const int is_real = layout->kind == kMsaReal;
  if (layout->size == 8) {
    const uint64_t old = msa_word_update64(at, nam_op, is_real, origin);
    if (result != NULL) __builtin_memcpy(result, &old, sizeof old);
  } else {
    const uint32_t old = msa_word_update32(at, nam_op, is_real, origin);
    if (result != NULL) __builtin_memcpy(result, &old, sizeof old);
  }
  return 1;
}

static inline int msa_direct_swap(const struct msa_window* window, const void* origin, const void* compare,
                                  void* result, MPI_Datatype type, int target, long disp) {
  const struct msa_layout* layout = msa_layout_known(type);
  char* at = msa_direct_word(window, layout, target, disp);
  if (at == NULL || (layout->kind != kMsaInteger && layout->kind != kMsaLogical)) return 0;
  if (origin == NULL || compare == NULL || result == NULL || msa_is_on_device(origin) ||
      msa_is_on_device(compare) || msa_is_on_device(result))
    return 0;
  if (layout->size == 8) {
    uint64_t expected, wanted;
    __builtin_memcpy(&expected, compare, sizeof expected);
    __builtin_memcpy(&wanted, origin, sizeof wanted);
    __atomic_compare_exchange_n((uint64_t*)(void*)at, &expected, wanted, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    __builtin_memcpy(result, &expected, sizeof expected);
  } else {
    uint32_t expected, wanted;
    __builtin_memcpy(&expected, compare, sizeof expected);
    __builtin_memcpy(&wanted, origin, sizeof wanted);
    __atomic_compare_exchange_n((uint32_t*)(void*)at, &expected, wanted, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    __builtin_memcpy(result, &expected, sizeof expected);
  }
  return 1;
}
