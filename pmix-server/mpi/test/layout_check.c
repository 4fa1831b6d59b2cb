// Layouts against the MPI's own MPI_Pack: random datatypes of every constructor, nested; the runs of the
// layout, in their order, are the bytes that MPI_Pack takes. Also extents, spans, blocks, and the elements of
// accumulates. layout_check [SEED [TYPES]], one process.
#include <msa_nam.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flatten.h"
#include "layout.h"

enum { kBytes = 1 << 20, kMiddle = kBytes / 2 };

static unsigned long long state;
static int wrong;

static int Random(int below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((state >> 33) % (unsigned)below);
}

#define CHECK(condition, ...)                                \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("line %d: not so: %s: ", __LINE__, #condition); \
      printf(__VA_ARGS__);                                   \
      printf("\n");                                          \
      wrong = 1;                                             \
    }                                                        \
  } while (0)

static MPI_Datatype Basic(void) {
  const MPI_Datatype kTypes[] = {MPI_CHAR,  MPI_SHORT,     MPI_INT,        MPI_DOUBLE,   MPI_C_DOUBLE_COMPLEX,
                                 MPI_FLOAT, MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_LONG_LONG};
  return kTypes[Random(sizeof kTypes / sizeof kTypes[0])];
}

static MPI_Datatype Darray(MPI_Datatype inner) {
  const int sizes[] = {6, 5}, distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
            arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 1}, processes[] = {2, 2};
  MPI_Datatype type;
  MPI_Type_create_darray(4, Random(4), 2, sizes, distributions, arguments, processes,
                         Random(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner, &type);
  return type;
}

static MPI_Datatype Struct(MPI_Datatype inner) {
  MPI_Datatype type, parts[] = {inner, Basic(), inner};
  const int lengths[] = {1 + Random(2), Random(3), 1};
  MPI_Aint low, extent, places[3] = {0};
  MPI_Type_get_extent(inner, &low, &extent);
  places[1] = lengths[0] * extent + 16;
  places[2] = places[1] + 64;
  MPI_Type_create_struct(3, lengths, places, parts, &type);
  return type;
}

static MPI_Datatype Subarray(MPI_Datatype inner) {
  const int sizes[] = {4, 3, 5}, part[] = {1 + Random(4), 1 + Random(2), 2}, starts[] = {0, 1, Random(4)};
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, part, starts, Random(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner, &type);
  return type;
}

static MPI_Datatype Wrap(MPI_Datatype inner) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int n = 1 + Random(4), lengths[] = {2, 0, 1, 3}, places[] = {9, 3, 5, 0};
  MPI_Aint low, extent, far[4];
  MPI_Type_get_extent(inner, &low, &extent);
  for (int i = 0; i < 4; ++i) far[i] = places[i] * extent - 8;
  switch (Random(12)) {
    case 0:
      MPI_Type_contiguous(Random(4), inner, &type);
      break;
    case 1:
      MPI_Type_vector(n, 2, 3, inner, &type);
      break;
    case 2:
      MPI_Type_vector(n, 1, -2, inner, &type);
      break;
    case 3:
      MPI_Type_create_hvector(n, 2, 2 * extent + 8, inner, &type);
      break;
    case 4:
      MPI_Type_indexed(n, lengths, places, inner, &type);
      break;
    case 5:
      MPI_Type_create_hindexed(n, lengths, far, inner, &type);
      break;
    case 6:
      MPI_Type_create_indexed_block(n, 2, places, inner, &type);
      break;
    case 7:
      MPI_Type_create_hindexed_block(n, 1, far, inner, &type);
      break;
    case 8:
      type = Struct(inner);
      break;
    case 9:
      type = Subarray(inner);
      break;
    case 10:
      MPI_Type_create_resized(inner, -8, extent + 24, &type);
      break;
    default:
      type = Darray(Basic());
      break;  // Open MPI refuses some of others
  }
  return type;
}

