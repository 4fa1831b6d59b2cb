// MPICH: worlds are checked, spawns are refused. Debian's build (ch4:ucx) cannot spawn under any launcher:
// its netmod has no get_local_upids, and the other parents would wait for ever.
#include <stddef.h>

#include "backend.h"
#include "refusal.h"
#include "task.h"

static const char kReason[] =
    "MPICH cannot spawn under msa: Debian's MPICH 4.0.2 (ch4:ucx) lacks get_local_upids, under any launcher; "
    "build the program with Open MPI (mpicc.openmpi)";

static int Refuse(const char* call, int root, MPI_Comm comm, MPI_Comm* inter) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == root) msa_say("%s: %s", call, kReason);
  PMPI_Barrier(comm);  // said before the first error handler aborts
  *inter = MPI_COMM_NULL;
  return msa_refuse(comm, MPI_ERR_SPAWN, kReason);
}

static int Spawn(const char* command, char** argv, int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                 MPI_Comm* inter, int* codes) {
  if (!msa_task_get()->active || comm == MPI_COMM_NULL || inter == NULL)
    return msa_host_calls()->real.Comm_spawn(command, argv, maxprocs, info, root, comm, inter, codes);
  return Refuse("MPI_Comm_spawn", root, comm, inter);
}

static int SpawnMultiple(int count, char** commands, char*** argvs, const int* maxprocs,
                         const MPI_Info* infos, int root, MPI_Comm comm, MPI_Comm* inter, int* codes) {
  if (!msa_task_get()->active || comm == MPI_COMM_NULL || inter == NULL)
    return msa_host_calls()->real.Comm_spawn_multiple(count, commands, argvs, maxprocs, infos, root, comm,
                                                      inter, codes);
  return Refuse("MPI_Comm_spawn_multiple", root, comm, inter);
}

void msa_after_init(void) {}

void msa_override(struct msa_calls* calls) {
  calls->Init = &msa_init;
  calls->Init_thread = &msa_init_thread;
  calls->Comm_spawn = &Spawn;
  calls->Comm_spawn_multiple = &SpawnMultiple;
  calls->Error_string = &msa_error_string;
}
