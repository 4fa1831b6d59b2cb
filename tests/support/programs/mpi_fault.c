// A rank that goes wrong while the others wait for it: mpi_fault KIND RANK [CODE]
//   abort    the rank calls MPI_Abort(CODE)        exit     it leaves by exit(CODE) without MPI_Finalize
//   segv     it dies by a signal                   kill     it kills itself with SIGKILL
//   return   all finalise, then it returns CODE    hang     nobody ends: all wait for a message that never
//   comes
// Every rank prints "up RANK" first.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void GoWrong(const char* kind, int code) {
  if (strcmp(kind, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, code);
  if (strcmp(kind, "exit") == 0) _exit(code);
  if (strcmp(kind, "segv") == 0) raise(SIGSEGV);
  if (strcmp(kind, "kill") == 0) raise(SIGKILL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* kind = argv[1];
  const int who = atoi(argv[2]), code = argc > 3 ? atoi(argv[3]) : 0;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("up %d\n", rank);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(kind, "return") == 0) {
    MPI_Finalize();
    return rank == who ? code : 0;
  }
  // Open MPI 4.1 installs a SIGSEGV handler that prints a stack; the default action is what a user's crash
  // looks like.
  signal(SIGSEGV, SIG_DFL);
  if (rank == who) GoWrong(kind, code);
  int never = 0;
  MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