static void Describe(MPI_Datatype type) {
  int integers, addresses, types, combiner, values[64];
  MPI_Aint places[16];
  MPI_Datatype parts[8];
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  printf("combiner %d:", combiner);
  if (types > 0) MPI_Type_get_contents(type, 64, 16, 8, values, places, parts);
  for (int i = 0; types > 0 && i < integers; ++i) printf(" %d", values[i]);
  for (int i = 0; i < addresses; ++i) printf(" at %ld", (long)places[i]);
  printf("\n");
  if (types > 0) Describe(parts[0]);
}

static void Compare(MPI_Datatype type, int count, const char* memory, char* packed, char* ours) {
  struct msa_layout* layout = msa_layout_make(type);
  MPI_Aint low, extent;
  int size = 0, position = 0;
  MPI_Type_size(type, &size);
  if (layout == NULL) {
    CHECK(layout != NULL, "a type of %d bytes", size);
    return;
  }
  MPI_Type_get_extent(type, &low, &extent);
  CHECK(layout->size == (uint64_t)size, "%llu and %d", (unsigned long long)layout->size, size);
  CHECK(layout->extent == extent, "%lld and %ld", (long long)layout->extent, (long)extent);
  MPI_Pack(memory + kMiddle, count, type, packed, kBytes, &position, MPI_COMM_SELF);
  CHECK(position == count * size, "%d packed, not %d * %d", position, count, size);
  uint64_t done = 0;
  struct msa_cursor at = msa_cursor_at(layout, kMiddle);
  int64_t first = kBytes, last = 0, span_low, span_high;
  for (const uint64_t all = (uint64_t)count * layout->size; done < all;) {
    const uint64_t left = msa_cursor_left(&at), bytes = left > 3 ? left - (uint64_t)Random(2) : left;
    const int64_t offset = msa_cursor_offset(&at);
    memcpy(ours + done, memory + offset, bytes);
    if (offset < first) first = offset;
    if (offset + (int64_t)bytes > last) last = offset + (int64_t)bytes;
    msa_cursor_advance(&at, bytes);
    done += bytes;
  }
  CHECK(memcmp(packed, ours, done) == 0, "%d of a type of %d bytes", count, size);
  if (wrong) Describe(type);
  CHECK(msa_layout_span(layout, (uint64_t)count, &span_low, &span_high) == 0, "%d", count);
  if (done > 0)
    CHECK(span_low <= first - kMiddle && span_high >= last - kMiddle, "%lld", (long long)span_low);
  struct msa_blocks blocks;
  if (done > 0 && msa_layout_blocks(layout, (uint64_t)count, &blocks)) {
    for (uint64_t i = 0; i < blocks.count; ++i)
      memcpy(ours + i * blocks.block, memory + kMiddle + blocks.offset + (int64_t)i * blocks.stride,
             blocks.block);
    CHECK(blocks.block * blocks.count == done && memcmp(packed, ours, done) == 0, "as blocks");
  }
  msa_layout_free(layout);
}

static void Free(MPI_Datatype* type) {
  int integers, addresses, types, combiner;
  MPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(type);
}

static void RandomTypes(int types, const char* memory) {
  static char packed[kBytes], ours[kBytes];
  for (int i = 0; i < types && !wrong; ++i) {
    MPI_Datatype type = Basic();
    for (int depth = Random(4); depth > 0; --depth) {
      MPI_Aint low, extent;
      MPI_Datatype outer = Wrap(type);
      MPI_Type_get_true_extent(outer, &low, &extent);
      if (extent > kMiddle / 8 || low < -kMiddle / 8) {  // too large for the memory
        MPI_Type_free(&outer);
        break;
      }
      Free(&type);
      type = outer;
    }
    MPI_Type_commit(&type);
    Compare(type, 1 + Random(3), memory, packed, ours);
    Free(&type);
  }
}

