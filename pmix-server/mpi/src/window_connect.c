// MPI_Comm_connect to a region: an inter-communicator whose remote side is the region's segments.
#include <stdio.h>
#include <string.h>

#include "inter.h"
#include "refusal.h"
#include "window.h"

static const char kPrefix[] = "msa-nam:";

static int IsRegion(const char* port, MPI_Info info) {
  char wanted[16];
  if (port != NULL && strncmp(port, kPrefix, sizeof kPrefix - 1) == 0) return 1;
  msa_info_value(info, "deep_win_connect", "msa_win_connect", wanted, sizeof wanted);
  return strcmp(wanted, "true") == 0 || strcmp(wanted, "1") == 0;
}

// A port is the prefix and 32 digits; behind the prefix may also stand a region's name, which is never that.
static const char* Reference(const char* port) {
  const size_t prefix = sizeof kPrefix - 1;
  if (strncmp(port, kPrefix, prefix) != 0) return port;
  const char* rest = port + prefix;
  return strlen(rest) == 32 && strspn(rest, "0123456789abcdef") == 32 ? port : rest;
}

static msa_nam_region_t Open(const char* port, struct msa_verdict* verdict) {
  msa_nam_region_t handle = NULL;
  const char* missing = msa_nam_load();
  if (missing != NULL) {
    msa_verdict_set(verdict, MPI_ERR_OTHER, "libmsanam.so cannot be loaded: %s", missing);
    return NULL;
  }
  const char* region = Reference(port);
  int failed = msa_nam.open(region, MSA_NAM_READ | MSA_NAM_WRITE, &handle);
  // What may only be read can be read.
  if (failed == MSA_NAM_ERR_DENIED) failed = msa_nam.open(region, MSA_NAM_READ, &handle);
  if (failed == MSA_NAM_ERR_ARG)  // nothing but the name can be wrong
    msa_verdict_set(verdict, MPI_ERR_PORT, "MPI_Comm_connect: %s", msa_nam.error_text());
  msa_verdict_nam(verdict, "MPI_Comm_connect", failed);
  return failed == 0 ? handle : NULL;
}

int msa_comm_connect(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* inter) {
  const struct msa_calls* real = &msa_host_calls()->real;
  struct msa_verdict verdict = {0};
  msa_nam_region_t handle = NULL;
  MPI_Comm mine;
  int rank = 0, size = 0, is_inter = 0, is_region = 0;
  if (comm == MPI_COMM_NULL || inter == NULL || real->Comm_test_inter(comm, &is_inter) != MPI_SUCCESS ||
      is_inter)
    return real->Comm_connect(port, info, root, comm, inter);
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  if (root < 0 || root >= size) return real->Comm_connect(port, info, root, comm, inter);
  // Port and info count at the root alone.
  if (rank == root) is_region = IsRegion(port, info);
  if (size > 1) PMPI_Bcast(&is_region, 1, MPI_INT, root, comm);
  if (!is_region) return real->Comm_connect(port, info, root, comm, inter);
  *inter = MPI_COMM_NULL;
  int failed = PMPI_Comm_split(comm, 0, rank, &mine);
  if (failed != MPI_SUCCESS) return failed;
  if (rank == root) handle = Open(port, &verdict);
  struct msa_region* region = msa_region_share(mine, root, handle, &verdict);
  PMPI_Comm_free(&mine);
  if (region == NULL) return msa_comm_error(comm, verdict.code, verdict.text);
  failed = msa_inter_make(comm, region, inter);
  if (failed != MPI_SUCCESS) msa_region_drop(region);
  return failed;
}
