// The same random operations on a window in network attached memory and on one of the MPI's own: contents and
// results are equal. nam_differential SEED ROUNDS. Each rank changes its own part of each target's memory, so
// the order among ranks does not matter; each part has one field for each predefined datatype, so no number
// is read as another type's.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kField = 512, kMostElements = 24 };

static uint64_t state;
static uint32_t Random(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 33) % below);
}

// What may be done with a type.
enum { kArithmetic = 1, kOrder = 2, kLogical = 4, kBits = 8, kLocation = 16, kSwap = 32 };
struct basic {
  const char* name;
  MPI_Datatype type;
  int bytes, ops;
};
static struct basic basics[24];
static int basic_count;

static void Add(const char* name, MPI_Datatype type, int ops) {
  MPI_Aint low, extent;
  MPI_Type_get_extent(type, &low, &extent);
  basics[basic_count++] = (struct basic){name, type, (int)extent, ops};
}

static void FillBasics(void) {
  const int integer = kArithmetic | kOrder | kLogical | kBits | kSwap;
  // MPICH 4.0.2 compares unsigned numbers as signed ones.
  const int natural = integer & ~kOrder;
  Add("int8", MPI_INT8_T, integer);
  Add("uint8", MPI_UINT8_T, natural);
  Add("int16", MPI_INT16_T, integer);
  Add("uint16", MPI_UINT16_T, natural);
  Add("int32", MPI_INT, integer);
  Add("uint32", MPI_UNSIGNED, natural);
  Add("int64", MPI_LONG, integer);
  Add("uint64", MPI_UINT64_T, natural);
  Add("aint", MPI_AINT, integer & ~kSwap);
  Add("float", MPI_FLOAT, kArithmetic | kOrder);
  Add("double", MPI_DOUBLE, kArithmetic | kOrder);
  Add("double complex", MPI_C_DOUBLE_COMPLEX, kArithmetic);
  Add("byte", MPI_BYTE, kBits);
  Add("2int", MPI_2INT, kLocation);
  // Open MPI 4.1.4's own windows refuse MINLOC of pairs that have gaps.
#ifdef OPEN_MPI
  const int with_gaps = 0;
#else
  const int with_gaps = kLocation;
#endif
  Add("double int", MPI_DOUBLE_INT, with_gaps);
  Add("short int", MPI_SHORT_INT, with_gaps);
}

static void SetElement(const struct basic* b, char* at, int small) {
  // No factor makes a negative zero, of which MIN and MAX may take either.
  const int is_real = b->ops == kArithmetic || b->ops == (kArithmetic | kOrder);
  const int v = small ? (Random(2) || is_real ? 1 : -1) : (int)Random(17) - 8;
  memset(at, 0, (size_t)b->bytes);
  if (b->type == MPI_FLOAT)
    *(float*)at = (float)v;
  else if (b->type == MPI_DOUBLE)
    *(double*)at = v;
  else if (b->type == MPI_C_DOUBLE_COMPLEX)
    ((double*)at)[0] = v, ((double*)at)[1] = small ? 0 : v / 2;
  else if (b->type == MPI_2INT)
    ((int*)at)[0] = v, ((int*)at)[1] = (int)Random(100);
  else if (b->type == MPI_DOUBLE_INT)
    *(double*)at = v, ((int*)at)[2] = (int)Random(100);
  else if (b->type == MPI_SHORT_INT)
    *(short*)at = (short)v, ((int*)at)[1] = (int)Random(100);
  else
    memcpy(at, &(int64_t){v}, (size_t)b->bytes);
}

// ------------------------------------------------------------------------------------ random datatypes

// A struct of a vector and what is left.
static MPI_Datatype Struct(const struct basic* b, int n) {
  MPI_Datatype type, parts[2];
  const int first = n / 2 > 0 ? n / 2 : 1;
  int lengths[] = {1, n - first};
  MPI_Aint places[] = {0, (MPI_Aint)2 * first * b->bytes};
  MPI_Type_vector(first, 1, 2, b->type, &parts[0]);
  parts[1] = b->type;
  MPI_Type_create_struct(2, lengths, places, parts, &type);
  MPI_Type_free(&parts[0]);
  return type;
}

