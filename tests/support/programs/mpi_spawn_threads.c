// Two threads spawn at once, each over its own communicator, --times times each:
//   mpi_spawn_threads [TIMES]
// Each thread asks for T+1 children. Rank 0 prints "thread T: N children in R rounds", each rank that is
// refused "thread T rank R: TEXT".
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 2 };

static const char* program;
static int times = 1;
static MPI_Comm comms[kThreads];

static void* Spawn(void* argument) {
  const int thread = (int)((MPI_Comm*)argument - comms);
  int rank = 0, children = 0;
  MPI_Comm_rank(comms[thread], &rank);
  MPI_Comm_set_errhandler(comms[thread], MPI_ERRORS_RETURN);
  for (int i = 0; i < times; ++i) {
    MPI_Comm inter;
    int remote = 0, sum = 0, one = 1;
    const int status = MPI_Comm_spawn(program, MPI_ARGV_NULL, thread + 1, MPI_INFO_NULL, 0, comms[thread],
                                      &inter, MPI_ERRCODES_IGNORE);
    if (status != MPI_SUCCESS) {
      char text[MPI_MAX_ERROR_STRING];
      int length;
      MPI_Error_string(status, text, &length);
      printf("thread %d rank %d: %s\n", thread, rank, text);
      continue;
    }
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    children += sum == remote ? sum : 1000;
    MPI_Comm_disconnect(&inter);
  }
  if (rank == 0) printf("thread %d: %d children in %d rounds\n", thread, children, times);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0, one = 1, sum = 0;
  MPI_Comm parent;
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 4);
  program = argv[0];
  if (argc > 1) times = atoi(argv[1]);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, parent);
    MPI_Comm_disconnect(&parent);
  } else {
    for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, &Spawn, &comms[i]);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  }
  MPI_Finalize();
  return 0;
}
