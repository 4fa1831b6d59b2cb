// A modular MPI job: one world over several modules, which spawns two more processes and talks with them.
//
//   mpicc.openmpi -o hello hello_modular.c
//   msactl run -m cluster -n 2 ./hello : -m booster -N 2 -n 4 ./hello
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSpawned = 2, kLine = 160 };

static const char* Env(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "?";
}

// Rank 0 of `comm` prints every rank's line, in order.
static void PrintWhoRunsWhere(MPI_Comm comm, const char* what) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  char line[kLine];
  snprintf(line, sizeof line, "%s %d of %d runs on node %-4s of module %s", what, rank, size, Env("MSA_NODE"),
           Env("MSA_MODULE"));
  char* lines = rank == 0 ? malloc((size_t)size * kLine) : NULL;
  MPI_Gather(line, kLine, MPI_CHAR, lines, kLine, MPI_CHAR, 0, comm);
  for (int i = 0; rank == 0 && i < size; ++i) puts(lines + (size_t)i * kLine);
  fflush(stdout);
  free(lines);
}

static void RunChild(MPI_Comm parent) {
  PrintWhoRunsWhere(MPI_COMM_WORLD, "spawned process");
  int rank = 0, question = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv(&question, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
  const int answer = question * question + rank;
  MPI_Send(&answer, 1, MPI_INT, 0, 0, parent);
  MPI_Comm_disconnect(&parent);
}

static int RunParent(const char* program) {
  int rank = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PrintWhoRunsWhere(MPI_COMM_WORLD, "rank");
  MPI_Comm children;
  MPI_Comm_spawn(program, MPI_ARGV_NULL, kSpawned, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                 MPI_ERRCODES_IGNORE);
  if (rank == 0) {
    for (int child = 0; child < kSpawned; ++child) {
      const int question = 7;
      int answer = 0;
      MPI_Send(&question, 1, MPI_INT, child, 0, children);
      MPI_Recv(&answer, 1, MPI_INT, child, 0, children, MPI_STATUS_IGNORE);
      printf("rank 0 asked spawned process %d for 7*7+%d, the answer is %d\n", child, child, answer);
      wrong |= answer != 49 + child;
    }
  }
  MPI_Comm_disconnect(&children);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  int wrong = 0;
  if (parent != MPI_COMM_NULL)
    RunChild(parent);
  else
    wrong = RunParent(argv[0]);
  MPI_Finalize();
  return wrong;
}
