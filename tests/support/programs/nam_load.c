// Works on regions of network attached memory while daemons are killed, and keeps book of what was
// acknowledged.
//
//   nam_load PREFIX STOP_FILE SEED [TIMEOUT_MS]
//
// Until STOP_FILE exists: creates, puts, gets, counts, reopens and deletes regions PREFIX-0, PREFIX-1, ...
// Then compares each region with the book. What was acknowledged must be there, what failed may or may not.
// Prints one line, "ok regions=N puts=N adds=N unknown=N failed=N slowest_ms=N", code 0; or a line for each
// fault, code 1.
#include <msa_nam.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kRegions = 6, kSlots = 64, kCounter = kSlots, kBytes = 256 << 10, kMaybe = 64, kSlackMs = 1500 };

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
  struct Slot slots[kSlots];
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
  region->handle = handle;
  msa_nam_set_timeout(handle, timeout_ms);
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

static void Put(struct Region* region) {
  struct Slot* slot = &region->slots[Random() % kSlots];
  if (slot->maybe_count == kMaybe) return;
  const int64_t value = (int64_t)(Random() >> 1);
  Begin();
  const int error =
      End(region, "put", msa_nam_put(region->handle, 0, (uint64_t)(slot - region->slots) * 8, &value, 8));
  if (error == MSA_NAM_OK) {
    slot->acked = value;
    slot->maybe_count = 0;
    ++puts_done;
  } else if (MayHappen(error)) {
    slot->maybe[slot->maybe_count++] = value;
  } else {
    Fault(region, "put", error);
  }
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

static void CheckSlot(struct Region* region, int index, int64_t found) {
  const struct Slot* slot = &region->slots[index];
  int known = found == slot->acked;
  for (int i = 0; i < slot->maybe_count; ++i) known |= found == slot->maybe[i];
  if (known) return;
  printf("%s: slot %d holds %lld, %lld was acknowledged\n", region->name, index, (long long)found,
         (long long)slot->acked);
  ++faults;
}

static void Check(struct Region* region) {
  int64_t found[kSlots + 1];
  Begin();
  const int error = End(region, "get", msa_nam_get(region->handle, 0, 0, found, sizeof found));
  if (error != MSA_NAM_OK) {
    if (!MayHappen(error)) Fault(region, "get", error);
    return;
  }
  for (int i = 0; i < kSlots; ++i) CheckSlot(region, i, found[i]);
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
  if (what < 50)
    Put(region);
  else if (what < 80)
    Add(region);
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
