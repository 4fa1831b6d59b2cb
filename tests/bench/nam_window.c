// One-sided operations on a window in network attached memory and on the MPI's own window, in one program,
// interleaved: rank 0 works on the part of rank 1. Two ranks.
//
//   nam_window ROUNDS    prints lines "ROW us NAM OWN", medians over ROUNDS rounds
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  if (lock != 0) MPI_Win_lock(lock, 1, 0, win);
  const double time = Time(work, win, times);
  if (lock != 0) MPI_Win_unlock(1, win);
  return time;
}

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

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc == 2 ? atoi(argv[1]) : 0;
  if (rounds < 1 || rounds > kMaxRounds || size != 2) {
    fprintf(stderr, "usage: nam_window ROUNDS (1 to %d), with 2 ranks\n", kMaxRounds);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  local = calloc(1, kBytes);
  memset(local, 0, kBytes);
  MPI_Type_vector(kBlocks, 8, 16, MPI_BYTE, &strided);
  MPI_Type_commit(&strided);
  MPI_Win nam = Allocate("nam"), own = Allocate(NULL);
  if (rank == 0) {
    const int shared = MPI_LOCK_SHARED;
    Row("put-8", nam, own, 20000, rounds, shared, Put8);
    Row("put-4K", nam, own, 10000, rounds, shared, Put4K);
    Row("put-64K", nam, own, 500, rounds, shared, Put64K);
    Row("get-64K", nam, own, 500, rounds, shared, Get64K);
    Row("put-4M", nam, own, 10, rounds, shared, Put4M);
    Row("fetch_and_op", nam, own, 20000, rounds, shared, FetchAndOp);
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
  MPI_Type_free(&strided);
  free(local);
  MPI_Finalize();
  return 0;
}
