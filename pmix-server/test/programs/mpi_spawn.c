/* mpi_spawn CHILDREN [ROUNDS] [MODE]: spawns itself; parents and children add up over the merged
   communicator. MODE "die": the children exit before MPI_Init. "abort": a child calls MPI_Abort. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int merged_size(MPI_Comm inter, int high) {
  MPI_Comm all;
  int one = 1, sum = 0;
  MPI_Intercomm_merge(inter, high, &all);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  MPI_Comm_free(&all);
  return sum;
}

int main(int argc, char** argv) {
  const char* mode = argc > 3 ? argv[3] : "";
  MPI_Comm parent, inter;
  int rank, size, round;
  if (strcmp(mode, "die-child") == 0) return 3;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    merged_size(parent, 1);
    if (strcmp(mode, "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 42);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
  }
  for (round = 0; round < (argc > 2 ? atoi(argv[2]) : 1); ++round) {
    char* args[] = {argv[1], "1", strcmp(mode, "die") == 0 ? "die-child" : (char*)mode, NULL};
    int sum, error;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    error = MPI_Comm_spawn(argv[0], args, atoi(argv[1]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                           MPI_ERRCODES_IGNORE);
    if (error != MPI_SUCCESS) {
      printf("rank %d spawn failed\n", rank);
      fflush(stdout);
      exit(7);
    }
    sum = merged_size(inter, 0);
    if (rank == 0) printf("round %d: %d parents and children\n", round, sum);
    MPI_Comm_disconnect(&inter);
  }
  MPI_Finalize();
  return 0;
}
