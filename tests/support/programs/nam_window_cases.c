// Windows in network attached memory in uncommon cases, one claim a command; prints "ok COMMAND" from rank 0,
// or what is wrong. MPI_THREAD_MULTIPLE.
//   group             MPI_Win_get_group is the communicator's, and reaches all its processes
//   self              post-start-complete-wait with the process itself in the groups
//   threads ROUNDS    the first accesses of a lock_all epoch come from four threads at once
//   kind KEY VALUE... MPI_Win_allocate with each
//   relay             rank 0 wants an exclusive lock that the others hold in relay, shared
//   own               plain stores to the process's own memory in a lock_all epoch
//   handles N OPEN    N windows one after the other, and OPEN at once (as many as the MPI makes)
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, bad;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      printf("rank %d line %d: not so: %s\n", rank, __LINE__, #condition); \
      __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);                         \
    }                                                                      \
  } while (0)

static int AllocateKind(const char* key, const char* value, MPI_Win* win) {
  MPI_Info info;
  void* base;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  const int failed = MPI_Win_allocate(1024, 8, info, MPI_COMM_WORLD, &base, win);
  MPI_Info_free(&info);
  if (failed == MPI_SUCCESS) MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN);
  return failed;
}

static MPI_Win Allocate(void) {
  MPI_Win win;
  AllocateKind("deep_mem_kind", "deep_nam", &win);
  return win;
}

static void Group(void) {
  MPI_Win win = Allocate();
  MPI_Group all, world;
  int64_t value = rank + 1, seen = 0;
  int same = MPI_UNEQUAL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Win_get_group(win, &all);
  MPI_Group_compare(all, world, &same);
  CHECK(same == MPI_IDENT);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win);
  MPI_Win_fence(0, win);
  MPI_Get(&seen, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win);
  MPI_Win_fence(0, win);
  CHECK(seen == (rank + size - 1) % size + 1);
  MPI_Group_free(&all);
  MPI_Group_free(&world);
  MPI_Win_free(&win);
}

static void Self(void) {
  MPI_Win win = Allocate();
  MPI_Group all;
  MPI_Win_get_group(win, &all);
  for (int64_t round = 1; round <= 20; ++round) {
    int done = 0;
    MPI_Win_post(all, 0, win);
    MPI_Win_start(all, 0, win);
    for (int to = 0; to < size; ++to) MPI_Put(&round, 1, MPI_INT64_T, to, rank, 1, MPI_INT64_T, win);
    MPI_Win_complete(win);
    if (round % 2)
      MPI_Win_wait(win);
    else
      while (!done) MPI_Win_test(win, &done);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    for (int from = 0; from < size; ++from) {
      int64_t seen = 0;
      MPI_Get(&seen, 1, MPI_INT64_T, rank, from, 1, MPI_INT64_T, win);
      MPI_Win_flush(rank, win);
      CHECK(seen == round);
    }
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Group_free(&all);
  MPI_Win_free(&win);
}

// ------------------------------------------------------------------------------------------- threads

enum { kThreads = 4 };
static MPI_Win shared;
static pthread_barrier_t together;
static int rounds, refused;

static void* Access(void* of) {
  const int thread = (int)(intptr_t)of;
  for (int round = 0; round < rounds; ++round) {
    const double value = round;
    pthread_barrier_wait(&together);
    if (thread == 0) MPI_Win_lock_all(0, shared);
    pthread_barrier_wait(&together);
    for (int to = 0; to < size; ++to) {
      const int failed = MPI_Put(&value, 1, MPI_DOUBLE, to, thread, 1, MPI_DOUBLE, shared);
      if (failed != MPI_SUCCESS) __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
    }
    pthread_barrier_wait(&together);
    if (thread == 0) CHECK(MPI_Win_unlock_all(shared) == MPI_SUCCESS);
  }
  return NULL;
}

static void Threads(int provided) {
  pthread_t threads[kThreads];
  double values[kThreads] = {0};
  CHECK(provided == MPI_THREAD_MULTIPLE);
  shared = Allocate();
  pthread_barrier_init(&together, NULL, kThreads);
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, &Access, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  if (refused != 0) printf("rank %d: %d of %d puts refused\n", rank, refused, kThreads * rounds * size);
  CHECK(refused == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  // The locks are free again: else this would wait for ever.
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared);
  MPI_Get(values, kThreads, MPI_DOUBLE, 0, 0, kThreads, MPI_DOUBLE, shared);
  MPI_Win_unlock(0, shared);
  for (int i = 0; i < kThreads; ++i) CHECK(values[i] == rounds - 1);
  MPI_Win_free(&shared);
}

// --------------------------------------------------------------------------------------------- locks

static int64_t Told(MPI_Win told, int at, int64_t add) {
  int64_t before = 0;
  MPI_Fetch_and_op(&add, &before, MPI_INT64_T, 0, at, MPI_SUM, told);
  MPI_Win_flush(0, told);
  return before;
}

enum { kTurns, kWritten, kMostTurns = 1500 };

// Until the writer has written; the lock is held until the next one has it, but 5 ms at most.
static void ReadInRelay(MPI_Win win, MPI_Win told) {
  for (int64_t turn = 0; turn < kMostTurns && Told(told, kWritten, 0) == 0;) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    turn = Told(told, kTurns, 1);
    for (int i = 0; i < 10 && (i < 2 || Told(told, kTurns, 0) == turn + 1); ++i) usleep(500);
    MPI_Win_unlock(0, win);
  }
}

