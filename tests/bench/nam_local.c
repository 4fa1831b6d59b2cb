// What libmsanam costs on mapped memory, against what the bare machine does with the same memory. One process
// in a job, or on a NAM node's host.
//
//   nam_local ROUNDS            prints lines "ROW UNIT MSA OTHER", medians of ROUNDS interleaved rounds;
//   OTHER is 0 where
//                               there is nothing to compare with
//   nam_local restart PID       kills namd (PID) and prints "restart ms X": until a region is open again and
//   was read
#include <msa_nam.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { kLarge = 4 << 20, kSmall = 64 << 10, kDoubles = 512, kMaxRounds = 1000, kSegmentBytes = 8 << 20 };

static double NowMicros(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void Must(int error, const char* what) {
  if (error == MSA_NAM_OK) return;
  fprintf(stderr, "nam_local: %s: %s: %s\n", what, msa_nam_error_name(error), msa_nam_error_text());
  exit(1);
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double Median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, Compare);
  return values[count / 2];
}

struct Place {
  msa_nam_region_t region;
  char* memory;  // the segment as it is mapped
  char* local;
  uint64_t bytes;
};
typedef void (*Work)(struct Place* place);

static void Put(struct Place* p) { Must(msa_nam_put(p->region, 0, 0, p->local, p->bytes), "put"); }
static void Get(struct Place* p) { Must(msa_nam_get(p->region, 0, 0, p->local, p->bytes), "get"); }
static void CopyIn(struct Place* p) { memcpy(p->memory, p->local, p->bytes); }
static void CopyOut(struct Place* p) { memcpy(p->local, p->memory, p->bytes); }
static void FetchAdd(struct Place* p) {
  int64_t before;
  Must(msa_nam_fetch_add(p->region, 0, 0, 1, &before), "fetch_add");
}
static void BareFetchAdd(struct Place* p) { atomic_fetch_add((_Atomic int64_t*)(void*)p->memory, 1); }
static void Accumulate(struct Place* p) {
  Must(msa_nam_accumulate(p->region, 0, 0, MSA_NAM_SUM, MSA_NAM_DOUBLE, p->local, kDoubles), "accumulate");
}
static void BareAccumulate(struct Place* p) {
  const double* operand = (const double*)(void*)p->local;
  for (int i = 0; i < kDoubles; ++i) {
    _Atomic uint64_t* word = (_Atomic uint64_t*)(void*)p->memory + i;
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), next;
    do {
      double value;
      memcpy(&value, &old, sizeof value);
      value += operand[i];
      memcpy(&next, &value, sizeof next);
    } while (!atomic_compare_exchange_weak(word, &old, next));
  }
}
static void LockPutUnlock(struct Place* p) {
  Must(msa_nam_lock(p->region, 0, MSA_NAM_EXCLUSIVE), "lock");
  Must(msa_nam_put(p->region, 0, 0, p->local, 8), "put");
  Must(msa_nam_unlock(p->region, 0), "unlock");
}

static double Time(Work work, struct Place* place, int times) {
  const double begin = NowMicros();
  for (int i = 0; i < times; ++i) work(place);
  return (NowMicros() - begin) / times;
}

static void Row(const char* name, struct Place* place, uint64_t bytes, int times, int rounds, Work msa,
                Work other) {
  static double mine[kMaxRounds], theirs[kMaxRounds];
  place->bytes = bytes;
  Time(msa, place, times);
  if (other != NULL) Time(other, place, times);
  for (int r = 0; r < rounds; ++r) {
    if (r % 2 == 0) mine[r] = Time(msa, place, times);
    theirs[r] = other == NULL ? 0 : Time(other, place, times);
    if (r % 2 != 0) mine[r] = Time(msa, place, times);
  }
  printf("%s us %.4f %.4f\n", name, Median(mine, rounds), Median(theirs, rounds));
}

