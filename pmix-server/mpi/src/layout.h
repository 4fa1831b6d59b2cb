#pragma once
// Where the data of a datatype lies: runs of bytes in the order of its type map, worked out once a datatype
// and kept as its attribute.

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"

struct msa_run {
  int64_t offset;
  uint64_t bytes;
};

// What MPI's operations may do with the elements.
enum msa_element_kind { kMsaInteger, kMsaReal, kMsaComplex, kMsaLogical, kMsaBytes, kMsaPair, kMsaOpaque };

// One datatype: `runs` runs, `reps` times, `rep_stride` bytes apart.
struct msa_layout {
  uint64_t size;      // bytes of data, of all runs and repetitions
  int64_t extent;     // from one to the next of a count
  int64_t low, high;  // first byte, and the one after the last
  uint64_t runs, reps;
  int64_t rep_stride;
  int nam_type;  // enum msa_nam_type of all elements, -1: there is none, or several
  enum msa_element_kind kind;
  char is_contiguous;  // one run from 0, and counts go on without a gap
  // Pairs that have gaps inside: the same with pairs as whole structs, as accumulates take them. NULL: this
  // one will do.
  struct msa_layout* whole;
  struct msa_run run[];
};

// Predefined datatypes, which live for ever: a table by handle.
enum { kMsaTypeSlots = 256 };
struct msa_type_slot {
  _Atomic(uintptr_t) type;
  struct msa_layout* layout;
};
extern struct msa_type_slot msa_type_slots[kMsaTypeSlots];

static inline unsigned msa_type_hash(uintptr_t key) {
  return (unsigned)((key * (uintptr_t)0x9e3779b97f4a7c15u) >> 56);
}
// Of a predefined datatype that is found at once; NULL: see msa_layout_of.
static inline const struct msa_layout* msa_layout_known(MPI_Datatype type) {
  const struct msa_type_slot* slot = &msa_type_slots[msa_type_hash((uintptr_t)type)];
  return atomic_load_explicit(&slot->type, memory_order_acquire) == (uintptr_t)type ? slot->layout : NULL;
}

// NULL: not a datatype, or out of memory. Lives as long as the datatype.
const struct msa_layout* msa_layout_of(MPI_Datatype type);

// The same without the cache, to be freed with msa_layout_free. (Tests; the cache is made of it.)
struct msa_layout* msa_layout_make(MPI_Datatype type);
void msa_layout_free(struct msa_layout* layout);

// `count` of them as equal blocks at equal distances: 1 if they are that.
struct msa_blocks {
  int64_t offset, stride;
  uint64_t block, count;
};
int msa_layout_blocks(const struct msa_layout* layout, uint64_t count, struct msa_blocks* blocks);

// First byte and the one after the last of `count`. -1: beyond 63 bits.
int msa_layout_span(const struct msa_layout* layout, uint64_t count, int64_t* low, int64_t* high);

// ---- walking through `count` of them in the order of the type map

struct msa_cursor {
  const struct msa_layout* layout;
  int64_t base;  // where the current repetition begins
  uint64_t element, rep, run, done;
};
static inline struct msa_cursor msa_cursor_at(const struct msa_layout* layout, int64_t base) {
  const struct msa_cursor cursor = {layout, base, 0, 0, 0, 0};
  return cursor;
}
static inline int64_t msa_cursor_offset(const struct msa_cursor* c) {
  return c->base + c->layout->run[c->run].offset + (int64_t)c->done;
}
static inline uint64_t msa_cursor_left(const struct msa_cursor* c) {
  return c->layout->run[c->run].bytes - c->done;
}
// By at most msa_cursor_left().
static inline void msa_cursor_advance(struct msa_cursor* c, uint64_t bytes) {
  const struct msa_layout* l = c->layout;
  c->done += bytes;
  if (c->done < l->run[c->run].bytes) return;
  c->done = 0;
  if (++c->run < l->runs) return;
  c->run = 0;
  c->base += l->rep_stride;
  if (++c->rep < l->reps) return;
  c->rep = 0;
  c->base += l->extent - (int64_t)l->reps * l->rep_stride;
  ++c->element;
}

// ---- predefined datatypes (element_types.c)

struct msa_element {
  MPI_Datatype type;
  int nam_type;
  enum msa_element_kind kind;
};
// NULL: not in the table.
const struct msa_element* msa_element_find(MPI_Datatype type);

// Of a Fortran datatype by precision and range (MPI_Type_create_f90_*). 0: it is none.
int msa_element_of_f90(MPI_Datatype type, struct msa_element* element);

// enum msa_nam_op of a predefined operation that goes with such elements; -1: a user's, or they do not go
// together.
int msa_op_of(MPI_Op op, enum msa_element_kind kind);
