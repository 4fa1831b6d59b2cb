#include "layout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "flatten.h"

// ------------------------------------------------------------------------------------------- shapes

int msa_layout_blocks(const struct msa_layout* layout, uint64_t count, struct msa_blocks* blocks) {
  if (layout->runs != 1 || count == 0) return 0;
  blocks->offset = layout->run[0].offset;
  blocks->block = layout->run[0].bytes;
  blocks->count = layout->reps * count;
  blocks->stride = layout->reps > 1 ? layout->rep_stride : layout->extent;
  return count == 1 || layout->reps == 1 || layout->extent == (int64_t)layout->reps * layout->rep_stride;
}

int msa_layout_span(const struct msa_layout* layout, uint64_t count, int64_t* low, int64_t* high) {
  int64_t distance = 0;
  *low = layout->low;
  *high = layout->high;
  if (count == 0) return 0;
  if (count - 1 > INT64_MAX || __builtin_mul_overflow((int64_t)(count - 1), layout->extent, &distance))
    return -1;
  return __builtin_add_overflow(distance < 0 ? *low : *high, distance, distance < 0 ? low : high) ? -1 : 0;
}

// --------------------------------------------------------------------------------------- the cache

// Datatypes that are not predefined have an attribute, since handles are used again.
struct msa_type_slot msa_type_slots[kMsaTypeSlots];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int layout_key = MPI_KEYVAL_INVALID;

static int Delete(MPI_Datatype type, int key, void* value, void* extra) {
  (void)type, (void)key, (void)extra;
  msa_layout_free(value);
  return MPI_SUCCESS;
}

void msa_layout_free(struct msa_layout* layout) {
  if (layout == NULL) return;
  free(layout->whole);
  free(layout);
}

static struct msa_layout* Make(MPI_Datatype type) {
  int has_gaps = 0;
  struct msa_layout* layout = msa_flatten(type, kMsaPairsAsMapped, &has_gaps);
  if (layout == NULL || !has_gaps) return layout;
  layout->whole = msa_flatten(type, kMsaPairsWhole, &has_gaps);
  if (layout->whole != NULL) return layout;
  free(layout);
  return NULL;
}

struct msa_layout* msa_layout_make(MPI_Datatype type) {
  pthread_mutex_lock(&mutex);
  struct msa_layout* layout = Make(type);
  pthread_mutex_unlock(&mutex);
  return layout;
}

static struct msa_layout* MakePredefined(MPI_Datatype type) {
  const uintptr_t key = (uintptr_t)type;
  if (msa_element_find(type) == NULL) return NULL;
  // Under a hundred of them: the table never fills.
  for (unsigned at = msa_type_hash(key);; at = (at + 1) % kMsaTypeSlots) {
    const uintptr_t found = atomic_load(&msa_type_slots[at].type);
    if (found == key) return msa_type_slots[at].layout;
    if (found != 0) continue;
    msa_type_slots[at].layout = Make(type);
    if (msa_type_slots[at].layout != NULL)
      atomic_store_explicit(&msa_type_slots[at].type, key, memory_order_release);
    return msa_type_slots[at].layout;
  }
}

static struct msa_layout* MakeDerived(MPI_Datatype type) {
  struct msa_layout* layout = NULL;
  int found = 0;
  int key = atomic_load(&layout_key);
  if (key == MPI_KEYVAL_INVALID) {
    if (PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, &Delete, &key, NULL) != MPI_SUCCESS) return NULL;
    atomic_store(&layout_key, key);
  }
  if (PMPI_Type_get_attr(type, key, &layout, &found) == MPI_SUCCESS && found) return layout;
  layout = Make(type);
  if (layout == NULL || PMPI_Type_set_attr(type, key, layout) == MPI_SUCCESS) return layout;
  msa_layout_free(layout);
  return NULL;
}

const struct msa_layout* msa_layout_of(MPI_Datatype type) {
  const uintptr_t key = (uintptr_t)type;
  for (unsigned at = msa_type_hash(key);; at = (at + 1) % kMsaTypeSlots) {
    const uintptr_t found = atomic_load_explicit(&msa_type_slots[at].type, memory_order_acquire);
    if (found == key) return msa_type_slots[at].layout;
    if (found == 0) break;
  }
  struct msa_layout* layout = NULL;
  int found = 0;
  const int attribute = atomic_load_explicit(&layout_key, memory_order_acquire);
  if (type == MPI_DATATYPE_NULL) return NULL;
  if (attribute != MPI_KEYVAL_INVALID &&
      PMPI_Type_get_attr(type, attribute, &layout, &found) == MPI_SUCCESS && found)
    return layout;
  pthread_mutex_lock(&mutex);
  layout = MakePredefined(type);
  if (layout == NULL) layout = MakeDerived(type);
  pthread_mutex_unlock(&mutex);
  return layout;
}