// A resized contiguous one, several times.
static MPI_Datatype Resized(const struct basic* b, int n, int cells) {
  MPI_Datatype inner, wide, type;
  const int block = n % 3 == 0 ? 3 : 1;
  MPI_Type_contiguous(block, b->type, &inner);
  MPI_Type_create_resized(inner, 0, (MPI_Aint)(cells / (n / block)) * b->bytes, &wide);
  MPI_Type_contiguous(n / block, wide, &type);
  MPI_Type_free(&inner);
  MPI_Type_free(&wide);
  return type;
}

// A layout of `n` elements in at most `room` bytes from 0, no two on one place.
static MPI_Datatype Derived(const struct basic* b, int n, int room) {
  MPI_Datatype type;
  const int cells = room / b->bytes;
  switch (n * 2 <= cells ? Random(9) : 0) {
    case 1: {  // vector
      const int block = n % 2 == 0 ? 2 : 1;
      MPI_Type_vector(n / block, block, cells / (n / block), b->type, &type);
      return type;
    }
    case 2:
      MPI_Type_create_hvector(n, 1, (MPI_Aint)(cells / n) * b->bytes, b->type, &type);
      return type;
    case 3: {  // indexed, backwards
      int lengths[kMostElements], places[kMostElements];
      for (int i = 0; i < n; ++i) lengths[i] = 1, places[i] = 2 * (n - 1 - i);
      MPI_Type_indexed(n, lengths, places, b->type, &type);
      return type;
    }
    case 4: {  // with an empty block
      int lengths[] = {n / 2, 0, n - n / 2};
      MPI_Aint places[] = {0, 0, (MPI_Aint)(n / 2 + 1) * b->bytes};
      MPI_Type_create_hindexed(3, lengths, places, b->type, &type);
      return type;
    }
    case 5: {
      int places[kMostElements];
      for (int i = 0; i < n; ++i) places[i] = i + (i >= n / 2);
      MPI_Type_create_indexed_block(n, 1, places, b->type, &type);
      return type;
    }
    case 6: {  // rows of a matrix
      int sizes[] = {n, 2}, part[] = {n, 1}, starts[] = {0, (int)Random(2)};
      MPI_Type_create_subarray(2, sizes, part, starts, Random(2) ? MPI_ORDER_C : MPI_ORDER_C, b->type, &type);
      return type;
    }
    case 7:
      return Struct(b, n);
    case 8:
      return Resized(b, n, cells);
    default:
      MPI_Type_contiguous(n, b->type, &type);
      return type;
  }
}

static MPI_Op PickOp(const struct basic* b, int* small) {
  MPI_Op ops[16];
  int n = 0;
  ops[n++] = MPI_REPLACE;
  if (b->ops & kArithmetic) ops[n++] = MPI_SUM, ops[n++] = MPI_PROD;
  if (b->ops & kOrder) ops[n++] = MPI_MIN, ops[n++] = MPI_MAX;
  if (b->ops & kLogical) ops[n++] = MPI_LAND, ops[n++] = MPI_LOR, ops[n++] = MPI_LXOR;
  if (b->ops & kBits) ops[n++] = MPI_BAND, ops[n++] = MPI_BOR, ops[n++] = MPI_BXOR;
  if (b->ops & kLocation) ops[n++] = MPI_MINLOC, ops[n++] = MPI_MAXLOC;
  const MPI_Op op = ops[Random((uint32_t)n)];
  *small = op == MPI_PROD;
  return op;
}

// ------------------------------------------------------------------------------------------ operations

struct step {
  int what, target, elements, request;
  MPI_Aint disp;
  const struct basic* basic;
  MPI_Datatype origin_type, target_type, result_type;
  MPI_Op op;
  char origin[kField], compare[16];
};

enum { kPut, kGet, kAccumulate, kGetAccumulate, kFetch, kCas, kKinds };

