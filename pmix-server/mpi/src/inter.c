#include "inter.h"

#include <pthread.h>

#include "refusal.h"
#include "window.h"

static struct msa_region nobody;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inter_key = MPI_KEYVAL_INVALID;

static int Copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  msa_region_hold(in);
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int Delete(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  if (value != &nobody) msa_region_drop(value);
  return MPI_SUCCESS;
}

static int Key(void) {
  pthread_mutex_lock(&mutex);
  int value = atomic_load(&inter_key);
  if (value == MPI_KEYVAL_INVALID && PMPI_Comm_create_keyval(&Copy, &Delete, &value, NULL) == MPI_SUCCESS)
    atomic_store(&inter_key, value);
  pthread_mutex_unlock(&mutex);
  return value;
}

// NULL: a communicator as any other.
static struct msa_region* Remote(MPI_Comm comm) {
  const int key = atomic_load_explicit(&inter_key, memory_order_acquire);
  struct msa_region* region = NULL;
  int found = 0;
  if (key == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL) return NULL;
  if (PMPI_Comm_get_attr(comm, key, &region, &found) != MPI_SUCCESS || !found) return NULL;
  return region;
}

struct msa_region* msa_inter_region(MPI_Comm comm) {
  struct msa_region* region = Remote(comm);
  return region == &nobody ? NULL : region;
}

static int Split(MPI_Comm comm, MPI_Comm* copy) {
  // Not MPI_Comm_dup, which would call the program's own attribute callbacks.
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return PMPI_Comm_split(comm, 0, rank, copy);
}

static int RemoteSize(MPI_Comm comm, int* size) {
  struct msa_region* remote = Remote(comm);
  if (remote == NULL || size == NULL) return msa_host_calls()->real.Comm_remote_size(comm, size);
  *size = remote->count;
  return MPI_SUCCESS;
}

static int RemoteGroup(MPI_Comm comm, MPI_Group* group) {
  if (Remote(comm) == NULL || group == NULL) return msa_host_calls()->real.Comm_remote_group(comm, group);
  *group = MPI_GROUP_EMPTY;  // segments are no processes
  return MPI_SUCCESS;
}

static int TestInter(MPI_Comm comm, int* flag) {
  if (Remote(comm) == NULL || flag == NULL) return msa_host_calls()->real.Comm_test_inter(comm, flag);
  *flag = 1;
  return MPI_SUCCESS;
}

static int IntercommMerge(MPI_Comm comm, int high, MPI_Comm* merged) {
  struct msa_region* remote = Remote(comm);
  if (remote == NULL || merged == NULL) return msa_host_calls()->real.Intercomm_merge(comm, high, merged);
  if (remote == &nobody) return Split(comm, merged);
  *merged = MPI_COMM_NULL;
  return msa_refuse(comm, MPI_ERR_COMM,
                    "MPI_Intercomm_merge: the remote side is a region of memory, which has no processes");
}

int msa_inter_make(MPI_Comm comm, struct msa_region* region, MPI_Comm* inter) {
  const int key = Key();
  const int failed = Split(comm, inter);
  if (failed != MPI_SUCCESS) return failed;
  struct msa_calls* calls = msa_backend_calls();
  __atomic_store_n(&calls->Comm_remote_size, &RemoteSize, __ATOMIC_RELEASE);
  __atomic_store_n(&calls->Comm_remote_group, &RemoteGroup, __ATOMIC_RELEASE);
  __atomic_store_n(&calls->Comm_test_inter, &TestInter, __ATOMIC_RELEASE);
  __atomic_store_n(&calls->Intercomm_merge, &IntercommMerge, __ATOMIC_RELEASE);
  return PMPI_Comm_set_attr(*inter, key, region != NULL ? region : &nobody);
}
