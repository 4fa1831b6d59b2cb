// NAM windows and buffers on a CUDA device, by cuda_double.c. Prints "ok COMMAND", or what is wrong.
//   transfers, atomics, derived, requests, context   with the device's memory; libcuda is loaded before the
//   window late        libcuda is loaded when the window is open managed     memory of both: used where it
//   lies lookups     how often host pointers are looked up untouched   libcuda is loaded and was never
//   initialised no-device   libcuda is loaded, without a device without     no libcuda on this machine:
//   nothing of it is opened
#define _GNU_SOURCE
#include <dlfcn.h>
#include <msa_mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
enum { kCount = 1024 };  // doubles

static int rank, bad;
static MPI_Win win;
static struct {
  int (*init)(unsigned);
  int (*context)(int);
  int (*alloc)(address*, size_t);
  int (*alloc_managed)(address*, size_t, unsigned);
  int (*depth)(void);
  void (*peek)(void*, address, size_t);
  void (*poke)(address, const void*, size_t);
  int *lookups, *initialisations, *copies, *block_copies;
} cuda;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      printf("rank %d line %d: not so: %s\n", rank, __LINE__, #condition); \
      bad = 1;                                                             \
    }                                                                      \
  } while (0)

static void Load(void) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  struct {
    void* to;
    const char* name;
  } all[] = {{&cuda.init, "cuInit"},
             {&cuda.context, "double_context"},
             {&cuda.alloc, "cuMemAlloc_v2"},
             {&cuda.alloc_managed, "cuMemAllocManaged"},
             {&cuda.depth, "double_depth"},
             {&cuda.peek, "double_peek"},
             {&cuda.poke, "double_poke"},
             {&cuda.lookups, "double_lookups"},
             {&cuda.initialisations, "double_initialisations"},
             {&cuda.copies, "double_copies"},
             {&cuda.block_copies, "double_block_copies"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) *(void**)all[i].to = dlsym(library, all[i].name);
}

static void Start(void) {
  Load();
  CHECK(cuda.init(0) == 0);
  CHECK(cuda.context(0) == 0);
}

static double* Device(void) {
  address at = 0;
  CHECK(cuda.alloc(&at, kCount * sizeof(double)) == 0);
  return (double*)at;
}

static double At(const double* device) {
  double value;
  cuda.peek(&value, (address)device, sizeof value);
  return value;
}

static void Fill(double* device, double first) {
  double values[kCount];
  for (int i = 0; i < kCount; ++i) values[i] = first + i;
  cuda.poke((address)device, values, sizeof values);
}

// Each rank's segment, by way of the window's target.
static void Open(void) {
  MPI_Info info;
  void* base;
  MPI_Info_create(&info);
  MPI_Info_set(info, "deep_mem_kind", "deep_nam");
  MPI_Win_allocate(kCount * sizeof(double), sizeof(double), info, MPI_COMM_WORLD, &base, &win);
  MPI_Info_free(&info);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
}

static double Segment(int index) {
  double value = -1;
  MPI_Get(&value, 1, MPI_DOUBLE, rank, index, 1, MPI_DOUBLE, win);
  MPI_Win_flush(rank, win);
  return value;
}