static msa_nam_region_t Create(const char* name, uint64_t bytes) {
  const struct msa_nam_segment segment = {bytes, 1, 0};
  const struct msa_nam_create_options options = {.name = name, .segments = &segment, .segment_count = 1};
  msa_nam_region_t region;
  Must(msa_nam_create(&options, &region), "create");
  return region;
}

static void TimeCreation(int rounds) {
  static double create[kMaxRounds], open[kMaxRounds];
  for (int r = 0; r < rounds; ++r) {
    const double begin = NowMicros();
    msa_nam_region_t region = Create(NULL, kSmall);
    create[r] = NowMicros() - begin;
    struct msa_nam_stat stat;
    Must(msa_nam_stat(region, &stat), "stat");
    msa_nam_region_t again;
    const double middle = NowMicros();
    Must(msa_nam_open(stat.name, MSA_NAM_READ | MSA_NAM_WRITE, &again), "open");
    open[r] = NowMicros() - middle;
    Must(msa_nam_close(again), "close");
    Must(msa_nam_close(region), "close");
    Must(msa_nam_delete(stat.port, 0), "delete");
  }
  printf("create us %.1f 0\nopen us %.1f 0\n", Median(create, rounds), Median(open, rounds));
}

static void Restart(pid_t namd) {
  msa_nam_region_t region = Create(NULL, kSmall);
  struct msa_nam_stat stat;
  Must(msa_nam_stat(region, &stat), "stat");
  if (kill(namd, SIGKILL) != 0) {
    perror("nam_local: kill namd");
    exit(1);
  }
  const double begin = NowMicros();
  msa_nam_region_t again;
  Must(msa_nam_open(stat.name, MSA_NAM_READ, &again), "open");
  char byte;
  Must(msa_nam_get(again, 0, 0, &byte, 1), "get");
  printf("restart ms %.1f\n", (NowMicros() - begin) / 1e3);
  Must(msa_nam_close(again), "close");
  Must(msa_nam_close(region), "close");  // with it the region ends
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "restart") == 0) {
    Restart((pid_t)atol(argv[2]));
    return 0;
  }
  const int rounds = argc == 2 ? atoi(argv[1]) : 0;
  if (rounds < 1 || rounds > kMaxRounds) {
    fprintf(stderr, "usage: nam_local ROUNDS (1 to %d) | nam_local restart PID\n", kMaxRounds);
    return 2;
  }
  struct Place place = {.region = Create(NULL, kSegmentBytes), .local = calloc(1, kLarge)};
  struct msa_nam_segment_stat segment;
  Must(msa_nam_segment_stat(place.region, 0, &segment), "segment_stat");
  place.memory = segment.address;
  const int mapped = place.memory != NULL;
  memset(place.local, 0, kLarge);
  Row("put-8", &place, 8, 100000, rounds, Put, mapped ? CopyIn : NULL);
  Row("put-64K", &place, kSmall, 500, rounds, Put, mapped ? CopyIn : NULL);
  Row("get-64K", &place, kSmall, 500, rounds, Get, mapped ? CopyOut : NULL);
  Row("put-4M", &place, kLarge, 10, rounds, Put, mapped ? CopyIn : NULL);
  Row("get-4M", &place, kLarge, 10, rounds, Get, mapped ? CopyOut : NULL);
  Row("fetch_add", &place, 8, 100000, rounds, FetchAdd, mapped ? BareFetchAdd : NULL);
  Row("lock-put-unlock", &place, 8, 20000, rounds, LockPutUnlock, NULL);
  Row("accumulate-512", &place, 0, 2000, rounds, Accumulate, mapped ? BareAccumulate : NULL);
  Must(msa_nam_lock(place.region, 0, MSA_NAM_EXCLUSIVE), "lock");
  Row("accumulate-512-exclusive", &place, 0, 2000, rounds, Accumulate, mapped ? BareAccumulate : NULL);
  Must(msa_nam_unlock(place.region, 0), "unlock");
  Must(msa_nam_close(place.region), "close");
  TimeCreation(rounds);
  return 0;
}
