// Spawns as many processes on the booster as can be had, up to 8, waiting at most 30 seconds for nodes.
//
//   mpicc.openmpi -o spawn_soft spawn_soft.c
//   msactl run -m cluster -n 2 ./spawn_soft
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMost = 8 };

static void RunParents(const char* program) {
  int rank = 0, children = 0, sum = 0, started = 0, codes[kMost];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "arch", "booster");  // a module's name or kind
  MPI_Info_set(info, "soft", "0:8:2");    // 0, 2, 4, 6 or 8
  MPI_Info_set(info, "msa_wait", "30");   // seconds
  MPI_Comm inter;
  const int status = MPI_Comm_spawn(program, MPI_ARGV_NULL, kMost, info, 0, MPI_COMM_WORLD, &inter, codes);
  MPI_Info_free(&info);
  if (status != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(status, text, &length);
    if (rank == 0) printf("no children: %s\n", text);
    return;
  }
  for (int i = 0; i < kMost; ++i) started += codes[i] == MPI_SUCCESS;
  MPI_Comm_remote_size(inter, &children);
  // An empty remote group is possible here, since 0 belongs to the set.
  const int nothing = 0;
  if (children > 0)
    MPI_Allreduce(&nothing, &sum, 1, MPI_INT, MPI_SUM, inter);  // the children's sum comes here
  if (rank == 0) printf("%d of %d children started, their ranks add up to %d\n", started, kMost, sum);
  MPI_Comm_disconnect(&inter);
}

static void RunChild(MPI_Comm parents) {
  int rank = 0, from_parents = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* module = getenv("MSA_MODULE");
  printf("child %d runs on module %s\n", rank, module != NULL ? module : "?");
  fflush(stdout);
  MPI_Allreduce(&rank, &from_parents, 1, MPI_INT, MPI_SUM, parents);
  MPI_Comm_disconnect(&parents);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parents;
  MPI_Comm_get_parent(&parents);
  if (parents != MPI_COMM_NULL)
    RunChild(parents);
  else
    RunParents(argv[0]);
  MPI_Finalize();
  return 0;
}