static void Transfers(void) {
  double *a = Device(), *b = Device();
  Fill(a, 5);
  CHECK(MPI_Put(a, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  for (int i = 0; i < kCount; i += 111) CHECK(Segment(i) == 5 + i);
  Fill(b, -9);
  const int copies = *cuda.copies;
  CHECK(MPI_Get(b + 1, kCount - 2, MPI_DOUBLE, rank, 1, kCount - 2, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(*cuda.copies == copies + 1);  // what is overwritten is not read before
  CHECK(At(b) == -9 && At(b + kCount - 1) == -9 + kCount - 1);
  for (int i = 1; i < kCount - 1; ++i) CHECK(At(b + i) == 5 + i);
  // A get that is refused leaves the buffer alone.
  CHECK(MPI_Get(b, 2, MPI_DOUBLE, rank, kCount - 1, 2, MPI_DOUBLE, win) != MPI_SUCCESS);
  CHECK(At(b) == -9);
  CHECK(cuda.depth() == 1 && *cuda.initialisations == 1);
}

static void Atomics(void) {
  double *a = Device(), *b = Device();
  long long host = 40;
  Fill(a, 1);
  CHECK(MPI_Put(a, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(MPI_Accumulate(a, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, MPI_SUM, win) == MPI_SUCCESS);
  CHECK(Segment(7) == 16);
  CHECK(MPI_Get_accumulate(a, kCount, MPI_DOUBLE, b, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, MPI_SUM,
                           win) == MPI_SUCCESS);
  CHECK(Segment(7) == 24 && At(b + 7) == 16 && At(b + kCount - 1) == 2 * kCount);
  // No operand, a result on the device; an operand of the host.
  CHECK(MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, b, 8, MPI_DOUBLE, rank, 0, 8, MPI_DOUBLE, MPI_NO_OP, win) ==
        MPI_SUCCESS);
  CHECK(At(b + 7) == 24);
  double one = 1;
  CHECK(MPI_Fetch_and_op(&one, b, MPI_DOUBLE, rank, 7, MPI_SUM, win) == MPI_SUCCESS);
  CHECK(At(b) == 24 && Segment(7) == 25);
  CHECK(MPI_Fetch_and_op(a, &one, MPI_DOUBLE, rank, 7, MPI_REPLACE, win) == MPI_SUCCESS);
  CHECK(one == 25 && Segment(7) == 1);
  MPI_Put(&host, 1, MPI_LONG_LONG, rank, 0, 1, MPI_LONG_LONG, win);
  MPI_Win_flush(rank, win);
  const long long compare = 40, value = 41;
  cuda.poke((address)a, &value, 8);
  cuda.poke((address)(a + 1), &compare, 8);
  CHECK(MPI_Compare_and_swap(a, a + 1, b, MPI_LONG_LONG, rank, 0, win) == MPI_SUCCESS);
  cuda.peek(&host, (address)b, 8);
  CHECK(host == 40);
  MPI_Get(&host, 1, MPI_LONG_LONG, rank, 0, 1, MPI_LONG_LONG, win);
  MPI_Win_flush(rank, win);
  CHECK(host == 41);
  CHECK(cuda.depth() == 1);
}

static void Swap(MPI_Datatype type, int count, int is_bottom, double* a, double* b) {
  const int elements = 16;
  double from[kCount], to[kCount], expected[kCount];
  for (int i = 0; i < kCount; ++i) from[i] = 100 + i, expected[i] = -1;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  for (int i = 0; i < kCount; ++i) to[i] = -1;
  cuda.poke((address)a, from, sizeof from);
  cuda.poke((address)b, to, sizeof to);
  // The host's own MPI says which bytes the type names.
  double packed[16];
  int at = 0;
  if (!is_bottom) {
    MPI_Pack(from, count, type, packed, sizeof packed, &at, MPI_COMM_SELF);
    at = 0;
    MPI_Unpack(packed, sizeof packed, &at, expected, count, type, MPI_COMM_SELF);
  }
  CHECK(MPI_Put(is_bottom ? MPI_BOTTOM : a, count, type, rank, 0, elements, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  if (is_bottom) return;
  for (int i = 0; i < elements; ++i) CHECK(Segment(i) == packed[i]);
  CHECK(MPI_Get(b, count, type, rank, 0, elements, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  cuda.peek(to, (address)b, sizeof to);
  CHECK(memcmp(to, expected, sizeof to) == 0);
  CHECK(MPI_Accumulate(a, count, type, rank, 0, elements, MPI_DOUBLE, MPI_SUM, win) == MPI_SUCCESS);
  for (int i = 0; i < elements; ++i) CHECK(Segment(i) == 2 * packed[i]);
  CHECK(MPI_Get_accumulate(a, count, type, b, count, type, rank, 0, elements, MPI_DOUBLE, MPI_REPLACE, win) ==
        MPI_SUCCESS);
  cuda.peek(to, (address)b, sizeof to);
  for (int i = 0; i < kCount; ++i) CHECK(to[i] == (expected[i] < 0 ? -1 : 2 * expected[i]));
}

// One type: put, get, accumulate and get_accumulate with both buffers on the device.
static void Exchange(MPI_Datatype type, int count) {
  double *a = Device(), *b = Device();
  MPI_Type_commit(&type);
  MPI_Win_unlock(rank, win);
  Swap(type, count, 0, a, b);
  MPI_Type_free(&type);
}

static void Derived(void) {
  MPI_Datatype type;
  MPI_Type_vector(16, 1, 5, MPI_DOUBLE, &type);
  const int blocks = *cuda.block_copies;
  Exchange(type, 1);
  CHECK(*cuda.block_copies > blocks);  // not one copy a block
  MPI_Type_vector(4, 2, 3, MPI_DOUBLE, &type);
  Exchange(type, 2);
  const int lengths[] = {3, 1, 4}, places[] = {400, 3, 8};
  MPI_Type_indexed(3, lengths, places, MPI_DOUBLE, &type);
  Exchange(type, 2);
  // Count 0 begins before the data, and goes backwards.
  const int one_place = 1000;
  MPI_Datatype inner;
  MPI_Type_create_indexed_block(1, 1, &one_place, MPI_DOUBLE, &inner);
  MPI_Type_create_resized(inner, 0, -24, &type);
  MPI_Type_free(&inner);
  Exchange(type, 16);
  // Absolute addresses in two allocations, and between them no memory.
  double *a = Device(), *b = Device();
  const int halves[] = {8, 8};
  const MPI_Aint displacements[] = {(MPI_Aint)(a + 3), (MPI_Aint)(b + 5)};
  MPI_Type_create_hindexed(2, halves, displacements, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Win_unlock(rank, win);
  Swap(type, 1, 1, a, b);
  CHECK(Segment(0) == 103 && Segment(8) == -1);
  MPI_Type_free(&type);
}

static void Requests(void) {
  double *a = Device(), *b = Device();
  MPI_Request requests[2];
  MPI_Status statuses[2];
  Fill(a, 3);
  Fill(b, 0);
  CHECK(MPI_Rput(a, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win, &requests[0]) == MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_flush(rank, win);
  CHECK(MPI_Rget(b, 8, MPI_DOUBLE, rank, 0, 8, MPI_DOUBLE, win, &requests[0]) == MPI_SUCCESS);
  CHECK(MPI_Rget(b + 8, 8, MPI_DOUBLE, rank, 8, 8, MPI_DOUBLE, win, &requests[1]) == MPI_SUCCESS);
  MPI_Waitall(2, requests, statuses);
  for (int i = 0; i < 16; ++i) CHECK(At(b + i) == 3 + i);
  CHECK(MPI_Raccumulate(a, 4, MPI_DOUBLE, rank, 0, 4, MPI_DOUBLE, MPI_SUM, win, &requests[0]) == MPI_SUCCESS);
  CHECK(MPI_Rget_accumulate(a, 4, MPI_DOUBLE, b, 4, MPI_DOUBLE, rank, 0, 4, MPI_DOUBLE, MPI_SUM, win,
                            &requests[1]) == MPI_SUCCESS);
  MPI_Waitall(2, requests, statuses);
  CHECK(At(b + 3) == 12 && Segment(3) == 18);
}

static void* InThread(void* memory) {
  double* a = memory;
  CHECK(cuda.depth() == 0);
  CHECK(MPI_Put(a, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win) == MPI_SUCCESS);
  CHECK(cuda.depth() == 0);
  return NULL;
}

// Of another context than the thread's, and in a thread that has none.
static void Context(void) {
  double* a = Device();
  pthread_t thread;
  Fill(a, 1);
  CHECK(cuda.context(1) == 0);
  double* b = Device();
  Fill(b, 500);
  CHECK(MPI_Put(b, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(Segment(3) == 503);
  pthread_create(&thread, NULL, &InThread, a);
  pthread_join(thread, NULL);
  MPI_Win_flush(rank, win);
  CHECK(Segment(3) == 4);
  CHECK(MPI_Get(a, 1, MPI_DOUBLE, rank, 9, 1, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(At(a) == 10 && cuda.depth() == 2);
}

static void Managed(void) {
  address at = 0;
  const int copies = *cuda.copies;
  CHECK(cuda.alloc_managed(&at, kCount * sizeof(double), 1) == 0);
  double* values = (double*)at;
  for (int i = 0; i < kCount; ++i) values[i] = i;
  CHECK(MPI_Put(values, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(MPI_Get(values + 5, 1, MPI_DOUBLE, rank, 9, 1, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(values[5] == 9 && *cuda.copies == copies);
}

static double global;

// The stack, the program's variables and its heap are the host's without a question.
static void Lookups(void) {
  double local = 1, *heap = malloc(sizeof *heap);
  double* places[] = {&local, &global, heap};
  *heap = 2;
  const int before = *cuda.lookups;
  for (int i = 0; i < 300; ++i) {
    CHECK(MPI_Put(places[i % 3], 1, MPI_DOUBLE, rank, 0, 1, MPI_DOUBLE, win) == MPI_SUCCESS);
    CHECK(MPI_Fetch_and_op(places[i % 3], places[(i + 1) % 3], MPI_DOUBLE, rank, 1, MPI_SUM, win) ==
          MPI_SUCCESS);
  }
  MPI_Win_flush(rank, win);
  CHECK(*cuda.lookups == before);
  // Mapped memory may have been unmapped, and be a device's: asked once a call.
  double* mapped = malloc(16 << 20);
  mapped[0] = 3;
  for (int i = 0; i < 100; ++i) MPI_Put(mapped, 1, MPI_DOUBLE, rank, 0, 1, MPI_DOUBLE, win);
  MPI_Win_flush(rank, win);
  CHECK(*cuda.lookups == before + 100);
  free(mapped);
  free(heap);
}

// Host memory alone; the caller looks at what libcuda was asked.
static void Host(void) {
  double* values = malloc(16 << 20);
  for (int i = 0; i < kCount; ++i) values[i] = 7 + i;
  CHECK(MPI_Put(values, kCount, MPI_DOUBLE, rank, 0, kCount, MPI_DOUBLE, win) == MPI_SUCCESS);
  MPI_Win_flush(rank, win);
  CHECK(Segment(5) == 12);
  free(values);
}

static int Is(const char* command, const char* name) { return strcmp(command, name) == 0; }

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } all[] = {{"transfers", &Transfers}, {"atomics", &Atomics}, {"derived", &Derived}, {"requests", &Requests},
             {"context", &Context},     {"managed", &Managed}, {"lookups", &Lookups}};
  const char* command = argc > 1 ? argv[1] : "";
  int provided, known = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (Is(command, "late")) {
    Open();
    Host();
    Start();
    Transfers();
  } else if (Is(command, "untouched") || Is(command, "no-device")) {
    Load();
    if (Is(command, "no-device")) CHECK(cuda.init(0) == 100);
    const int inits = *cuda.initialisations;
    Open();
    Host();
    CHECK(*cuda.initialisations == inits && cuda.depth() == 0 && *cuda.copies == 0);
  } else if (Is(command, "without")) {
    Open();
    Host();
    CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL);
  } else {
    known = 0;
    Start();
    Open();
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
      if (Is(command, all[i].name)) all[i].run(), known = 1;
  }
  CHECK(known);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
  int all_bad = 0;
  MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !all_bad) printf("ok %s\n", command);
  MPI_Finalize();
  return all_bad;
}
