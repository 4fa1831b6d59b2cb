// Accumulates of numbers that are special, on a window in network attached memory and on one of the MPI's
// own: NaN, signed zeros, infinities and subnormal numbers, unsigned numbers above the largest signed one,
// and MPI_REPLACE and MPI_NO_OP of every type. Two ranks; rank 0 works on rank 1's memory; prints "ok
// values", or what is wrong.
//
// Where MPI 4.0 leaves the result open each window's must be one of those possible: which NaN comes out,
// which of two zeros MPI_MIN and MPI_MAX take, and whether they take NaN or the number. Unsigned numbers are
// compared with C's result alone: MPICH 4.0.2 compares them as signed ones.
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 16384, kTarget = 1 };
static MPI_Win nam, own;
static int bad;

static void Differ(const char* type, const char* op, int at, const char* what) {
  if (++bad <= 20) printf("%s of %s, pair %d: %s\n", op, type, at, what);
}

// ------------------------------------------------------------------------------------- on both windows

struct work {
  MPI_Datatype type;
  MPI_Op op;
  int count, bytes;  // elements, and bytes of each
  const void *before, *operand;
};

enum { kAccumulate, kGetAccumulate, kFetch, kWays };

// `after`: what is there then; `fetched`: what was there before, unless it is kAccumulate.
static void Do(const struct work* w, MPI_Win win, int lock, int way, void* after, void* fetched) {
  const int bytes = w->count * w->bytes;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
  MPI_Put(w->before, bytes, MPI_BYTE, kTarget, 0, bytes, MPI_BYTE, win);
  MPI_Win_unlock(kTarget, win);
  MPI_Win_lock(lock, kTarget, 0, win);
  if (way == kAccumulate)
    MPI_Accumulate(w->operand, w->count, w->type, kTarget, 0, w->count, w->type, w->op, win);
  else if (way == kGetAccumulate)
    MPI_Get_accumulate(w->operand, w->count, w->type, fetched, w->count, w->type, kTarget, 0, w->count,
                       w->type, w->op, win);
  else
    for (int i = 0; i < w->count; ++i)
      MPI_Fetch_and_op((const char*)w->operand + i * w->bytes, (char*)fetched + i * w->bytes, w->type,
                       kTarget, (MPI_Aint)i * w->bytes, w->op, win);
  MPI_Win_unlock(kTarget, win);
  MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, win);
  MPI_Get(after, bytes, MPI_BYTE, kTarget, 0, bytes, MPI_BYTE, win);
  MPI_Win_unlock(kTarget, win);
}

typedef int (*judge)(const struct work* w, int at, const void* result);

static const void* At(const struct work* w, const void* all, int at) {
  return (const char*)all + at * w->bytes;
}

// On both windows unless `judges_own` is 0. `significant`: bytes of an element that count.
static void Try(const struct work* w, const char* type, const char* op, int significant, judge is_right,
                int judges_own) {
  char after[kBytes], fetched[kBytes];
  for (int lock = 0; lock < 2; ++lock)
    for (int way = w->op == MPI_NO_OP ? kGetAccumulate : kAccumulate; way < kWays; ++way)
      for (int window = 0; window < 1 + judges_own; ++window) {
        memcpy(fetched, w->before,
               sizeof fetched < (size_t)w->count * w->bytes ? sizeof fetched : (size_t)w->count * w->bytes);
        Do(w, window == 0 ? nam : own, lock ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, way, after, fetched);
        for (int i = 0; i < w->count; ++i) {
          if (!is_right(w, i, At(w, after, i)))
            Differ(type, op, i, window == 0 ? "wrong in NAM" : "wrong in the MPI's own window");
          if (memcmp(At(w, fetched, i), At(w, w->before, i), (size_t)significant) != 0)
            Differ(type, op, i, window == 0 ? "fetched wrong from NAM" : "fetched wrong from the MPI's own");
        }
      }
}

// ---------------------------------------------------------------------------------------------- reals

