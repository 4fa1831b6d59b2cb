/* Leaves data in network attached memory: a persistent window of one array a process, and its port name.
 *   mpicc nam_window_create.c -o nam_window_create
 *   msactl run -n 4 --nam 64M ./nam_window_create results     prints "port msa-nam:..."
 * Then: nam_window_attach.c. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kNumbers = 1000 };

int main(int argc, char** argv) {
  int rank;
  double numbers[kNumbers], *base;
  char port[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  MPI_Win window;
  int found;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kNumbers; ++i) numbers[i] = rank + i / 1000.0;

  MPI_Info_create(&info);
  MPI_Info_set(info, "deep_mem_kind", "deep_nam_persistent");
  if (argc > 1) MPI_Info_set(info, "msa_win_name", argv[1]);
  MPI_Win_allocate(sizeof numbers, sizeof(double), info, MPI_COMM_WORLD, &base, &window);
  MPI_Info_free(&info);

  /* Through the window: `base` is NULL where the memory is on another node. */
  MPI_Win_fence(0, window);
  MPI_Put(numbers, kNumbers, MPI_DOUBLE, rank, 0, kNumbers, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);

  MPI_Win_get_info(window, &info);
  MPI_Info_get(info, "deep_win_port_name", MPI_MAX_INFO_VAL, port, &found);
  MPI_Info_free(&info);
  if (rank == 0 && found) printf("port %s\n", port);
  MPI_Win_free(&window); /* the memory stays */
  MPI_Finalize();
  return 0;
}
