// What operations on a window in network attached memory cost against the MPI's own, in one process or two:
// rank 0 works on the last rank's memory. Prints "NAME NAM_US OWN_US", medians of 21 batches.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatches = 21, kDoubles = 512 };

static double values[2 * kDoubles];
static char large[4 << 20];
static MPI_Datatype every_other;
static int target;

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void Put(MPI_Win win, int bytes) {
  MPI_Put(large, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win);
  MPI_Win_flush(target, win);
}
static void Put8(MPI_Win win) { Put(win, 8); }
static void Put64Ki(MPI_Win win) { Put(win, 64 << 10); }
static void Put4Mi(MPI_Win win) { Put(win, 4 << 20); }
static void FetchAndOp(MPI_Win win) {
  long one = 1, seen;
  MPI_Fetch_and_op(&one, &seen, MPI_LONG, target, 0, MPI_SUM, win);
  MPI_Win_flush(target, win);
}
static void Vector(MPI_Win win) {
  MPI_Put(values, 1, every_other, target, 0, 1, every_other, win);
  MPI_Win_flush(target, win);
}
static void Accumulate(MPI_Win win) {
  MPI_Accumulate(values, kDoubles, MPI_DOUBLE, target, 0, kDoubles, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_flush(target, win);
}
static void LockPut(MPI_Win win) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Put(large, 8, MPI_BYTE, target, 0, 8, MPI_BYTE, win);
  MPI_Win_unlock(target, win);
}

static int Ascending(const void* a, const void* b) {
  const double d = *(const double*)a - *(const double*)b;
  return d < 0 ? -1 : d > 0;
}

enum epoch { kShared, kExclusive, kNone };

static double Measure(MPI_Win win, void (*what)(MPI_Win), int times, enum epoch epoch) {
  double batches[kBatches];
  if (epoch != kNone) MPI_Win_lock(epoch == kShared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = Now();
    for (int i = 0; i < times; ++i) what(win);
    batches[batch] = (Now() - begin) / times;
  }
  if (epoch != kNone) MPI_Win_unlock(target, win);
  qsort(batches, kBatches, sizeof *batches, &Ascending);
  return batches[kBatches / 2];
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*what)(MPI_Win);
    int times;
    enum epoch epoch;
  } kCases[] = {{"put_8", &Put8, 20000, kShared},
                {"put_64Ki", &Put64Ki, 300, kShared},
                {"put_4Mi", &Put4Mi, 10, kShared},
                {"fetch_and_op", &FetchAndOp, 20000, kShared},
                {"vector_put_512x8", &Vector, 2000, kShared},
                {"lock_put_unlock", &LockPut, 10000, kNone},
                {"accumulate_512_shared", &Accumulate, 2000, kShared},
                {"accumulate_512_exclusive", &Accumulate, 2000, kExclusive}};
  int rank, size;
  void* base;
  MPI_Win windows[2];
  MPI_Info info;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  target = size - 1;
  MPI_Info_create(&info);
  MPI_Info_set(info, "deep_mem_kind", "deep_nam");
  MPI_Win_allocate(sizeof large, 1, info, MPI_COMM_WORLD, &base, &windows[0]);
  MPI_Win_allocate(sizeof large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &windows[1]);
  MPI_Type_vector(kDoubles, 1, 2, MPI_DOUBLE, &every_other);
  MPI_Type_commit(&every_other);
  MPI_Barrier(MPI_COMM_WORLD);
  for (size_t i = 0; rank == 0 && i < sizeof kCases / sizeof kCases[0]; ++i) {
    double us[2];
    for (int w = 0; w < 2; ++w) us[w] = Measure(windows[w], kCases[i].what, kCases[i].times, kCases[i].epoch);
    printf("%s %.3f %.3f\n", kCases[i].name, us[0], us[1]);
  }
  MPI_Request barrier;  // the other rank sleeps, so that two cores are enough
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  for (int done = 0; !done;) {
    const struct timespec pause = {0, 1000000};
    MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
    if (!done) nanosleep(&pause, NULL);
  }
  MPI_Win_free(&windows[0]);
  MPI_Win_free(&windows[1]);
  MPI_Type_free(&every_other);
  MPI_Info_free(&info);
  MPI_Finalize();
  return 0;
}
