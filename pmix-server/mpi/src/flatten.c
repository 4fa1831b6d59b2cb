#include "flatten.h"

#include <msa_nam.h>
#include <stdlib.h>
#include <string.h>

// 16 Mi runs are 256 MiB of description.
enum { kMostRuns = 1 << 24 };

struct job {
  enum msa_pairs pairs;
  int* has_gaps;
};

// ------------------------------------------------------------------------------------------- building

static struct msa_layout* New(uint64_t runs) {
  if (runs > kMostRuns) return NULL;
  struct msa_layout* layout = calloc(1, sizeof *layout + (runs > 0 ? runs : 1) * sizeof(struct msa_run));
  if (layout == NULL) return NULL;
  layout->runs = runs;
  layout->reps = 1;
  return layout;
}

static struct msa_layout* Nothing(void) {
  struct msa_layout* layout = New(0);
  if (layout != NULL) layout->nam_type = -1;
  return layout;
}

// The same with one repetition. Takes `layout`.
static struct msa_layout* Expand(struct msa_layout* layout) {
  if (layout == NULL || layout->reps <= 1) return layout;
  struct msa_layout* wide = layout->runs > kMostRuns / layout->reps ? NULL : New(layout->runs * layout->reps);
  if (wide != NULL) {
    wide->nam_type = layout->nam_type;
    wide->kind = layout->kind;
    wide->size = layout->size;
    for (uint64_t rep = 0; rep < layout->reps; ++rep) {
      for (uint64_t i = 0; i < layout->runs; ++i) {
        struct msa_run* run = &wide->run[rep * layout->runs + i];
        run->offset = layout->run[i].offset + (int64_t)rep * layout->rep_stride;
        run->bytes = layout->run[i].bytes;
      }
    }
  }
  free(layout);
  return wide;
}

// `count` of them, `stride` bytes apart. Takes `layout`.
static struct msa_layout* Repeat(struct msa_layout* layout, uint64_t count, int64_t stride) {
  if (layout == NULL || layout->size == 0 || count == 1) return layout;
  if (count == 0) {
    free(layout);
    return Nothing();
  }
  if (layout->reps > 1 && layout->runs == 1 && stride == (int64_t)layout->reps * layout->rep_stride) {
    layout->reps *= count;
    layout->size *= count;
    return layout;
  }
  layout = Expand(layout);
  if (layout == NULL) return NULL;
  if (layout->runs == 1 && (int64_t)layout->run[0].bytes == stride) {
    layout->run[0].bytes *= count;
  } else {
    layout->reps = count;
    layout->rep_stride = stride;
  }
  layout->size *= count;
  return layout;
}

static void Shift(struct msa_layout* layout, int64_t by) {
  for (uint64_t i = 0; layout != NULL && i < layout->runs; ++i) layout->run[i].offset += by;
}

// One after the other, of any kind. `parts` are taken.
static struct msa_layout* Join(struct msa_layout** parts, uint64_t count) {
  uint64_t runs = 0, used = 0;
  int is_complete = 1;
  for (uint64_t i = 0; i < count; ++i) {
    parts[i] = Expand(parts[i]);
    is_complete = is_complete && parts[i] != NULL;
    runs += parts[i] != NULL ? parts[i]->runs : 0;
  }
  struct msa_layout* whole = is_complete ? New(runs) : NULL;
  int is_first = 1;
  for (uint64_t i = 0; whole != NULL && i < count; ++i) {
    if (parts[i]->size == 0) continue;
    whole->nam_type = is_first || whole->nam_type == parts[i]->nam_type ? parts[i]->nam_type : -1;
    whole->kind = parts[i]->kind;
    whole->size += parts[i]->size;
    is_first = 0;
    for (uint64_t r = 0; r < parts[i]->runs; ++r) {
      const struct msa_run* run = &parts[i]->run[r];
      struct msa_run* last = used > 0 ? &whole->run[used - 1] : NULL;
      if (last != NULL && last->offset + (int64_t)last->bytes == run->offset)
        last->bytes += run->bytes;
      else
        whole->run[used++] = *run;
    }
  }
  for (uint64_t i = 0; i < count; ++i) free(parts[i]);
  if (whole == NULL) return NULL;
  whole->runs = used;
  if (is_first) whole->nam_type = -1;
  return whole;
}

// ------------------------------------------------------------------------------------ predefined types

