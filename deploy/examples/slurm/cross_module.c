// Two programs on two modules in one MPI_COMM_WORLD, here two roles of one source: a solver that makes
// numbers and an analysis that adds up what it gets. See cross_module.sh.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSteps = 3, kNumbers = 1000 };

int main(int argc, char** argv) {
  int rank, size, mine, most;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int solver = argc > 1 && strcmp(argv[1], "solver") == 0;

  // Who is who: each role has a communicator of its own, and knows the world's rank of the other's first.
  MPI_Comm role;
  MPI_Comm_split(MPI_COMM_WORLD, solver, rank, &role);
  MPI_Comm_rank(role, &mine);
  MPI_Comm_size(role, &most);
  int first[2] = {size, size}, all[2];
  if (mine == 0) first[solver] = rank;
  MPI_Allreduce(first, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all[0] == size || all[1] == size) {
    fprintf(stderr,
            "cross_module: one of the two roles is missing in a world of %d; start both by one srun\n", size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  double numbers[kNumbers], sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kNumbers; ++i) numbers[i] = solver ? step + 1 : 0;
    if (solver) {
      MPI_Reduce(mine == 0 ? MPI_IN_PLACE : numbers, numbers, kNumbers, MPI_DOUBLE, MPI_SUM, 0, role);
      if (mine == 0) MPI_Send(numbers, kNumbers, MPI_DOUBLE, all[0], step, MPI_COMM_WORLD);
      continue;
    }
    if (mine == 0) MPI_Recv(numbers, kNumbers, MPI_DOUBLE, all[1], step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(numbers, kNumbers, MPI_DOUBLE, 0, role);
    double part = 0, total = 0;
    for (int i = mine; i < kNumbers; i += most) part += numbers[i];
    MPI_Allreduce(&part, &total, 1, MPI_DOUBLE, MPI_SUM, role);
    sum += total;
  }
  const char* module = getenv("MSA_MODULE");
  if (mine == 0)
    printf("%s: %d of %d processes, on module %s\n", solver ? "solver" : "analysis", most, size,
           module != NULL ? module : "?");
  if (mine == 0 && !solver) printf("sum %.0f\n", sum);
  MPI_Comm_free(&role);
  MPI_Finalize();
  return 0;
}