// What is a shape that copies fast, and what an accumulate sees.
static void KnownTypes(void) {
  MPI_Datatype vector, pairs, mixed, parts[] = {MPI_INT, MPI_FLOAT};
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 4};
  MPI_Type_vector(512, 1, 2, MPI_DOUBLE, &vector);
  MPI_Type_contiguous(3, MPI_DOUBLE_INT, &pairs);
  MPI_Type_create_struct(2, lengths, places, parts, &mixed);
  const struct msa_layout* layout = msa_layout_of(vector);
  CHECK(layout->runs == 1 && layout->reps == 512 && layout->rep_stride == 16, "a vector is one run");
  CHECK(layout->nam_type == MSA_NAM_DOUBLE, "%d", layout->nam_type);
  CHECK(msa_layout_of(vector) == layout, "it is kept");
  layout = msa_layout_of(pairs);
  CHECK(layout->size == 36 && layout->whole != NULL && layout->whole->size == 48, "pairs with gaps");
  CHECK(layout->whole->nam_type == MSA_NAM_DOUBLE_INT && layout->whole->is_contiguous, "pairs with gaps");
  CHECK(msa_layout_of(mixed)->nam_type == -1, "several types");
  CHECK(msa_layout_of(MPI_INT)->is_contiguous && msa_layout_of(MPI_INT)->nam_type == MSA_NAM_INT32, "int");
  CHECK(msa_layout_of(MPI_AINT)->nam_type == MSA_NAM_INT64, "aint");
  CHECK(msa_op_of(MPI_BAND, kMsaReal) < 0 && msa_op_of(MPI_SUM, kMsaLogical) < 0, "operations by kind");
  int64_t low, high;
  CHECK(msa_layout_span(layout, UINT64_MAX, &low, &high) != 0, "overflow");
  MPI_Type_free(&vector);
  MPI_Type_free(&pairs);
  MPI_Type_free(&mixed);
}

// By precision and range, as Fortran has its kinds.
static void FortranKinds(void) {
  MPI_Datatype types[7];
  const int expected[7] = {MSA_NAM_FLOAT, MSA_NAM_DOUBLE, MSA_NAM_DOUBLE_COMPLEX, MSA_NAM_INT8,
                           MSA_NAM_INT16, MSA_NAM_INT32,  MSA_NAM_INT64};
  MPI_Type_create_f90_real(6, 30, &types[0]);
  MPI_Type_create_f90_real(15, 300, &types[1]);
  MPI_Type_create_f90_complex(15, 300, &types[2]);
  MPI_Type_create_f90_integer(2, &types[3]);
  MPI_Type_create_f90_integer(4, &types[4]);
  MPI_Type_create_f90_integer(9, &types[5]);
  MPI_Type_create_f90_integer(18, &types[6]);
  for (int i = 0; i < 7; ++i) {
    const struct msa_layout* layout = msa_layout_of(types[i]);
    MPI_Datatype many;
    CHECK(layout != NULL && layout->nam_type == expected[i], "kind %d is %d", i,
          layout != NULL ? layout->nam_type : -2);
    CHECK(layout != NULL && layout->is_contiguous && msa_op_of(MPI_SUM, layout->kind) >= 0, "kind %d", i);
    MPI_Type_vector(3, 1, 2, types[i], &many);
    MPI_Type_commit(&many);
    CHECK(msa_layout_of(many)->nam_type == expected[i], "a vector of kind %d", i);
    MPI_Type_free(&many);
  }
}

int main(int argc, char** argv) {
  static char memory[kBytes];
  MPI_Init(&argc, &argv);
  state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  for (int i = 0; i < kBytes; ++i) memory[i] = (char)Random(256);
  KnownTypes();
  FortranKinds();
  RandomTypes(argc > 2 ? atoi(argv[2]) : 2000, memory);
  if (!wrong) printf("layouts ok\n");
  MPI_Finalize();
  return wrong;
}
