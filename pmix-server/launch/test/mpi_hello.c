#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--help") == 0) return puts("usage") < 0;
  if (argc > 1 && strcmp(argv[1], "--wait") == 0) {
    usleep(200 * 1000);  // long enough for several looks at its maps
    return puts("waited") < 0;
  }
  int rank = 0;
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d\n", rank, size);
#ifdef LINGER_US
  usleep(LINGER_US);
#endif
  MPI_Finalize();
  return 0;
}