// Where the index of a pair lies, 0: there is no gap.
static int64_t GapAt(int nam_type, uint64_t* value_bytes) {
  struct short_int {
    short value;
    int index;
  };
  *value_bytes = nam_type == MSA_NAM_SHORT_INT ? sizeof(short) : 0;
  return nam_type == MSA_NAM_SHORT_INT ? (int64_t)offsetof(struct short_int, index) : 0;
}

static struct msa_layout* Predefined(MPI_Datatype type, const struct job* job) {
  struct msa_element fortran;
  const struct msa_element* element = msa_element_find(type);
  if (element == NULL && msa_element_of_f90(type, &fortran)) element = &fortran;
  MPI_Aint low = 0, extent = 0;
  int size = 0;
  uint64_t value_bytes;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &low, &extent);
  struct msa_layout* layout = New(size > 0 ? 2 : 0);
  if (layout == NULL) return NULL;
  layout->runs = size > 0;
  layout->nam_type = element != NULL ? element->nam_type : -1;
  layout->kind = element != NULL ? element->kind : kMsaOpaque;
  layout->size = (uint64_t)size;
  layout->run[0] = (struct msa_run){0, (uint64_t)size};
  if (layout->kind != kMsaPair || extent == size) return layout;
  *job->has_gaps = 1;
  if (job->pairs == kMsaPairsWhole) {
    layout->size = (uint64_t)extent;
    layout->run[0].bytes = (uint64_t)extent;
    return layout;
  }
  const int64_t index = GapAt(layout->nam_type, &value_bytes);
  if (index == 0) return layout;  // the gap is at the end
  layout->runs = 2;
  layout->run[0].bytes = value_bytes;
  layout->run[1] = (struct msa_run){index, (uint64_t)size - value_bytes};
  return layout;
}

// -------------------------------------------------------------------------------------- constructors

struct contents {
  int combiner;
  int integer_count, address_count, type_count;
  int* integers;
  MPI_Aint* addresses;
  MPI_Datatype* types;
};

static struct msa_layout* Flatten(MPI_Datatype type, const struct job* job);

static int64_t ExtentOf(MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0;
  PMPI_Type_get_extent(type, &low, &extent);
  return extent;
}

// `count` blocks of child `types[0]`; lengths and displacements by the caller's functions of the index.
struct blocks {
  const struct contents* from;
  int count;
  int one_length;         // -1: integers[1 + i]
  const int* elements;    // displacements in extents, or
  const MPI_Aint* bytes;  // in bytes
};

static struct msa_layout* Indexed(const struct blocks* blocks, const struct job* job) {
  const MPI_Datatype child = blocks->from->types[0];
  const int64_t extent = ExtentOf(child);
  struct msa_layout** parts = calloc((size_t)blocks->count + 1, sizeof *parts);
  struct msa_layout* one = Expand(Flatten(child, job));
  if (parts == NULL || one == NULL) {
    free(parts);
    free(one);
    return NULL;
  }
  const size_t bytes = sizeof *one + (one->runs > 0 ? one->runs : 1) * sizeof(struct msa_run);
  for (int i = 0; i < blocks->count; ++i) {
    const int length = blocks->one_length >= 0 ? blocks->one_length : blocks->from->integers[1 + i];
    struct msa_layout* copy = malloc(bytes);
    if (copy != NULL) memcpy(copy, one, bytes);
    parts[i] = Repeat(copy, (uint64_t)length, extent);
    if (parts[i] != NULL && parts[i]->reps > 1) parts[i] = Expand(parts[i]);
    Shift(parts[i], blocks->elements != NULL ? blocks->elements[i] * extent : blocks->bytes[i]);
  }
  free(one);
  struct msa_layout* whole = Join(parts, (uint64_t)blocks->count);
  free(parts);
  return whole;
}

static struct msa_layout* Struct(const struct contents* c, const struct job* job) {
  const int count = c->integers[0];
  struct msa_layout** parts = calloc((size_t)count + 1, sizeof *parts);
  if (parts == NULL) return NULL;
  for (int i = 0; i < count; ++i) {
    struct msa_layout* one = Flatten(c->types[i], job);
    parts[i] = Expand(Repeat(one, (uint64_t)c->integers[1 + i], ExtentOf(c->types[i])));
    Shift(parts[i], c->addresses[i]);
  }
  struct msa_layout* whole = Join(parts, (uint64_t)count);
  free(parts);
  return whole;
}

