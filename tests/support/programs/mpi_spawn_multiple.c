// MPI_Comm_spawn_multiple of two commands, 1 and 2 processes, with their own arguments and info: one world of
// three children. Each child prints "child rank=.. size=.. appnum=.. arg=.. tag=$MPI_SPAWN_TAG". Exit code 5:
// wrong numbers.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int RunChild(MPI_Comm parent, const char* arg) {
  int rank = 0, size = 0, *appnum = NULL, found = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &found);
  const char* tag = getenv("MPI_SPAWN_TAG");
  printf("child rank=%d size=%d appnum=%d arg=%s tag=%s\n", rank, size, found ? *appnum : -1, arg,
         tag != NULL ? tag : "-");
  fflush(stdout);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, parent);
  MPI_Comm_disconnect(&parent);
  return size == 3 ? 0 : 5;
}

static int RunParent(const char* program) {
  char* commands[] = {(char*)program, (char*)program};
  char* first[] = {"first", NULL};
  char* second[] = {"second", NULL};
  char** arguments[] = {first, second};
  const int counts[] = {1, 2};
  MPI_Info infos[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Info_create(&infos[i]);
    MPI_Info_set(infos[i], "env", i == 0 ? "MPI_SPAWN_TAG=one" : "MPI_SPAWN_TAG=two");
  }
  int codes[3] = {-1, -1, -1}, remote = 0, size = 0, sum = 0, one = 1;
  MPI_Comm inter;
  MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &inter, codes);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Comm_disconnect(&inter);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("spawned %d, sum %d\n", remote, sum);
  for (int i = 0; i < 2; ++i) MPI_Info_free(&infos[i]);
  return remote == 3 && sum == 3 && codes[0] == 0 && codes[1] == 0 && codes[2] == 0 ? 0 : 5;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  const int code = parent != MPI_COMM_NULL ? RunChild(parent, argc > 1 ? argv[1] : "-") : RunParent(argv[0]);
  MPI_Finalize();
  return code;
}
