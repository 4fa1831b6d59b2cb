// The calls that msa answers in an Open MPI program.
#include "backend.h"
#include "job_link.h"
#include "refusal.h"
#include "relations.h"
#include "spawn.h"
#include "task.h"

static int Finalize(void) {
  const int result = msa_host_calls()->real.Finalize();
  msa_link_close_all();
  return result;
}

void msa_after_init(void) {
  const struct msa_task* task = msa_task_get();
  MPI_Comm parent = MPI_COMM_NULL;
  if (!task->active || task->parent[0] == '\0') return;
  if (PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL)
    msa_relate(parent, task->parent);
}

void msa_override(struct msa_calls* calls) {
  calls->Init = &msa_init;
  calls->Init_thread = &msa_init_thread;
  calls->Finalize = &Finalize;
  calls->Comm_spawn = &msa_spawn;
  calls->Comm_spawn_multiple = &msa_spawn_multiple;
  calls->Comm_disconnect = &msa_disconnect;
  calls->Error_string = &msa_error_string;
}