#define REALS(T, name, mpi, smallest, largest, significant)                                                  \
  static int Same##name(T a, T b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); } \
  static int Is##name(const struct work* w, int at, const void* result) {                                    \
    T a, b, r;                                                                                               \
    memcpy(&a, At(w, w->before, at), sizeof a);                                                              \
    memcpy(&b, At(w, w->operand, at), sizeof b);                                                             \
    memcpy(&r, result, sizeof r);                                                                            \
    const int is_open = isnan(a) || isnan(b) || a == b;                                                      \
    const int is_either = Same##name(r, a) || Same##name(r, b);                                              \
    if (w->op == MPI_SUM) return Same##name(r, a + b);                                                       \
    if (w->op == MPI_PROD) return Same##name(r, a * b);                                                      \
    if (w->op == MPI_MIN) return is_open ? is_either : Same##name(r, b < a ? b : a);                         \
    if (w->op == MPI_MAX) return is_open ? is_either : Same##name(r, a < b ? b : a);                         \
    return memcmp(result, At(w, w->op == MPI_NO_OP ? w->before : w->operand, at), significant) == 0;         \
  }                                                                                                          \
  static void name(void) {                                                                                   \
    const T numbers[] = {0,    -(T)0,        1,        -1,      (T)1.5,   INFINITY, -INFINITY, NAN,          \
                         -NAN, smallest / 4, smallest, largest, -largest, 7};                                \
    enum { kNumbers = sizeof numbers / sizeof numbers[0] };                                                  \
    static T before[kNumbers * kNumbers], operand[kNumbers * kNumbers];                                      \
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_REPLACE, MPI_NO_OP};                      \
    const char* const names[] = {"sum", "prod", "min", "max", "replace", "no_op"};                           \
    for (int i = 0; i < kNumbers * kNumbers; ++i)                                                            \
      before[i] = numbers[i / kNumbers], operand[i] = numbers[i % kNumbers];                                 \
    for (int op = 0; op < 6; ++op) {                                                                         \
      const struct work w = {mpi, ops[op], kNumbers * kNumbers, sizeof(T), before, operand};                 \
      Try(&w, #T, names[op], significant, &Is##name, 1);                                                     \
    }                                                                                                        \
  }
REALS(float, Floats, MPI_FLOAT, FLT_MIN, FLT_MAX, sizeof(float))
REALS(double, Doubles, MPI_DOUBLE, DBL_MIN, DBL_MAX, sizeof(double))
// Six of its sixteen bytes are nothing.
REALS(long double, LongDoubles, MPI_LONG_DOUBLE, LDBL_MIN, LDBL_MAX, 10)

// ------------------------------------------------------------------------------------------- unsigned

// Open MPI 4.1.4 compares MPI_UNSIGNED_LONG, MPICH 4.0.2 all of them, as signed numbers.
static int OwnIsRight(MPI_Datatype type) {
#ifdef OPEN_MPI
  return type != MPI_UNSIGNED_LONG;
#else
  return type == MPI_DATATYPE_NULL;
#endif
}

#define NATURALS(T, name, mpi)                                                                              \
  static int Is##name(const struct work* w, int at, const void* result) {                                   \
    T a, b, r;                                                                                              \
    memcpy(&a, At(w, w->before, at), sizeof a);                                                             \
    memcpy(&b, At(w, w->operand, at), sizeof b);                                                            \
    memcpy(&r, result, sizeof r);                                                                           \
    return r == (w->op == MPI_MIN ? (b < a ? b : a) : (a < b ? b : a));                                     \
  }                                                                                                         \
  static void name(void) {                                                                                  \
    const T most = (T) ~(T)0, half = most / 2;                                                              \
    const T numbers[] = {0,   1, 2, 100, (T)(half - 1), half, (T)(half + 1), (T)(half + 2), (T)(most - 1),  \
                         most};                                                                             \
    enum { kNumbers = sizeof numbers / sizeof numbers[0] };                                                 \
    static T before[kNumbers * kNumbers], operand[kNumbers * kNumbers];                                     \
    for (int i = 0; i < kNumbers * kNumbers; ++i)                                                           \
      before[i] = numbers[i / kNumbers], operand[i] = numbers[i % kNumbers];                                \
    for (int op = 0; op < 2; ++op) {                                                                        \
      const struct work w = {mpi, op ? MPI_MAX : MPI_MIN, kNumbers * kNumbers, sizeof(T), before, operand}; \
      Try(&w, #mpi, op ? "max" : "min", sizeof(T), &Is##name, OwnIsRight(mpi));                             \
    }                                                                                                       \
  }
NATURALS(unsigned char, Chars, MPI_UNSIGNED_CHAR)
NATURALS(uint8_t, Bytes, MPI_UINT8_T)
NATURALS(uint16_t, Words, MPI_UINT16_T)
NATURALS(unsigned short, Shorts, MPI_UNSIGNED_SHORT)
NATURALS(uint32_t, Doublewords, MPI_UINT32_T)
NATURALS(unsigned, Ints, MPI_UNSIGNED)
NATURALS(uint64_t, Quadwords, MPI_UINT64_T)
NATURALS(unsigned long, Longs, MPI_UNSIGNED_LONG)
NATURALS(unsigned long long, LongLongs, MPI_UNSIGNED_LONG_LONG)

// ------------------------------------------------------------------------------- replace and no_op

// Pairs and long doubles have bytes that belong to nobody: which ones do is what the MPI packs.
static char belongs[64];
static int IsReplaced(const struct work* w, int at, const void* result) {
  const char* wanted = At(w, w->op == MPI_NO_OP ? w->before : w->operand, at);
  for (int i = 0; i < w->bytes; ++i)
    if (belongs[i] && ((const char*)result)[i] != wanted[i]) return 0;
  return 1;
}

static void Every(const char* name, MPI_Datatype type) {
  static char before[1024], operand[1024];
  MPI_Aint low, extent;
  int size = 0;
  if (type == MPI_DATATYPE_NULL) return;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &low, &extent);
  for (int i = 0; i < 1024; ++i) before[i] = (char)(i * 7 + 1), operand[i] = (char)(i * 11 + 5);
  memset(belongs, extent == size && type != MPI_LONG_DOUBLE && type != MPI_C_LONG_DOUBLE_COMPLEX,
         sizeof belongs);
  if (type == MPI_DOUBLE_INT) memset(belongs, 1, 12);
  if (type == MPI_LONG_INT) memset(belongs, 1, 12);
  if (type == MPI_SHORT_INT) memset(belongs, 1, 2), memset(belongs + 4, 1, 4);
  if (type == MPI_LONG_DOUBLE_INT) memset(belongs, 1, 10), memset(belongs + 16, 1, 4);
  if (type == MPI_LONG_DOUBLE) memset(belongs, 1, 10);
  if (type == MPI_C_LONG_DOUBLE_COMPLEX) memset(belongs, 1, 10), memset(belongs + 16, 1, 10);
  for (int op = 0; op < 2; ++op) {
    const struct work w = {type, op ? MPI_NO_OP : MPI_REPLACE, 9, (int)extent, before, operand};
    // Not on their own windows: Open MPI 4.1.4 refuses pairs with gaps, and neither takes all of these.
    Try(&w, name, op ? "no_op" : "replace", 0, &IsReplaced, 0);
  }
}

