#include "relations.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_link.h"
#include "task.h"

// ------------------------------------------------------------------------------------- parents and children

// Attribute of the intercommunicator and of each copy of it.
struct relation {
  atomic_int copies;
  atomic_int freed;
  char nspace[256];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int relation_key = MPI_KEYVAL_INVALID;

// The relation whose last communicator this thread is disconnecting.
static _Thread_local int disconnecting;
static _Thread_local struct relation* parted;

static int CopyRelation(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  atomic_fetch_add(&((struct relation*)in)->copies, 1);
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int DeleteRelation(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  struct relation* relation = value;
  if (!disconnecting) atomic_store(&relation->freed, 1);
  if (atomic_fetch_sub(&relation->copies, 1) > 1) return MPI_SUCCESS;
  if (disconnecting && !atomic_load(&relation->freed))
    parted = relation;
  else
    free(relation);
  return MPI_SUCCESS;
}

static int Key(atomic_int* key, MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* drop) {
  pthread_mutex_lock(&mutex);
  int value = atomic_load(key);
  if (value == MPI_KEYVAL_INVALID && PMPI_Comm_create_keyval(copy, drop, &value, NULL) == MPI_SUCCESS)
    atomic_store(key, value);
  pthread_mutex_unlock(&mutex);
  return value;
}

static void* Attribute(MPI_Comm comm, atomic_int* key) {
  const int value = atomic_load_explicit(key, memory_order_acquire);
  void* attribute = NULL;
  int found = 0;
  if (value == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL) return NULL;
  if (PMPI_Comm_get_attr(comm, value, &attribute, &found) != MPI_SUCCESS || !found) return NULL;
  return attribute;
}

void msa_relate(MPI_Comm inter, const char* nspace) {
  struct relation* relation = calloc(1, sizeof *relation);
  const int key = Key(&relation_key, &CopyRelation, &DeleteRelation);
  if (relation == NULL || key == MPI_KEYVAL_INVALID) {
    free(relation);
    return;
  }
  atomic_init(&relation->copies, 1);
  snprintf(relation->nspace, sizeof relation->nspace, "%s", nspace);
  PMPI_Comm_set_attr(inter, key, relation);
}

static void Report(const char* nspace) {
  struct msa_link_error error;
  struct msa_buffer message = {0};
  msa_put_text_message(&message, kMsaDisconnected, nspace);
  struct msa_link* link = msa_link_acquire(NULL, &error);
  if (link != NULL && msa_link_send(link, &message, &error) == 0) {
    msa_link_release(link);
  } else {
    msa_link_close(link);
    msa_say("MPI_Comm_disconnect: the end of one side will still end the other: %s", error.text);
  }
  msa_buffer_free(&message);
}

int msa_disconnect(MPI_Comm* comm) {
  const struct msa_calls* real = &msa_host_calls()->real;
  if (comm == NULL || Attribute(*comm, &relation_key) == NULL) return real->Comm_disconnect(comm);
  int rank = -1;
  PMPI_Comm_rank(*comm, &rank);
  disconnecting = 1;
  parted = NULL;
  const int result = real->Comm_disconnect(comm);
  disconnecting = 0;
  if (parted != NULL && result == MPI_SUCCESS && rank == 0) Report(parted->nspace);
  free(parted);
  parted = NULL;
  return result;
}
