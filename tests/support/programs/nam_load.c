// Works on regions of network attached memory while daemons are killed, and keeps book of what was
// acknowledged. Which way it goes says MSA_NAM_TRANSPORT; with "fabric" it is a fault if memory is mapped.
//
//   nam_load PREFIX STOP_FILE SEED [TIMEOUT_MS]
//
// Until STOP_FILE exists: creates, puts, gets, counts, locks, reopens and deletes regions PREFIX-0, PREFIX-1,
// ... Then compares each region with the book. What was acknowledged must be there, what failed may or may
// not. Prints one line, "ok regions=N puts=N adds=N unknown=N failed=N slowest_ms=N", code 0; or a line for
// each fault, code 1.
#include <msa_nam.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kRegions = 6, kSlots = 64, kCounter = kSlots, kBytes = 256 << 10, kMaybe = 64, kSlackMs = 1500 };
// The rest of a region: all words of one value, so large that a kill finds it on its way.
enum { kBulkAt = 4096, kWords = (kBytes - kBulkAt) / 8 };

struct Slot {
  int64_t acked;
  int64_t maybe[kMaybe];  // values whose put failed since
  int maybe_count;
};
enum State { kGone, kThere, kUnsure };
struct Region {
  char name[64];
  enum State state;
  msa_nam_region_t handle;
  struct Slot slots[kSlots], bulk;
  int64_t adds, unknown;
};

static struct Region regions[kRegions];
static unsigned number;
static uint32_t timeout_ms = 5000;
static long puts_done, adds_done, unknown_done, failed, faults, verified;
static double slowest;
static uint64_t seed;

static uint64_t Random(void) {  // xorshift64*
  seed ^= seed >> 12;
  seed ^= seed << 25;
  seed ^= seed >> 27;
  return seed * 2685821657736338717ULL;
}

