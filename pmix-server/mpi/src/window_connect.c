// MPI_Comm_connect: what is no port is refused; to a region: an inter-communicator whose remote side is the
// region's segments.
#include <stdio.h>
#include <string.h>

#include "inter.h"
#include "refusal.h"
#include "task.h"
#include "window.h"

static const char kPrefix[] = "msa-nam:";

static int IsRegion(const char* port, MPI_Info info) {
  char wanted[16];
  if (port != NULL && strncmp(port, kPrefix, sizeof kPrefix - 1) == 0) return 1;
  msa_info_value(info, "deep_win_connect", "msa_win_connect", wanted, sizeof wanted);
  return strcmp(wanted, "true") == 0 || strcmp(wanted, "1") == 0;
}

enum port { kPort, kRegion, kNoPort };

// What MPI_Open_port of this MPI makes. Open MPI 4 waits ten minutes for an acceptor at anything else, and
// MPICH says MPI_ERR_OTHER at the root; of other versions it is not known.
static int LooksLikePort(const char* port) {
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION == 4
  unsigned owner, rank, number;
  int length = 0;
  // "3203137537.0:1234567890"
  return sscanf(port, "%10u.%10u:%10u%n", &owner, &rank, &number, &length) == 3 && port[length] == '\0';
#elif defined(MPICH_VERSION)
  return strstr(port, "tag#") != NULL;
#else
  return 1;
#endif
}

static enum port KindOf(const char* port, MPI_Info info) {
  if (IsRegion(port, info)) return kRegion;
  return port == NULL || !msa_task_get()->active || LooksLikePort(port) ? kPort : kNoPort;
}

// Collective: Open MPI itself would return at the root alone.
static int RefusePort(const char* port, int root, MPI_Comm comm) {
  char text[320] = "";
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == root)
    snprintf(text, sizeof text,
             "MPI_Comm_connect: '%.64s' is no port; expected what MPI_Open_port or MPI_Lookup_name gave, a "
             "region's msa-nam:..., or its name with deep_win_connect = true",
             port);
  PMPI_Bcast(text, sizeof text, MPI_CHAR, root, comm);
  return msa_comm_error(comm, MPI_ERR_PORT, text);
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
  int rank = 0, size = 0, is_inter = 0, kind = kPort;
  if (comm == MPI_COMM_NULL || inter == NULL || real->Comm_test_inter(comm, &is_inter) != MPI_SUCCESS ||
      is_inter)
    return real->Comm_connect(port, info, root, comm, inter);
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  if (root < 0 || root >= size) return real->Comm_connect(port, info, root, comm, inter);
  // Port and info count at the root alone.
  if (rank == root) kind = KindOf(port, info);
  if (size > 1) PMPI_Bcast(&kind, 1, MPI_INT, root, comm);
  if (kind == kPort) return real->Comm_connect(port, info, root, comm, inter);
  *inter = MPI_COMM_NULL;
  if (kind == kNoPort) return RefusePort(port, root, comm);
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