static void Relay(void) {
  MPI_Win win = Allocate(), told = Allocate();
  MPI_Win_lock_all(0, told);
  if (rank > 0) {
    ReadInRelay(win, told);
  } else {
    while (Told(told, kTurns, 0) < 30) usleep(500);
    const int64_t before = Told(told, kTurns, 0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    const int64_t turns = Told(told, kTurns, 0) - before;
    Told(told, kWritten, 1);
    MPI_Win_unlock(0, win);
    // One each has it, or is about to; some more of before the lock was asked for on a busy machine.
    if (turns >= 100) printf("%lld turns of readers before the writer's\n", (long long)turns);
    CHECK(turns < 100);
  }
  MPI_Win_unlock_all(told);
  MPI_Win_free(&told);
  MPI_Win_free(&win);
}

// Rank 0 changes its own memory without a call of MPI; the last rank, who locks it exclusively, sees either
// none of it or all.
static void Own(void) {
  MPI_Win win = Allocate();
  int64_t *base = NULL, seen = -1;
  int flag = 0;
  MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
  if (rank == 0) {
    const int64_t one = 1, two = 2;
    MPI_Win_lock_all(0, win);
    if (base != NULL)
      *(volatile int64_t*)base = 1;
    else
      MPI_Put(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_Win_flush(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(100 * 1000);  // for as long the other one waits
    if (base != NULL)
      *(volatile int64_t*)base = 2;
    else
      MPI_Put(&two, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock_all(win);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&seen, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    CHECK(seen == 2);
  }
  MPI_Win_free(&win);
}

// ------------------------------------------------------------------------------------------- handles

static MPI_Win Attach(MPI_Comm region, int64_t number) {
  MPI_Win win = MPI_WIN_NULL;
  int64_t seen = -1;
  if (MPI_Win_create_dynamic(MPI_INFO_NULL, region, &win) != MPI_SUCCESS) return MPI_WIN_NULL;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Put(&number, 8, MPI_BYTE, 0, 8 * rank, 8, MPI_BYTE, win);
  MPI_Win_flush(0, win);
  MPI_Get(&seen, 8, MPI_BYTE, 0, 8 * rank, 8, MPI_BYTE, win);
  MPI_Win_unlock(0, win);
  CHECK(seen == number);
  return win;
}

static void Handles(int in_a_row, int most) {
  MPI_Win win = Allocate(), *open = calloc((size_t)most + 1, sizeof(MPI_Win));
  MPI_Info info;
  MPI_Comm region = MPI_COMM_NULL;
  char port[MPI_MAX_PORT_NAME] = "";
  int flag = 0, count = 0;
  MPI_Win_get_info(win, &info);
  MPI_Info_get(info, "deep_win_port_name", MPI_MAX_PORT_NAME - 1, port, &flag);
  MPI_Info_free(&info);
  CHECK(flag);
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &region);
  for (int i = 0; i < in_a_row; ++i) {
    MPI_Win one = Attach(region, i);
    CHECK(one != MPI_WIN_NULL);
    MPI_Win_free(&one);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(region, MPI_ERRORS_RETURN);
  while (count < most && (open[count] = Attach(region, count)) != MPI_WIN_NULL) ++count;
  if (rank == 0) printf("open at once: %d\n", count);
  while (count > 0) MPI_Win_free(&open[--count]);
  MPI_Comm_disconnect(&region);
  MPI_Win_free(&win);
  free(open);
}

// ---------------------------------------------------------------------------------------------- kinds

static void Kind(const char* key, const char* value) {
  MPI_Win win = MPI_WIN_NULL;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, class = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int failed = AllocateKind(key, value, &win);
  MPI_Error_string(failed, text, &length);
  MPI_Error_class(failed, &class);
  if (rank == 0 && failed == MPI_SUCCESS) printf("allocated %s\n", value);
  if (rank == 0 && class == MPI_ERR_INFO_VALUE) printf("%s\n", text);
  CHECK(failed == MPI_SUCCESS || class == MPI_ERR_INFO_VALUE);
  CHECK((win == MPI_WIN_NULL) == (failed != MPI_SUCCESS));
  if (win != MPI_WIN_NULL) MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  const char* command = argc > 1 ? argv[1] : "";
  int any = 0, provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rounds = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(command, "group") == 0)
    Group();
  else if (strcmp(command, "self") == 0)
    Self();
  else if (strcmp(command, "threads") == 0)
    Threads(provided);
  else if (strcmp(command, "relay") == 0)
    Relay();
  else if (strcmp(command, "own") == 0)
    Own();
  else if (strcmp(command, "handles") == 0 && argc > 3)
    Handles(rounds, atoi(argv[3]));
  else if (strcmp(command, "kind") == 0 && argc > 3)
    for (int i = 3; i < argc; ++i) Kind(argv[2], argv[i]);
  else
    printf("no command '%s'\n", command), bad = 1;
  fflush(stdout);
  MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) printf("ok %s\n", command);
  MPI_Finalize();
  return any;
}
