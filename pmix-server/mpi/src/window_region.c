#include <stdlib.h>
#include <string.h>

#include "window.h"

void msa_region_hold(struct msa_region* region) { atomic_fetch_add(&region->references, 1); }

void msa_region_drop(struct msa_region* region) {
  if (region == NULL || atomic_fetch_sub(&region->references, 1) > 1) return;
  if (region->handle != NULL) msa_nam.close(region->handle);
  free(region->bytes);
  free(region->units);
  free(region->address);
  free(region->local);
  free(region->direct);
  free(region);
}

static int Fill(struct msa_region* region, const struct msa_nam_stat* stat) {
  const size_t count = stat->segment_count;
  region->count = (int)count;
  region->bytes = calloc(count + 1, sizeof *region->bytes);
  region->units = calloc(count + 1, sizeof *region->units);
  region->address = calloc(count + 1, sizeof *region->address);
  region->local = calloc(count + 1, 1);
  region->direct = calloc(count + 1, sizeof *region->direct);
  if (region->bytes == NULL || region->units == NULL || region->address == NULL || region->local == NULL ||
      region->direct == NULL)
    return -1;
  memcpy(region->name, stat->name, sizeof region->name);
  memcpy(region->port, stat->port, sizeof region->port);
  return 0;
}

struct msa_region* msa_region_make(msa_nam_region_t handle, struct msa_verdict* verdict) {
  struct msa_region* region = calloc(1, sizeof *region);
  struct msa_nam_stat stat;
  int failed = region != NULL ? msa_nam.stat(handle, &stat) : 0;
  if (region == NULL) {
    msa_nam.close(handle);
    msa_verdict_set(verdict, MPI_ERR_NO_MEM, "out of memory for a window's description");
    return NULL;
  }
  atomic_init(&region->references, 1);
  region->handle = handle;
  if (failed == 0 && Fill(region, &stat) != 0)
    msa_verdict_set(verdict, MPI_ERR_NO_MEM, "out of memory for %u segments", stat.segment_count);
  for (int i = 0; failed == 0 && verdict->code == MPI_SUCCESS && i < region->count; ++i) {
    struct msa_nam_segment_stat segment;
    failed = msa_nam.segment_stat(handle, (uint32_t)i, &segment);
    if (failed == 0) failed = msa_nam.direct(handle, (uint32_t)i, &region->direct[i]);
    if (failed != 0) break;
    region->bytes[i] = (MPI_Aint)segment.bytes;
    region->units[i] = segment.disp_unit != 0 ? (int)segment.disp_unit : 1;
    region->address[i] = segment.address;
    region->local[i] = segment.transport == MSA_NAM_LOCAL;
  }
  msa_verdict_nam(verdict, "looking at the region", failed);
  if (verdict->code == MPI_SUCCESS) return region;
  msa_region_drop(region);
  return NULL;
}

struct msa_region* msa_region_share(MPI_Comm comm, int root, msa_nam_region_t handle,
                                    struct msa_verdict* verdict) {
  struct {
    struct msa_verdict verdict;
    uint64_t lease_bytes;
  } head = {.lease_bytes = 0};
  int rank = 0;
  const void* lease = NULL;
  size_t bytes = 0;
  struct msa_region* region = NULL;
  PMPI_Comm_rank(comm, &rank);
  if (rank == root) {
    if (verdict->code == MPI_SUCCESS)
      msa_verdict_nam(verdict, "lease for the other ranks", msa_nam.get_lease(handle, &lease, &bytes));
    head.verdict = *verdict;
    head.lease_bytes = bytes;
  }
  PMPI_Bcast(&head, (int)sizeof head, MPI_BYTE, root, comm);
  *verdict = head.verdict;
  if (verdict->code != MPI_SUCCESS) {
    if (rank == root && handle != NULL) msa_nam.close(handle);
    return NULL;
  }
  void* buffer = rank == root ? (void*)lease : malloc(head.lease_bytes);
  if (buffer == NULL) PMPI_Abort(comm, 1);  // the broadcast needs it
  PMPI_Bcast(buffer, (int)head.lease_bytes, MPI_BYTE, root, comm);
  if (rank != root) {
    const char* missing = msa_nam_load();
    if (missing != NULL)
      msa_verdict_set(verdict, MPI_ERR_OTHER, "libmsanam.so cannot be loaded: %s", missing);
    else
      msa_verdict_nam(verdict, "another rank than the root",
                      msa_nam.attach(buffer, head.lease_bytes, &handle));
    free(buffer);
  }
  if (verdict->code == MPI_SUCCESS) region = msa_region_make(handle, verdict);
  msa_agree(comm, verdict);
  if (verdict->code == MPI_SUCCESS) return region;
  // The root's lease ends with its handle: it closes last.
  if (rank != root) msa_region_drop(region);
  PMPI_Barrier(comm);
  if (rank == root) msa_region_drop(region);
  return NULL;
}
