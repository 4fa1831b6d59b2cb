// Rank 0 reads its standard input to the end; every rank learns how much it was. Rank 0 prints "stdin bytes=N
// sum=S", the others "rank R stdin bytes=N own=M" with what they read themselves (0: only rank 0 gets the
// input).
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static unsigned char buffer[65536];
  unsigned long own = 0, sum = 0;
  for (;;) {
    const ssize_t n = read(0, buffer, sizeof buffer);
    if (n <= 0) break;
    own += (unsigned long)n;
    for (ssize_t i = 0; i < n; ++i) sum = sum * 31 + buffer[i];
  }
  unsigned long total = own;
  MPI_Bcast(&total, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("stdin bytes=%lu sum=%lu\n", own, sum);
  else
    printf("rank %d stdin bytes=%lu own=%lu\n", rank, total, own);
  MPI_Finalize();
  return 0;
}