static double NowMs(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void Fault(const struct Region* region, const char* what, int error) {
  printf("%s: %s: %s (%s)\n", region->name, what, msa_nam_error_name(error), msa_nam_error_text());
  ++faults;
}

// The time of a call, which must end by its deadline.
static double begun;
static void Begin(void) { begun = NowMs(); }
static int End(const struct Region* region, const char* what, int error) {
  const double took = NowMs() - begun;
  if (took > slowest) slowest = took;
  if (took > timeout_ms + kSlackMs) {
    printf("%s: %s took %.0f ms, its deadline is %u\n", region->name, what, took, timeout_ms);
    ++faults;
  }
  if (error != MSA_NAM_OK) ++failed;
  return error;
}

static int MayHappen(int error) {
  return error == MSA_NAM_ERR_TIMEOUT || error == MSA_NAM_ERR_UNAVAILABLE || error == MSA_NAM_ERR_UNKNOWN;
}

static void Use(struct Region* region, msa_nam_region_t handle) {
  struct msa_nam_segment_stat stat = {0};
  const char* wanted = getenv("MSA_NAM_TRANSPORT");
  region->handle = handle;
  msa_nam_set_timeout(handle, timeout_ms);
  msa_nam_segment_stat(handle, 0, &stat);
  if (wanted == NULL || strcmp(wanted, "fabric") != 0 || stat.transport == MSA_NAM_FABRIC) return;
  printf("%s: transport %d, not the fabric\n", region->name, (int)stat.transport);
  ++faults;
}

static void Create(const char* prefix, struct Region* region) {
  memset(region, 0, sizeof *region);
  snprintf(region->name, sizeof region->name, "%s-%u", prefix, number++);
  const struct msa_nam_segment segment = {kBytes, 8, 0};
  const struct msa_nam_create_options options = {
      .name = region->name, .segments = &segment, .segment_count = 1, .lifetime = MSA_NAM_PERSISTENT};
  msa_nam_region_t handle;
  Begin();
  const int error = End(region, "create", msa_nam_create(&options, &handle));
  if (error == MSA_NAM_OK) {
    Use(region, handle);
    region->state = kThere;
  } else if (MayHappen(error)) {
    region->state = kUnsure;
  } else {
    Fault(region, "create", error);
  }
}

static int Open(struct Region* region) {
  msa_nam_region_t handle;
  Begin();
  const int error = End(region, "open", msa_nam_open(region->name, MSA_NAM_READ | MSA_NAM_WRITE, &handle));
  if (error == MSA_NAM_OK) {
    Use(region, handle);
    region->state = kThere;
    return 1;
  }
  if (error == MSA_NAM_ERR_NOT_FOUND && region->state == kUnsure)
    region->state = kGone;
  else if (!MayHappen(error))
    Fault(region, "open", error);
  return 0;
}

static void Close(struct Region* region) {
  if (region->handle != NULL) (void)msa_nam_close(region->handle);
  region->handle = NULL;
}

static void Book(struct Region* region, struct Slot* slot, int64_t value, const char* what, int error) {
  if (error == MSA_NAM_OK) {
    slot->acked = value;
    slot->maybe_count = 0;
    ++puts_done;
  } else if (MayHappen(error)) {
    slot->maybe[slot->maybe_count++] = value;
  } else {
    Fault(region, what, error);
  }
}

static void Put(struct Region* region) {
  struct Slot* slot = &region->slots[Random() % kSlots];
  if (slot->maybe_count == kMaybe) return;
  const int64_t value = (int64_t)(Random() >> 1);
  Begin();
  Book(region, slot, value, "put",
       End(region, "put", msa_nam_put(region->handle, 0, (uint64_t)(slot - region->slots) * 8, &value, 8)));
}

// Two pieces that are waited for.
static int PutLater(const struct Region* region, int64_t* words) {
  const uint64_t half = kWords / 2 * 8;
  const struct msa_nam_piece pieces[] = {{kBulkAt, words, half},
                                         {kBulkAt + half, words + kWords / 2, kWords * 8 - half}};
  msa_nam_request_t request;
  int error = msa_nam_iputv(region->handle, 0, pieces, 2, &request);
  if (error != MSA_NAM_OK) return error;
  do error = msa_nam_wait(request);
  while (error == MSA_NAM_ERR_TIMEOUT);  // it could still overwrite what comes next
  return error;
}

static void PutBulk(struct Region* region) {
  static int64_t words[kWords];
  if (region->bulk.maybe_count == kMaybe) return;
  const int64_t value = (int64_t)(Random() >> 1);
  for (int i = 0; i < kWords; ++i) words[i] = value;
  Begin();
  if (Random() % 2 == 0)
    Book(region, &region->bulk, value, "large put",
         End(region, "large put", msa_nam_put(region->handle, 0, kBulkAt, words, kWords * 8)));
  else
    Book(region, &region->bulk, value, "iputv", End(region, "iputv", PutLater(region, words)));
}

static void Add(struct Region* region) {
  int64_t before;
  Begin();
  const int error = End(region, "fetch_add", msa_nam_fetch_add(region->handle, 0, kCounter * 8, 1, &before));
  if (error == MSA_NAM_OK) {
    if (before < region->adds || before > region->adds + region->unknown) {
      printf("%s: fetch_add gave %lld, %lld were counted and %lld are unknown\n", region->name,
             (long long)before, (long long)region->adds, (long long)region->unknown);
      ++faults;
    }
    ++region->adds;
    ++adds_done;
  } else if (MayHappen(error)) {
    ++region->unknown;
    ++unknown_done;
  } else {
    Fault(region, "fetch_add", error);
  }
}

// Nobody else wants the lock: it is had again at once, whoever was killed.
static void LockAndAdd(struct Region* region) {
  Begin();
  int error = End(region, "lock", msa_nam_lock(region->handle, 0, MSA_NAM_EXCLUSIVE));
  if (error != MSA_NAM_OK) {
    if (!MayHappen(error)) Fault(region, "lock", error);
    Close(region);  // held or not
    return;
  }
  Add(region);
  Begin();
  error = End(region, "unlock", msa_nam_unlock(region->handle, 0));
  if (error == MSA_NAM_OK) return;
  if (!MayHappen(error)) Fault(region, "unlock", error);
  Close(region);
}

static void CheckSlot(struct Region* region, const struct Slot* slot, int index, int64_t found) {
  int known = found == slot->acked;
  for (int i = 0; i < slot->maybe_count; ++i) known |= found == slot->maybe[i];
  if (known) return;
  printf("%s: slot %d holds %lld, %lld was acknowledged\n", region->name, index, (long long)found,
         (long long)slot->acked);
  ++faults;
}

static void Check(struct Region* region) {
  static int64_t found[kBytes / 8];
  Begin();
  const int error = End(region, "get", msa_nam_get(region->handle, 0, 0, found, sizeof found));
  if (error != MSA_NAM_OK) {
    if (!MayHappen(error)) Fault(region, "get", error);
    return;
  }
  for (int i = 0; i < kSlots; ++i) CheckSlot(region, &region->slots[i], i, found[i]);
  const long before = faults;
  for (int i = 0; i < kWords && faults == before; ++i)
    CheckSlot(region, &region->bulk, kBulkAt / 8 + i, found[kBulkAt / 8 + i]);
  if (found[kCounter] < region->adds || found[kCounter] > region->adds + region->unknown) {
    printf("%s: the counter holds %lld, %lld were counted and %lld are unknown\n", region->name,
           (long long)found[kCounter], (long long)region->adds, (long long)region->unknown);
    ++faults;
  }
}

static void Delete(struct Region* region) {
  Close(region);
  Begin();
  const int error = End(region, "delete", msa_nam_delete(region->name, 0));
  if (error == MSA_NAM_OK || (error == MSA_NAM_ERR_NOT_FOUND && region->state == kUnsure))
    region->state = kGone;
  else if (MayHappen(error))
    region->state = kUnsure;
  else if (error != MSA_NAM_ERR_BUSY)  // its former handle's end is still on its way
    Fault(region, "delete", error);
}

static void Step(const char* prefix) {
  struct Region* region = &regions[Random() % kRegions];
  if (region->state == kGone) {
    Create(prefix, region);
    return;
  }
  if (region->handle == NULL && !Open(region)) return;
  const uint64_t what = Random() % 100;
  if (what < 40)
    Put(region);
  else if (what < 50)
    PutBulk(region);
  else if (what < 70)
    Add(region);
  else if (what < 80)
    LockAndAdd(region);
  else if (what < 94)
    Check(region);
  else if (what < 98)
    Close(region);
  else
    Delete(region);
}

// The daemons are left alone now: every region that was acknowledged is reached and right.
static void Verify(struct Region* region) {
  Close(region);
  if (region->state == kGone) return;
  const enum State state = region->state;
  if (!Open(region)) {
    if (region->state == kGone) return;
    printf("%s: cannot be opened any more\n", region->name);
    ++faults;
    return;
  }
  const long before = faults;
  const long failed_before = failed;
  Check(region);
  if (failed != failed_before) {
    printf("%s: cannot be read any more\n", region->name);
    ++faults;
  }
  if (faults == before && state == kThere) ++verified;
  Close(region);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: nam_load PREFIX STOP_FILE SEED [TIMEOUT_MS]\n");
    return 2;
  }
  seed = strtoull(argv[3], NULL, 10) * 2654435761u + 88172645463325252ULL;
  if (argc > 4) timeout_ms = (uint32_t)atol(argv[4]);
  char seconds[16];
  snprintf(seconds, sizeof seconds, "%u", (timeout_ms + 999) / 1000);
  setenv("MSA_NAM_TIMEOUT", seconds, 1);
  while (access(argv[2], F_OK) != 0) Step(argv[1]);
  for (int i = 0; i < kRegions; ++i) Verify(&regions[i]);
  if (faults != 0) return 1;
  printf("ok regions=%ld puts=%ld adds=%ld unknown=%ld failed=%ld slowest_ms=%.0f\n", verified, puts_done,
         adds_done, unknown_done, failed, slowest);
  return 0;
}
