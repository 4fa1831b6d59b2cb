// One-sided operations on a window in network attached memory and on the MPI's own window, in one program,
// interleaved: rank 0 works on the part of rank 1. Two ranks.
//
//   nam_window ROUNDS [allocate|create]    prints a line "own WINDOW", what the MPI's own window is, and
//   lines
//                                          "ROW us NAM OWN", medians over ROUNDS rounds
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kBytes = 8 << 20, kMaxRounds = 1000, kBlocks = 512, kDoubles = 512 };

static char* local;
static MPI_Datatype strided;

typedef void (*Work)(MPI_Win win);

static void PutBytes(MPI_Win win, int bytes) {
  MPI_Put(local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
  MPI_Win_flush(1, win);
}
static void Put8(MPI_Win win) { PutBytes(win, 8); }
static void Put4K(MPI_Win win) { PutBytes(win, 4096); }
static void Put64K(MPI_Win win) { PutBytes(win, 64 << 10); }
static void Put4M(MPI_Win win) { PutBytes(win, 4 << 20); }
static void Get64K(MPI_Win win) {
  MPI_Get(local, 64 << 10, MPI_BYTE, 1, 0, 64 << 10, MPI_BYTE, win);
  MPI_Win_flush(1, win);
}
static void FetchAndOp(MPI_Win win) {
  long one = 1, before;
  MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, win);
  MPI_Win_flush(1, win);
}
static void CompareAndSwap(MPI_Win win) {
  long one = 1, none = 0, before;
  MPI_Compare_and_swap(&one, &none, &before, MPI_LONG, 1, 8, win);
  MPI_Win_flush(1, win);
}
static void VectorPut(MPI_Win win) {
  MPI_Put(local, 1, strided, 1, 0, 1, strided, win);
  MPI_Win_flush(1, win);
}
static void LockPutUnlock(MPI_Win win) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
  MPI_Put(local, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
  MPI_Win_unlock(1, win);
}
static void Accumulate(MPI_Win win) {
  MPI_Accumulate(local, kDoubles, MPI_DOUBLE, 1, 0, kDoubles, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_flush(1, win);
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double Time(Work work, MPI_Win win, int times) {
  const double begin = MPI_Wtime();
  for (int i = 0; i < times; ++i) work(win);
  return (MPI_Wtime() - begin) * 1e6 / times;
}

// `lock`: the epoch around all calls, 0: the work has its own.
static double Round(Work work, MPI_Win win, int times, int lock) {
  if (win == MPI_WIN_NULL) return 0;
  if (lock != 0) MPI_Win_lock(lock, 1, 0, win);
  const double time = Time(work, win, times);
  if (lock != 0) MPI_Win_unlock(1, win);
  return time;
}

// `own`: MPI_WIN_NULL: none.
static void Row(const char* name, MPI_Win nam, MPI_Win own, int times, int rounds, int lock, Work work) {
  static double mine[kMaxRounds], theirs[kMaxRounds];
  Round(work, nam, times, lock);
  Round(work, own, times, lock);
  for (int r = 0; r < rounds; ++r) {
    if (r % 2 == 0) mine[r] = Round(work, nam, times, lock);
    theirs[r] = Round(work, own, times, lock);
    if (r % 2 != 0) mine[r] = Round(work, nam, times, lock);
  }
  qsort(mine, (size_t)rounds, sizeof *mine, Compare);
  qsort(theirs, (size_t)rounds, sizeof *theirs, Compare);
  printf("%s us %.4f %.4f\n", name, mine[rounds / 2], theirs[rounds / 2]);
  fflush(stdout);
}

static MPI_Win Allocate(const char* kind) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (kind != NULL) MPI_Info_set(info, "msa_mem_kind", kind);
  void* base;
  MPI_Win win;
  if (MPI_Win_allocate(kBytes, 1, info, MPI_COMM_WORLD, &base, &win) != MPI_SUCCESS) exit(1);
  MPI_Info_free(&info);
  return win;
}

static MPI_Win Create(void) {
  void* base;
  MPI_Win win;
  if (MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &base) != MPI_SUCCESS) exit(1);
  memset(base, 0, kBytes);
  if (MPI_Win_create(base, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win) != MPI_SUCCESS) exit(1);
  return win;
}

