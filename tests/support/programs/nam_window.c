// Windows in network attached memory, one claim a command; prints "ok COMMAND ..." from rank 0, or what is
// wrong.
//   create NAME [placement]   a persistent window of (rank + 1) KiB a rank; prints "port PORT"
//   attach PORT SEGMENTS      by any number of processes: sizes, units, contents
//   delete PORT               by MPI_Win_set_info and MPI_Win_free
//   refused PORT              MPI_Comm_connect is MPI_ERR_PORT at all ranks
//   overlap BYTES FILE        two ranks; FILE is made when the data was seen
//   errors, too-big, taken NAME, bad-name NAME, bad-unit, locks, active, count N, mixed N, requests,
//   ordinary, many
#include <msa_mpi.h>
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
      bad = 1;                                                             \
    }                                                                      \
  } while (0)

// The class, and at rank 0 a line "error NAME: text".
static void Expect(int code, int expected, const char* what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, class = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &class);
  if (class != expected)
    printf("rank %d: %s gave %d (%s), not %d\n", rank, what, code, text, expected), bad = 1;
  if (rank == 0) printf("error %s: %s\n", what, text);
}

static MPI_Info Info(const char* key, const char* value, const char* key2, const char* value2) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (key != NULL) MPI_Info_set(info, key, value);
  if (key2 != NULL) MPI_Info_set(info, key2, value2);
  return info;
}

static MPI_Win Allocate(MPI_Aint bytes, int unit) {
  MPI_Info info = Info("deep_mem_kind", "deep_nam", NULL, NULL);
  MPI_Win win = MPI_WIN_NULL;
  void* base;
  MPI_Win_allocate(bytes, unit, info, MPI_COMM_WORLD, &base, &win);
  MPI_Info_free(&info);
  if (win != MPI_WIN_NULL) MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  return win;
}

static void InfoValue(MPI_Win win, const char* key, char* value, int bytes) {
  MPI_Info info;
  int found = 0;
  MPI_Win_get_info(win, &info);
  MPI_Info_get(info, key, bytes - 1, value, &found);
  if (!found) snprintf(value, (size_t)bytes, "(none)");
  MPI_Info_free(&info);
}

static double Value(int segment, int i) { return segment * 1000 + i; }

static void Create(const char* name, const char* placement) {
  MPI_Info info = Info("deep_mem_kind", "deep_nam_persistent", "msa_win_name", name);
  const int count = 128 * (rank + 1);
  double* values = malloc(sizeof(double) * (size_t)count);
  char port[MPI_MAX_INFO_VAL + 1], kind[64];
  void *base, *attribute;
  MPI_Win win;
  int flag = 0;
  if (placement != NULL) MPI_Info_set(info, "msa_nam_placement", placement);
  MPI_Win_allocate(count * 8, 8, info, MPI_COMM_WORLD, &base, &win);
  MPI_Win_get_attr(win, MPI_WIN_SIZE, &attribute, &flag);
  CHECK(flag && *(MPI_Aint*)attribute == count * 8);
  MPI_Win_get_attr(win, MPI_WIN_BASE, &attribute, &flag);
  CHECK(flag && attribute == base);
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &attribute, &flag);
  CHECK(flag && *(int*)attribute == 8);
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &attribute, &flag);
  CHECK(flag && *(int*)attribute == MPI_WIN_FLAVOR_ALLOCATE);
  for (int i = 0; i < count; ++i) values[i] = Value(rank, i);
  MPI_Win_fence(0, win);
  MPI_Put(values, count, MPI_DOUBLE, rank, 0, count, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < count && base != NULL; ++i) CHECK(((double*)base)[i] == Value(rank, i));
  InfoValue(win, "deep_win_port_name", port, sizeof port);
  InfoValue(win, "deep_mem_kind", kind, sizeof kind);
  CHECK(strcmp(kind, "deep_nam_persistent") == 0);
  if (rank == 0) printf("port %s\nbase %s\n", port, base != NULL ? "mapped" : "null");
  MPI_Win_free(&win);
  CHECK(win == MPI_WIN_NULL);
  MPI_Info_free(&info);
  free(values);
}