#define EVERY(type) Every(#type, type)
static void EveryType(void) {
  EVERY(MPI_CHAR), EVERY(MPI_SIGNED_CHAR), EVERY(MPI_UNSIGNED_CHAR), EVERY(MPI_BYTE), EVERY(MPI_WCHAR);
  EVERY(MPI_SHORT), EVERY(MPI_UNSIGNED_SHORT), EVERY(MPI_INT), EVERY(MPI_UNSIGNED), EVERY(MPI_LONG);
  EVERY(MPI_UNSIGNED_LONG), EVERY(MPI_LONG_LONG), EVERY(MPI_UNSIGNED_LONG_LONG), EVERY(MPI_C_BOOL);
  EVERY(MPI_INT8_T), EVERY(MPI_INT16_T), EVERY(MPI_INT32_T), EVERY(MPI_INT64_T), EVERY(MPI_UINT8_T);
  EVERY(MPI_UINT16_T), EVERY(MPI_UINT32_T), EVERY(MPI_UINT64_T), EVERY(MPI_AINT), EVERY(MPI_OFFSET);
  EVERY(MPI_COUNT), EVERY(MPI_FLOAT), EVERY(MPI_DOUBLE), EVERY(MPI_LONG_DOUBLE), EVERY(MPI_C_FLOAT_COMPLEX);
  EVERY(MPI_C_DOUBLE_COMPLEX), EVERY(MPI_C_LONG_DOUBLE_COMPLEX), EVERY(MPI_FLOAT_INT), EVERY(MPI_DOUBLE_INT);
  EVERY(MPI_LONG_INT), EVERY(MPI_2INT), EVERY(MPI_SHORT_INT), EVERY(MPI_LONG_DOUBLE_INT);
  EVERY(MPI_INTEGER), EVERY(MPI_REAL), EVERY(MPI_DOUBLE_PRECISION), EVERY(MPI_LOGICAL), EVERY(MPI_CHARACTER);
  EVERY(MPI_COMPLEX), EVERY(MPI_DOUBLE_COMPLEX), EVERY(MPI_2INTEGER), EVERY(MPI_PACKED);
}

int main(int argc, char** argv) {
  int rank, any = 0;
  void *base, *own_base;
  MPI_Info info;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&info);
  MPI_Info_set(info, "deep_mem_kind", "deep_nam");
  MPI_Win_allocate(kBytes, 1, info, MPI_COMM_WORLD, &base, &nam);
  MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own_base, &own);
  MPI_Info_free(&info);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    Floats(), Doubles(), LongDoubles();
    Chars(), Bytes(), Words(), Shorts(), Doublewords(), Ints(), Quadwords(), Longs(), LongLongs();
    EveryType();
  }
  fflush(stdout);
  MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Win_free(&nam);
  MPI_Win_free(&own);
  if (rank == 0 && any == 0) printf("ok values\n");
  MPI_Finalize();
  return any != 0;
}
