/* Reads what nam_window_create left, in any number of processes.
 *   mpicc nam_window_attach.c -I.../include -o nam_window_attach       (msa_mpi.h)
 *   msactl run -n 2 ./nam_window_attach msa-nam:... [delete] */
#include <msa_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank, size, segments, found;
  MPI_Aint* bytes;
  MPI_Comm region;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2) {
    fprintf(stderr, "usage: nam_window_attach PORT [delete]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  MPI_Comm_connect(argv[1], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &region);
  MPI_Comm_remote_size(region, &segments); /* one a process of the program that made it */
  MPI_Win_create_dynamic(MPI_INFO_NULL, region, &window);
  MPI_Win_get_attr(window, MPIX_WIN_SIZES, &bytes, &found);

  /* The targets are the segments; here they are shared out among the processes. */
  MPI_Win_lock_all(0, window);
  double sum = 0, total = 0;
  for (int target = rank; target < segments; target += size) {
    const int count = (int)(bytes[target] / (MPI_Aint)sizeof(double));
    double* numbers = malloc(sizeof *numbers * (size_t)count);
    MPI_Get(numbers, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, window);
    MPI_Win_flush(target, window);
    for (int i = 0; i < count; ++i) sum += numbers[i];
    free(numbers);
  }
  MPI_Win_unlock_all(window);
  MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d segments, sum %.3f, read by %d processes\n", segments, total, size);

  if (argc > 2 && strcmp(argv[2], "delete") == 0) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "deep_mem_kind", "deep_nam");
    MPI_Win_set_info(window, info);
    MPI_Info_free(&info);
  }
  MPI_Win_free(&window);
  MPI_Comm_disconnect(&region);
  MPI_Finalize();
  return 0;
}