static MPI_Comm Connect(const char* port) {
  MPI_Info info = Info("deep_win_connect", "true", NULL, NULL);
  MPI_Comm inter = MPI_COMM_NULL;
  // Port and info count at the root alone.
  const int root = size - 1;
  MPI_Comm_connect(rank == root ? port : "", rank == root ? info : MPI_INFO_NULL, root, MPI_COMM_WORLD,
                   &inter);
  MPI_Info_free(&info);
  return inter;
}

static void CheckComm(MPI_Comm inter, int segments) {
  int remote = 0, is_inter = 0, local = 0;
  MPI_Comm copy;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_test_inter(inter, &is_inter);
  MPI_Comm_size(inter, &local);
  CHECK(remote == segments);
  CHECK(is_inter == 1);
  CHECK(local == size);
  MPI_Comm_dup(inter, &copy);
  remote = 0;
  MPI_Comm_remote_size(copy, &remote);
  CHECK(remote == segments);
  MPI_Comm_disconnect(&copy);
}

static void Attach(const char* port, int segments) {
  MPI_Comm inter = Connect(port);
  MPI_Aint* sizes = NULL;
  int *units = NULL, flag = 0;
  MPI_Win win;
  CheckComm(inter, segments);
  MPI_Win_create_dynamic(MPI_INFO_NULL, inter, &win);
  MPI_Comm_disconnect(&inter);  // the window does not need it
  MPI_Win_get_attr(win, MPIX_WIN_SIZES, &sizes, &flag);
  CHECK(flag);
  MPI_Win_get_attr(win, MPIX_WIN_DISP_UNITS, &units, &flag);
  CHECK(flag);
  MPI_Win_lock_all(0, win);
  for (int s = 0; s < segments && !bad; ++s) {
    CHECK(sizes[s] == 1024 * (s + 1));
    CHECK(units[s] == 8);
    const int count = (int)(sizes[s] / 8);
    double* values = calloc((size_t)count, sizeof *values);
    MPI_Get(values, count, MPI_DOUBLE, s, 0, count, MPI_DOUBLE, win);
    MPI_Win_flush(s, win);
    for (int i = 0; i < count; ++i) CHECK(values[i] == Value(s, i));
    free(values);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

static void Delete(const char* port) {
  MPI_Comm inter = Connect(port);
  MPI_Info info = Info("deep_mem_kind", "deep_nam", NULL, NULL);
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, inter, &win);
  MPI_Win_set_info(win, info);
  MPI_Win_free(&win);
  MPI_Comm_free(&inter);
  MPI_Info_free(&info);
}

static void Refused(const char* port) {
  MPI_Comm inter;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Expect(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_ERR_PORT, "connect");
  CHECK(inter == MPI_COMM_NULL);
}

// ------------------------------------------------------------------------------------------- errors

static void UserOp(void* in, void* out, int* n, MPI_Datatype* type) {
  (void)in, (void)out, (void)n, (void)type;
}

static void Errors(void) {
  MPI_Win win = Allocate(4096, 8);
  MPI_Op op;
  int64_t value = 7, result = 0;
  char* many = calloc(1, 8192);
  Expect(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_RMA_SYNC, "no epoch");
  MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win);
  const int t = size - 1;
  Expect(MPI_Put(&value, 1, MPI_INT64_T, t, 512, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE, "after the end");
  Expect(MPI_Put(&value, 1, MPI_INT64_T, t, -1, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE, "before the start");
  Expect(MPI_Get(many, 8192, MPI_BYTE, t, 0, 8192, MPI_BYTE, win), MPI_ERR_RMA_RANGE, "too long");
  Expect(MPI_Get(many, 1, MPI_BYTE, t, PTRDIFF_MAX / 2, 1, MPI_BYTE, win), MPI_ERR_RMA_RANGE, "overflow");
  Expect(MPI_Get(many, 2, MPI_BYTE, t, 0, 1, MPI_BYTE, win), MPI_ERR_COUNT, "unequal");
  Expect(MPI_Put(&value, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win), MPI_ERR_RANK, "no such target");
  Expect(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, win), MPI_ERR_RMA_SYNC, "locked twice");
  MPI_Op_create(&UserOp, 1, &op);
  Expect(MPI_Accumulate(&value, 1, MPI_INT64_T, t, 0, 1, MPI_INT64_T, op, win), MPI_ERR_OP, "user's op");
  MPI_Op_free(&op);
  Expect(MPI_Accumulate(&value, 1, MPI_DOUBLE, t, 0, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP,
         "bits of doubles");
  Expect(MPI_Compare_and_swap(&value, &value, &result, MPI_DOUBLE, t, 0, win), MPI_ERR_TYPE,
         "swap of doubles");
  MPI_Win_unlock(t, win);
  Expect(MPI_Win_unlock(t, win), MPI_ERR_RMA_SYNC, "unlocked twice");
  Expect(MPI_Win_complete(win), MPI_ERR_RMA_SYNC, "complete");
  Expect(MPI_Win_attach(win, many, 64), MPI_ERR_RMA_ATTACH, "attach");
  CHECK(MPI_Put(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS);
  free(many);
  MPI_Win_free(&win);
}

static void Refusal(const char* what, const char* key, const char* value, MPI_Aint bytes, int unit,
                    int expected) {
  MPI_Info info = Info("deep_mem_kind", "deep_nam_persistent", key, value);
  MPI_Win win;
  void* base;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Expect(MPI_Win_allocate(bytes, unit, info, MPI_COMM_WORLD, &base, &win), expected, what);
  CHECK(win == MPI_WIN_NULL);
  MPI_Info_free(&info);
}

// --------------------------------------------------------------------------------------------- epochs

// Each rank adds under an exclusive lock what it read: nothing is lost.
static void Locks(void) {
  enum { kRounds = 200 };
  MPI_Win win = Allocate(rank == 0 ? 64 : 0, 1);
  int64_t value = 0;
  for (int i = 0; i < kRounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    ++value;
    MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
  }
  // A holder that waits for a message of a rank that waits for the lock: waiting must drive the messages.
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    char* large = calloc(1, 4 << 20);
    for (int i = 1; i < size; ++i)
      MPI_Recv(large, 4 << 20, MPI_BYTE, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(large);
    MPI_Win_unlock(0, win);
  } else {
    MPI_Request request;
    char* large = calloc(1, 4 << 20);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(large, 4 << 20, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(large);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
  MPI_Win_unlock(0, win);
  CHECK(value == (int64_t)size * kRounds);
  MPI_Win_free(&win);
}

// A ring by post-start-complete-wait, then by fences.
static void Active(void) {
  MPI_Win win = Allocate(64, 8);
  MPI_Group all, next, previous;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  int64_t value = 0, seen = -1;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &to, &next);
  MPI_Group_incl(all, 1, &from, &previous);
  for (int round = 0; round < 50; ++round) {
    int done = 0;
    value = rank * 100 + round;
    MPI_Win_post(previous, 0, win);
    MPI_Win_start(next, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win);
    MPI_Win_complete(win);
    if (round % 2)
      MPI_Win_wait(win);
    else
      while (!done) MPI_Win_test(win, &done);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Get(&seen, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(rank, win);
    CHECK(seen == from * 100 + round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int round = 0; round < 50; ++round) {
    value = rank * 1000 + round;
    MPI_Win_fence(round == 0 ? MPI_MODE_NOPRECEDE : 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    MPI_Get(&seen, 1, MPI_INT64_T, rank, 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(round == 49 ? MPI_MODE_NOSUCCEED : 0, win);
    CHECK(seen == from * 1000 + round);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&next);
  MPI_Group_free(&previous);
  MPI_Win_free(&win);
}

// Contended Fetch_and_op: each number is given once.
static void Count(int times) {
  MPI_Win win = Allocate(rank == 0 ? 64 : 0, 8);
  const int64_t one = 1;
  int64_t seen = 0, last = -1, total = 0;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < times; ++i) {
    MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    CHECK(seen > last);
    last = seen;
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Fetch_and_op(NULL, &total, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
  MPI_Win_unlock(0, win);
  CHECK(total == (int64_t)times * size);
  MPI_Win_free(&win);
}

// Rank 0 updates plainly under exclusive locks, the others by atomic instructions under shared ones.
static void Mixed(int times) {
  MPI_Win win = Allocate(rank == 0 ? 64 : 0, 8);
  const int64_t ones[] = {1, 1};
  int64_t seen = 0, before = 0, totals[2] = {0};
  for (int i = 0; i < times; ++i) {
    MPI_Win_lock(rank == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    if (rank == 0 && i % 2 == 0) {
      MPI_Accumulate(ones, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, MPI_SUM, win);
    } else if (rank == 0) {
      MPI_Get(totals, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win);
      MPI_Win_flush(0, win);
      ++totals[0], ++totals[1];
      MPI_Put(totals, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win);
    } else {
      MPI_Fetch_and_op(ones, &seen, MPI_INT64_T, 0, 0, MPI_SUM, win);
      MPI_Fetch_and_op(NULL, &before, MPI_INT64_T, 0, 1, MPI_NO_OP, win);
      for (int done = 0; !done;) {
        const int64_t more = before + 1;
        MPI_Compare_and_swap(&more, &before, &seen, MPI_INT64_T, 0, 1, win);
        done = seen == before;
        before = seen;
      }
    }
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(totals, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win);
  MPI_Win_unlock(0, win);
  CHECK(totals[0] == (int64_t)times * size && totals[1] == totals[0]);
  MPI_Win_free(&win);
}

// ------------------------------------------------------------------------------------------- requests

static void Requests(void) {
  enum { kRequests = 32, kInts = 1000 };
  MPI_Win win = Allocate(kRequests * kInts * 4, 4);
  MPI_Request requests[kRequests];
  int* values = malloc(sizeof(int) * kRequests * kInts);
  int* back = calloc(kRequests * kInts, sizeof(int));
  const int to = (rank + 1) % size;
  for (int i = 0; i < kRequests * kInts; ++i) values[i] = rank * 1000000 + i;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < kRequests; ++i)
    MPI_Rput(values + i * kInts, kInts, MPI_INT, to, i * kInts, kInts, MPI_INT, win, &requests[i]);
  for (int left = kRequests; left > 0; --left) {  // one by one, as they come
    int index = -1;
    MPI_Waitany(kRequests, requests, &index, MPI_STATUS_IGNORE);
    CHECK(index >= 0 && index < kRequests);
  }
  MPI_Win_flush(to, win);
  for (int i = 0; i < kRequests; ++i)
    MPI_Rget(back + i * kInts, kInts, MPI_INT, to, i * kInts, kInts, MPI_INT, win, &requests[i]);
  for (int done = 0; !done;) MPI_Testall(kRequests, requests, &done, MPI_STATUSES_IGNORE);
  CHECK(memcmp(values, back, sizeof(int) * kRequests * kInts) == 0);
  memset(back, 0, sizeof(int) * kInts);
  MPI_Rget(back, kInts, MPI_INT, to, 0, kInts, MPI_INT, win, &requests[0]);
  MPI_Rput(values, kInts, MPI_INT, MPI_PROC_NULL, 0, kInts, MPI_INT, win, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(memcmp(values, back, sizeof(int) * kInts) == 0);
  MPI_Rput(values, kInts, MPI_INT, to, 0, kInts, MPI_INT, win, &requests[0]);
  MPI_Request_free(&requests[0]);
  MPI_Win_unlock_all(win);  // completes it all the same
  MPI_Win_free(&win);
  free(values);
  free(back);
}

// Rank 0 puts into rank 1's segment and computes. First without a call of MPI until rank 1 has seen the data
// arrive, which it says by making `sign`; then with calls of MPI_Test in between.
static void Compute(void) {
  volatile double x = 1;
  for (int i = 0; i < 1000; ++i) x = x * 1.0000001;
}

static void PutAndCompute(char* data, MPI_Aint bytes, MPI_Win win, const char* sign) {
  MPI_Request request;
  int done = 0;
  memset(data, 1, (size_t)bytes);
  MPI_Rput(data, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win, &request);
  while (access(sign, F_OK) != 0) Compute();
  while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  // A machine that gives this process no time may have sent all before the first test: once is enough.
  long rounds = 0;
  for (int attempt = 0; attempt < 50 && rounds < 2; ++attempt) {
    memset(data, 2, (size_t)bytes);
    MPI_Rput(data, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win, &request);
    for (rounds = 0, done = 0; !done; ++rounds) {
      Compute();
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
  }
  printf("rounds of computing: %ld\n", rounds);
}

static void AwaitData(MPI_Aint bytes, MPI_Win win, const char* sign) {
  char first = 0, last = 0;
  while (first != 1 || last != 1) {
    MPI_Get(&first, 1, MPI_BYTE, 1, 0, 1, MPI_BYTE, win);
    MPI_Get(&last, 1, MPI_BYTE, 1, bytes - 1, 1, MPI_BYTE, win);
    MPI_Win_flush(1, win);
  }
  FILE* file = fopen(sign, "w");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 2);  // rank 0 would wait for ever
  fclose(file);
}

static void Overlap(MPI_Aint bytes, const char* sign) {
  MPI_Win win = Allocate(rank == 1 ? bytes : 0, 1);
  char* data = calloc(1, (size_t)bytes);
  MPI_Win_lock_all(0, win);
  if (rank == 0) PutAndCompute(data, bytes, win, sign);
  if (rank == 1) AwaitData(bytes, win, sign);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Get(data, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
    MPI_Aint right = 0;
    while (right < bytes && data[right] == 2) ++right;
    CHECK(right == bytes);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  free(data);
}

// ----------------------------------------------------------------------------------------------- others

// Windows of the MPI's own beside NAM windows, and attributes and infos of theirs.
static void Ordinary(void) {
  MPI_Win nam = Allocate(64, 8), win;
  MPI_Info info = Info("deep_mem_kind", "deep_nam", NULL, NULL);
  int64_t *base, value = rank, one = 1;
  void* attribute;
  int flag = 1;
  char port[256];
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  *base = 0;
  MPI_Win_set_info(win, info);  // does not make it one
  MPI_Win_fence(0, win);
  MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Win_fence(0, win);
  if (rank == 0) CHECK(*base == size);
  MPI_Win_get_attr(win, MPIX_WIN_SIZES, &attribute, &flag);
  CHECK(!flag);
  InfoValue(win, "deep_win_port_name", port, sizeof port);
  CHECK(strcmp(port, "(none)") == 0);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, nam);
  MPI_Put(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, nam);
  MPI_Win_unlock(rank, nam);
  MPI_Win_free(&win);
  MPI_Win_free(&nam);
  MPI_Info_free(&info);
}

static void Many(void) {
  MPI_Win wins[100];
  for (int i = 0; i < 100; ++i) wins[i] = Allocate(64, 8);
  for (int i = 0; i < 100; ++i) {
    int64_t value = i, seen = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, wins[i]);
    MPI_Put(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, wins[i]);
    MPI_Get(&seen, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, wins[i]);
    MPI_Win_unlock(rank, wins[i]);
  }
  for (int i = 0; i < 100; ++i) MPI_Win_free(&wins[i]);
}

static int Is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static void Run(int argc, char** argv) {
  const char* command = argc > 1 ? argv[1] : "";
  const char* first = argc > 2 ? argv[2] : "";
  if (Is(command, "create"))
    Create(first, argc > 3 ? argv[3] : NULL);
  else if (Is(command, "attach"))
    Attach(first, argc > 3 ? atoi(argv[3]) : 0);
  else if (Is(command, "delete"))
    Delete(first);
  else if (Is(command, "refused"))
    Refused(first);
  else if (Is(command, "errors"))
    Errors();
  else if (Is(command, "too-big"))
    Refusal("too big", NULL, NULL, (MPI_Aint)1 << 50, 1, MPI_ERR_NO_MEM);
  else if (Is(command, "taken"))
    Refusal("taken", "msa_win_name", first, 64, 1, MPI_ERR_INFO_VALUE);
  else if (Is(command, "bad-name"))
    Refusal("bad name", "msa_win_name", first, 64, 1, MPI_ERR_INFO_VALUE);
  else if (Is(command, "bad-unit"))
    Refusal("bad unit", NULL, NULL, 64, rank == size - 1 ? 0 : 1, MPI_ERR_DISP);
  else if (Is(command, "locks"))
    Locks();
  else if (Is(command, "active"))
    Active();
  else if (Is(command, "count"))
    Count(atoi(first));
  else if (Is(command, "mixed"))
    Mixed(atoi(first));
  else if (Is(command, "requests"))
    Requests();
  else if (Is(command, "overlap"))
    Overlap(atol(first), argc > 3 ? argv[3] : "");
  else if (Is(command, "ordinary"))
    Ordinary();
  else if (Is(command, "many"))
    Many();
  else
    printf("no command '%s'\n", command), bad = 1;
}

int main(int argc, char** argv) {
  int any = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Run(argc, argv);
  fflush(stdout);
  MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) printf("ok %s\n", argc > 1 ? argv[1] : "");
  MPI_Finalize();
  return any;
}
