// mpi_spawn COUNT ARCH: prints the nanoseconds of one MPI_Comm_spawn of COUNT children on module ARCH, which
// are this program again and do what mpi_barrier.c does.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Comm other;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&other);
  if (other != MPI_COMM_NULL || argc < 3) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "arch", argv[2]);
    const double begin = MPI_Wtime();
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, atoi(argv[1]), info, 0, MPI_COMM_SELF, &other,
                   MPI_ERRCODES_IGNORE);
    printf("%.0f\n", (MPI_Wtime() - begin) * 1e9);
  }
  if (other != MPI_COMM_NULL) MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return 0;
}
