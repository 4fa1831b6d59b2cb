// What libmsampi costs a program that does not spawn. Prints "library INIT_US LOAD_US CALL_NS BARE_NS":
//   INIT_US  MPI_Init, wall clock
//   LOAD_US  loading the library of the MPI at hand, as the first interposed call does it; given as argument,
//            for a run without the preload: mpi_library_cost LIBRARY
//   CALL_NS  a call that is interposed when the library is preloaded: MPI_Comm_remote_size's cheap sibling
//            MPI_Comm_test_inter
//   BARE_NS  a call of like cost that is never interposed: MPI_Comm_rank
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kCalls = 20000000 };

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  int value = 0;
  double begin = Now();
  MPI_Init(&argc, &argv);
  const double init = Now() - begin;
  double load = 0;
  if (argc > 1) {
    begin = Now();
    if (dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) fprintf(stderr, "%s\n", dlerror());
    load = Now() - begin;
  }
  begin = Now();
  for (int i = 0; i < kCalls; ++i) MPI_Comm_test_inter(MPI_COMM_WORLD, &value);
  const double call = (Now() - begin) / kCalls;
  begin = Now();
  for (int i = 0; i < kCalls; ++i) MPI_Comm_rank(MPI_COMM_WORLD, &value);
  const double bare = (Now() - begin) / kCalls;
  printf("library %.1f %.1f %.2f %.2f\n", init / 1e3, load / 1e3, call, bare);
  MPI_Finalize();
  return 0;
}
