// A manager that has no more nodes than it needs itself, and spawns workers on another module for each bundle
// of work. Between the bundles those nodes are others' again. See manager.sh.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBundles = 3, kMost = 4 };

static void Work(MPI_Comm manager) {
  int rank, size, bundle = 0, done;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Bcast(&bundle, 1, MPI_INT, 0, manager);
  done = (bundle + 1) * (rank + 1);
  MPI_Reduce(&done, NULL, 1, MPI_INT, MPI_SUM, 0, manager);
  MPI_Comm_disconnect(&manager);
}

static int Manage(const char* program) {
  int rank, failed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "arch", "booster");  // a module's name or kind
  MPI_Info_set(info, "soft", "1:4");      // any number of workers will do
  MPI_Info_set(info, "msa_wait", "120");  // seconds, for nodes that others have
  for (int bundle = 0; bundle < kBundles && !failed; ++bundle) {
    MPI_Comm workers;
    const int status =
        MPI_Comm_spawn(program, MPI_ARGV_NULL, kMost, info, 0, MPI_COMM_WORLD, &workers, MPI_ERRCODES_IGNORE);
    if (status != MPI_SUCCESS) {
      char text[MPI_MAX_ERROR_STRING];
      int length = 0;
      MPI_Error_string(status, text, &length);
      if (rank == 0) fprintf(stderr, "bundle %d: no workers: %s\n", bundle, text);
      failed = 1;
      continue;
    }
    int count = 0, result = 0;
    MPI_Comm_remote_size(workers, &count);
    const int self = rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(&bundle, 1, MPI_INT, self, workers);
    MPI_Reduce(NULL, &result, 1, MPI_INT, MPI_SUM, self, workers);
    if (rank == 0) printf("bundle %d: %d workers, result %d\n", bundle, count, result);
    MPI_Comm_disconnect(&workers);
  }
  MPI_Info_free(&info);
  return failed;
}

int main(int argc, char** argv) {
  int code = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL)
    Work(parent);
  else
    code = Manage(argv[0]);
  MPI_Finalize();
  return code;
}