static void Finish(MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

// One operation on one window; `result` is of kField bytes.
static void Do(const struct step* s, MPI_Win win, char* result) {
  MPI_Request r = MPI_REQUEST_NULL;
  const MPI_Datatype o = s->origin_type, t = s->target_type, b = s->basic->type;
  switch (s->what) {
    case kPut:
      if (s->request)
        MPI_Rput(s->origin, 1, o, s->target, s->disp, 1, t, win, &r);
      else
        MPI_Put(s->origin, 1, o, s->target, s->disp, 1, t, win);
      break;
    case kGet:
      if (s->request)
        MPI_Rget(result, 1, o, s->target, s->disp, 1, t, win, &r);
      else
        MPI_Get(result, 1, o, s->target, s->disp, 1, t, win);
      break;
    case kAccumulate:
      if (s->request)
        MPI_Raccumulate(s->origin, 1, o, s->target, s->disp, 1, t, s->op, win, &r);
      else
        MPI_Accumulate(s->origin, 1, o, s->target, s->disp, 1, t, s->op, win);
      break;
    case kGetAccumulate:
      if (s->request)
        MPI_Rget_accumulate(s->origin, 1, o, result, 1, s->result_type, s->target, s->disp, 1, t, s->op, win,
                            &r);
      else
        MPI_Get_accumulate(s->origin, 1, o, result, 1, s->result_type, s->target, s->disp, 1, t, s->op, win);
      break;
    case kFetch:
      MPI_Fetch_and_op(s->origin, result, b, s->target, s->disp, s->op, win);
      break;
    case kCas:
      MPI_Compare_and_swap(s->origin, s->compare, result, b, s->target, s->disp, win);
      break;
    default:
      break;
  }
  if (s->request && s->what <= kGetAccumulate) Finish(&r);
}

static void Locked(const struct step* s, int how, MPI_Win win, char* result) {
  if (how == 2) {
    MPI_Win_lock_all(0, win);
    Do(s, win, result);
    MPI_Win_flush(s->target, win);
    MPI_Win_unlock_all(win);
    return;
  }
  MPI_Win_lock(how ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, s->target, 0, win);
  Do(s, win, result);
  MPI_Win_unlock(s->target, win);
}

static void Plan(struct step* s, int rank, int size) {
  int small = 0;
  const int field = (int)Random((uint32_t)basic_count);
  s->basic = &basics[field];
  s->what = (int)Random(kKinds);
  if (s->what == kCas && !(s->basic->ops & kSwap)) s->what = kPut;
  s->target = (int)Random((uint32_t)size);
  const int most = kField / s->basic->bytes < kMostElements ? kField / s->basic->bytes : kMostElements;
  s->elements = s->what >= kFetch ? 1 : 1 + (int)Random((uint32_t)most);
  s->request = Random(3) == 0;
  s->op = PickOp(s->basic, &small);
  if ((s->what == kFetch || s->what == kGetAccumulate) && Random(5) == 0) s->op = MPI_NO_OP;
  s->disp = ((MPI_Aint)rank * basic_count + field) * kField;
  for (int i = 0; i < kField / s->basic->bytes; ++i)
    SetElement(s->basic, s->origin + i * s->basic->bytes, small);
  SetElement(s->basic, s->compare, 0);
  MPI_Datatype* types[] = {&s->origin_type, &s->target_type, &s->result_type};
  for (int i = 0; i < 3; ++i) {
    *types[i] = Derived(s->basic, s->elements, kField);
    MPI_Type_commit(types[i]);
  }
}

// The gaps inside of pairs belong to nobody.
static int IsGap(const struct basic* b, int byte) {
  const int at = byte % b->bytes;
  return (b->type == MPI_DOUBLE_INT && at >= 12) || (b->type == MPI_SHORT_INT && at >= 2 && at < 4);
}

static const char* OpName(MPI_Op op) {
  const MPI_Op ops[] = {MPI_REPLACE, MPI_NO_OP, MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,    MPI_LAND,
                        MPI_LOR,     MPI_LXOR,  MPI_BAND, MPI_BOR,  MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
  static const char* const kNames[] = {"replace", "no_op", "sum",  "prod", "min",  "max",    "land",
                                       "lor",     "lxor",  "band", "bor",  "bxor", "minloc", "maxloc"};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; ++i)
    if (ops[i] == op) return kNames[i];
  return "?";
}

static int Differs(const struct step* s, const char* a, const char* b, int rank, int round) {
  static const char* const kNames[] = {"put", "get", "accumulate", "get_accumulate", "fetch_and_op", "cas"};
  int at = 0;
  while (at < kField && (a[at] == b[at] || IsGap(s->basic, at))) ++at;
  if (at == kField) return 0;
  printf("differs: rank %d round %d %s %s of %d %s at target %d, byte %d: %d and %d\n", rank, round,
         kNames[s->what], OpName(s->op), s->elements, s->basic->name, s->target, at, a[at], b[at]);
  return 1;
}

// This rank's field of the target, as it is after the operation.
static void Read(const struct step* s, MPI_Win win, char* field) {
  MPI_Win_lock(MPI_LOCK_SHARED, s->target, 0, win);
  MPI_Get(field, kField, MPI_BYTE, s->target, s->disp, kField, MPI_BYTE, win);
  MPI_Win_unlock(s->target, win);
}

// All of a target's memory, from both.
static int CompareTarget(MPI_Win nam, MPI_Win own, int target, int bytes, int rank) {
  char* a = malloc((size_t)bytes);
  char* b = malloc((size_t)bytes);
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, nam);
  MPI_Get(a, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, nam);
  MPI_Win_unlock(target, nam);
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, own);
  MPI_Get(b, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, own);
  MPI_Win_unlock(target, own);
  int bad = 0;
  for (int i = 0; i < bytes && bad == 0; ++i) {
    if (a[i] == b[i] || IsGap(&basics[i / kField % basic_count], i % kField)) continue;
    bad = 1;
    printf("differs: rank %d sees byte %d of target %d, rank %d's %s: %d and %d\n", rank, i, target,
           i / kField / basic_count, basics[i / kField % basic_count].name, a[i], b[i]);
  }
  free(a);
  free(b);
  return bad;
}