#ifdef OPEN_MPI
// Words that may be anything, so that the kernel looks at them: how many could be read.
static size_t Peek(const void* at, void** words, size_t count) {
  const struct iovec into = {words, count * sizeof *words}, from = {(void*)at, count * sizeof *words};
  const ssize_t got = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
  return got > 0 ? (size_t)got / sizeof *words : 0;
}

// Open MPI tells nobody which component carries a window: the one whose functions the window's module holds.
static const char* Component(MPI_Win win) {
  enum { kWords = 64 };
  static char name[64];
  void *window[kWords], *module[kWords];
  const size_t words = Peek(win, window, kWords);
  for (size_t i = 0; i < words; ++i) {
    const size_t functions = Peek(window[i], module, kWords);
    for (size_t j = 0; j < functions; ++j) {
      Dl_info info;
      if (module[j] == NULL || dladdr(module[j], &info) == 0 || info.dli_fname == NULL) continue;
      const char* found = strstr(info.dli_fname, "mca_osc_");
      if (found != NULL && sscanf(found, "mca_osc_%63[a-z0-9]", name) == 1) return name;
    }
  }
  return "unknown";
}
#else
static const char* Component(MPI_Win win) {
  (void)win;
  return "";
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc >= 2 ? atoi(argv[1]) : 0;
  const char* how = argc == 3 ? argv[2] : "allocate";
  const int creates = strcmp(how, "create") == 0;
  if (rounds < 1 || rounds > kMaxRounds || size != 2 || argc > 3 ||
      (!creates && strcmp(how, "allocate") != 0)) {
    fprintf(stderr, "usage: nam_window ROUNDS (1 to %d) [allocate|create], with 2 ranks\n", kMaxRounds);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  local = calloc(1, kBytes);
  memset(local, 0, kBytes);
  MPI_Type_vector(kBlocks, 8, 16, MPI_BYTE, &strided);
  MPI_Type_commit(&strided);
  MPI_Win nam = Allocate("nam"), own = creates ? Create() : Allocate(NULL);
  if (rank == 0) {
    const char* component = Component(own);
    printf("own MPI_Win_%s%s%s\n", how, component[0] != '\0' ? ", osc " : "", component);
    const int shared = MPI_LOCK_SHARED;
    Row("put-8", nam, own, 20000, rounds, shared, Put8);
    Row("put-4K", nam, own, 10000, rounds, shared, Put4K);
    Row("put-64K", nam, own, 500, rounds, shared, Put64K);
    Row("get-64K", nam, own, 500, rounds, shared, Get64K);
    Row("put-4M", nam, own, 10, rounds, shared, Put4M);
    Row("fetch_and_op", nam, own, 20000, rounds, shared, FetchAndOp);
    // Open MPI 4.1.4's rdma component ends in a segmentation fault of the target, also without msa.
    const MPI_Win swapped = strcmp(component, "rdma") == 0 ? MPI_WIN_NULL : own;
    Row("compare_and_swap", nam, swapped, 20000, rounds, shared, CompareAndSwap);
    Row("vector-put-512x8", nam, own, 2000, rounds, shared, VectorPut);
    Row("accumulate-512", nam, own, 2000, rounds, shared, Accumulate);
    Row("accumulate-512-exclusive", nam, own, 2000, rounds, MPI_LOCK_EXCLUSIVE, Accumulate);
    Row("lock-put-unlock", nam, own, 5000, rounds, 0, LockPutUnlock);
  }
  // The other rank drives its MPI meanwhile, as a program that computes with MPI would.
  MPI_Request done;
  int flag = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &done);
  while (!flag) MPI_Test(&done, &flag, MPI_STATUS_IGNORE);
  MPI_Win_free(&nam);
  MPI_Win_free(&own);
  // Memory of MPI_Alloc_mem ends with the process.
  MPI_Type_free(&strided);
  free(local);
  MPI_Finalize();
  return 0;
}
