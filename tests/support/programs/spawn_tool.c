// Preloaded behind libmsampi: a profiling tool that sees each MPI_Comm_spawn.
#include <mpi.h>
#include <stdio.h>

int MPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm* inter, int codes[]) {
  fprintf(stderr, "tool: MPI_Comm_spawn\n");
  return PMPI_Comm_spawn(command, argv, maxprocs, info, root, comm, inter, codes);
}