static struct msa_layout* Subarray(const struct contents* c, const struct job* job) {
  const int dimensions = c->integers[0];
  const int* sizes = c->integers + 1;
  const int* part = sizes + dimensions;
  const int* starts = part + dimensions;
  const int is_fortran = starts[dimensions] == MPI_ORDER_FORTRAN;
  int64_t stride = ExtentOf(c->types[0]), offset = 0;
  struct msa_layout* layout = Flatten(c->types[0], job);
  for (int i = 0; i < dimensions; ++i) {
    const int d = is_fortran ? i : dimensions - 1 - i;
    layout = Repeat(layout, (uint64_t)part[d], stride);
    offset += starts[d] * stride;
    stride *= sizes[d];
  }
  Shift(layout, offset);
  return layout;
}

static struct msa_layout* Vector(const struct contents* c, int64_t stride, const struct job* job) {
  struct msa_layout* block =
      Repeat(Flatten(c->types[0], job), (uint64_t)c->integers[1], ExtentOf(c->types[0]));
  return Repeat(block, (uint64_t)c->integers[0], stride);
}

// --------------------------------------------------------------------------------- asking the MPI itself

// One pass: 255 different bytes, taken from the number of each byte of data, unpacked into zeros.
static int Pass(MPI_Datatype type, int size, int shift, unsigned char* packed, unsigned char* spread,
                size_t extent, MPI_Aint low) {
  int position = 0;
  for (int i = 0; i < size; ++i) packed[i] = (unsigned char)(1 + ((unsigned)i >> shift) % 128);
  memset(spread, 0, extent);
  return PMPI_Unpack(packed, size, &position, spread - low, 1, type, MPI_COMM_SELF);
}

// Numbers the bytes of data (from 1; 0 is a gap) as they lie in memory.
static int Number(MPI_Datatype type, int size, MPI_Aint low, size_t extent, uint32_t* numbers) {
  unsigned char* packed = malloc((size_t)size);
  unsigned char* spread = malloc(extent);
  int failed = packed == NULL || spread == NULL;
  for (int shift = 0; !failed && shift < 28; shift += 7) {
    failed = Pass(type, size, shift, packed, spread, extent, low) != MPI_SUCCESS;
    for (size_t i = 0; !failed && i < extent; ++i)
      if (spread[i] != 0) numbers[i] += ((uint32_t)(spread[i] - 1) << shift) + (shift == 0);
  }
  free(packed);
  free(spread);
  return failed ? -1 : 0;
}

// Types whose construction is not followed here (darray, MPICH's large counts): unpacks numbers into memory
// and looks where they came to lie.
static struct msa_layout* Probe(MPI_Datatype type, const struct msa_layout* base) {
  enum { kMostBytes = 1 << 28 };
  MPI_Aint low = 0, extent = 0;
  int size = 0;
  if (PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0 ||
      PMPI_Type_get_true_extent(type, &low, &extent) != MPI_SUCCESS || extent > kMostBytes)
    return NULL;
  if (size == 0) return Nothing();
  PMPI_Type_commit(&type);  // as part of another one it may not be
  uint32_t* numbers = calloc((size_t)extent, sizeof *numbers);
  struct msa_run* runs = calloc((size_t)size, sizeof *runs);
  struct msa_layout* layout = NULL;
  uint64_t used = 0;
  if (numbers != NULL && runs != NULL && Number(type, size, low, (size_t)extent, numbers) == 0) {
    // By number: where each byte lies; neighbours become one run.
    MPI_Aint* where = calloc((size_t)size, sizeof *where);
    for (MPI_Aint i = 0; where != NULL && i < extent; ++i)
      if (numbers[i] != 0) where[numbers[i] - 1] = low + i;
    for (int i = 0; where != NULL && i < size; ++i) {
      if (used > 0 && runs[used - 1].offset + (int64_t)runs[used - 1].bytes == where[i])
        ++runs[used - 1].bytes;
      else
        runs[used++] = (struct msa_run){where[i], 1};
    }
    free(where);
    layout = New(used);
  }
  if (layout != NULL) {
    memcpy(layout->run, runs, used * sizeof *runs);
    layout->size = (uint64_t)size;
    layout->nam_type = base != NULL ? base->nam_type : -1;
    layout->kind = base != NULL ? base->kind : kMsaOpaque;
  }
  free(numbers);
  free(runs);
  return layout;
}

// --------------------------------------------------------------------------------------------- decoding