static void Clear(MPI_Win win, int bytes, int rank) {
  char* zeros = calloc(1, (size_t)bytes);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  MPI_Put(zeros, bytes, MPI_BYTE, rank, 0, bytes, MPI_BYTE, win);
  MPI_Win_unlock(rank, win);
  free(zeros);
}

int main(int argc, char** argv) {
  int rank, size, bad = 0;
  void *base, *own_base;
  MPI_Win nam, own;
  MPI_Info info;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 2 ? atoi(argv[2]) : 100;
  state = 88172645463325252ull + (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000003 + (uint64_t)rank;
  for (int i = 0; i < 10; ++i) Random(2);
  FillBasics();
  const int bytes = size * basic_count * kField;
  MPI_Info_create(&info);
  MPI_Info_set(info, "deep_mem_kind", "deep_nam");
  MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &base, &nam);
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own_base, &own);
  Clear(nam, bytes, rank);
  Clear(own, bytes, rank);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < rounds && bad == 0; ++round) {
    struct step s;
    char a[kField] = {0}, b[kField] = {0};
    Plan(&s, rank, size);
    const int how = (int)Random(3);
    Locked(&s, how, nam, a);
    Locked(&s, how, own, b);
    bad = Differs(&s, a, b, rank, round);
    Read(&s, nam, a);
    Read(&s, own, b);
    bad = bad || Differs(&s, a, b, rank, round);
    MPI_Type_free(&s.origin_type);
    MPI_Type_free(&s.target_type);
    MPI_Type_free(&s.result_type);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int target = 0; target < size && bad == 0; ++target)
    bad = CompareTarget(nam, own, target, bytes, rank);
  int all = 0;
  MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Win_free(&nam);
  MPI_Win_free(&own);
  MPI_Info_free(&info);
  if (rank == 0 && all == 0) printf("equal: %d ranks, %d operations each\n", size, rounds);
  MPI_Finalize();
  return all;
}
