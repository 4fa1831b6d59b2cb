// Data between all ranks: a ring, an allreduce and an alltoall of argv[1] bytes (default 1 MiB) a pair, every
// byte checked. Rank 0 prints "ring ok size=N". Exit code 4: wrong data.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char Pattern(int from, int to, long at) {
  return (unsigned char)(from * 31 + to * 17 + at * 7);
}

static int CheckAlltoall(int rank, int size, long bytes) {
  unsigned char* out = malloc((size_t)bytes * (size_t)size);
  unsigned char* in = malloc((size_t)bytes * (size_t)size);
  for (int peer = 0; peer < size; ++peer)
    for (long at = 0; at < bytes; ++at) out[peer * bytes + at] = Pattern(rank, peer, at);
  MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
  int wrong = 0;
  for (int peer = 0; peer < size; ++peer)
    for (long at = 0; at < bytes; ++at) wrong |= in[peer * bytes + at] != Pattern(peer, rank, at);
  free(out);
  free(in);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long bytes = argc > 1 ? atol(argv[1]) : 1 << 20;
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long token = rank;
  for (int hop = 0; hop < size; ++hop)
    MPI_Sendrecv_replace(&token, 1, MPI_LONG, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long sum = 0, mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  int wrong = token != rank || sum != (long)size * (size + 1) / 2 || CheckAlltoall(rank, size, bytes);
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  if (rank == 0) printf("ring %s size=%d\n", any ? "WRONG" : "ok", size);
  MPI_Finalize();
  return any ? 4 : 0;
}