static struct msa_layout* Decode(MPI_Datatype type, const struct contents* c, const struct job* job) {
  struct blocks blocks = {.from = c, .count = c->integer_count > 0 ? c->integers[0] : 0, .one_length = -1};
  const int n = blocks.count;
  switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return Flatten(c->types[0], job);
    case MPI_COMBINER_CONTIGUOUS:
      return Repeat(Flatten(c->types[0], job), (uint64_t)n, ExtentOf(c->types[0]));
    case MPI_COMBINER_VECTOR:
      return Vector(c, c->integers[2] * ExtentOf(c->types[0]), job);
    case MPI_COMBINER_HVECTOR:
      return Vector(c, c->addresses[0], job);
    case MPI_COMBINER_INDEXED:
      blocks.elements = c->integers + 1 + n;
      return Indexed(&blocks, job);
    case MPI_COMBINER_HINDEXED:
      blocks.bytes = c->addresses;
      return Indexed(&blocks, job);
    case MPI_COMBINER_INDEXED_BLOCK:
      blocks.one_length = c->integers[1];
      blocks.elements = c->integers + 2;
      return Indexed(&blocks, job);
    case MPI_COMBINER_HINDEXED_BLOCK:
      blocks.one_length = c->integers[1];
      blocks.bytes = c->addresses;
      return Indexed(&blocks, job);
    case MPI_COMBINER_STRUCT:
      return Struct(c, job);
    case MPI_COMBINER_SUBARRAY:
      return Subarray(c, job);
    default:
      break;
  }
  struct msa_layout* base = c->type_count == 1 ? Flatten(c->types[0], job) : NULL;
  struct msa_layout* layout = Probe(type, base);
  free(base);
  return layout;
}

static void FreeContents(struct contents* c) {
  for (int i = 0; c->types != NULL && i < c->type_count; ++i) {
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(c->types[i], &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
        combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER)
      PMPI_Type_free(&c->types[i]);
  }
  free(c->integers);
  free(c->addresses);
  free(c->types);
}

// MPICH: a datatype made by an _c call, whose envelope holds large counts.
static int IsLarge(MPI_Datatype type) {
#ifdef MPICH_VERSION
  MPI_Count integers, addresses, larges = 0, types;
  int combiner;
  if (PMPI_Type_get_envelope_c(type, &integers, &addresses, &larges, &types, &combiner) != MPI_SUCCESS)
    return 1;
  return larges > 0;
#else
  (void)type;
  return 0;
#endif
}

static struct msa_layout* Flatten(MPI_Datatype type, const struct job* job) {
  struct contents c = {0};
  if (msa_element_find(type) != NULL) return Predefined(type, job);
  if (IsLarge(type)) return Probe(type, NULL);
  if (PMPI_Type_get_envelope(type, &c.integer_count, &c.address_count, &c.type_count, &c.combiner) !=
      MPI_SUCCESS)
    return NULL;
  if (c.combiner == MPI_COMBINER_NAMED || c.type_count == 0) return Predefined(type, job);
  c.integers = calloc((size_t)c.integer_count + 1, sizeof *c.integers);
  c.addresses = calloc((size_t)c.address_count + 1, sizeof *c.addresses);
  c.types = calloc((size_t)c.type_count + 1, sizeof *c.types);
  struct msa_layout* layout = NULL;
  if (c.integers == NULL || c.addresses == NULL || c.types == NULL ||
      PMPI_Type_get_contents(type, c.integer_count, c.address_count, c.type_count, c.integers, c.addresses,
                             c.types) != MPI_SUCCESS)
    c.type_count = 0;
  else
    layout = Decode(type, &c, job);
  FreeContents(&c);
  return layout;
}

struct msa_layout* msa_flatten(MPI_Datatype type, enum msa_pairs pairs, int* has_gaps) {
  const struct job job = {pairs, has_gaps};
  MPI_Aint low = 0;
  struct msa_layout* layout = Flatten(type, &job);
  if (layout == NULL) return NULL;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &low, &extent);
  layout->extent = extent;
  layout->low = layout->high = 0;
  const int64_t last = (int64_t)(layout->reps - 1) * layout->rep_stride;
  for (uint64_t i = 0; i < layout->runs; ++i) {
    const int64_t begin = layout->run[i].offset + (last < 0 ? last : 0);
    const int64_t end = layout->run[i].offset + (int64_t)layout->run[i].bytes + (last > 0 ? last : 0);
    if (i == 0 || begin < layout->low) layout->low = begin;
    if (i == 0 || end > layout->high) layout->high = end;
  }
  layout->is_contiguous = layout->runs == 1 && layout->reps == 1 && layout->run[0].offset == 0 &&
                          (int64_t)layout->run[0].bytes == layout->extent;
  return layout;
}
