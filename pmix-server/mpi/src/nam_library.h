#pragma once
// libmsanam.so, opened when the first NAM window is asked for: programs without one never load it.

#include <msa_nam.h>
#include <msa_nam_direct.h>

// X(name without msa_nam_)
// clang-format off
#define MSA_NAM_FUNCTIONS(X)                                                                              \
  X(error_text) X(create) X(open) X(get_lease) X(attach) X(close) X(delete) X(set_lifetime) X(stat)       \
  X(segment_stat) X(direct) X(put) X(get) X(put_strided) X(get_strided) X(putv) X(getv) X(iputv) X(igetv) X(test)   \
  X(wait) X(flush) X(type_bytes) X(accumulate) X(get_accumulate) X(compare_swap) X(lock_while) X(unlock)
// clang-format on

#define MSA_NAM_MEMBER(name) __typeof__(&msa_nam_##name) name;
struct msa_nam_table {
  MSA_NAM_FUNCTIONS(MSA_NAM_MEMBER)
};
#undef MSA_NAM_MEMBER

// Filled by msa_nam_load.
extern struct msa_nam_table msa_nam;

// NULL, or why it could not be loaded. Any thread; looks once.
const char* msa_nam_load(void);
