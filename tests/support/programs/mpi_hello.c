// Says who runs where, one line a rank, and checks that the launcher and MPI agree about it.
// Exit code 3: MPI_Comm_rank or MPI_Comm_size differ from MSA_RANK or MSA_WORLD_SIZE.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char* Env(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "-";
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char line[512];
  snprintf(line, sizeof line,
           "hello rank=%d size=%d node=%s module=%s component=%s local=%s job=%s step=%s arg=%s", rank, size,
           Env("MSA_NODE"), Env("MSA_MODULE"), Env("MSA_COMPONENT"), Env("MSA_LOCAL_RANK"), Env("MSA_JOB_ID"),
           Env("MSA_STEP_ID"), argc > 1 ? argv[1] : "-");
  puts(line);
  fflush(stdout);
  int wrong = 0;
  if (getenv("MSA_RANK") != NULL && (atoi(Env("MSA_RANK")) != rank || atoi(Env("MSA_WORLD_SIZE")) != size)) {
    fprintf(stderr, "rank %d of %d, but MSA_RANK=%s and MSA_WORLD_SIZE=%s\n", rank, size, Env("MSA_RANK"),
            Env("MSA_WORLD_SIZE"));
    wrong = 3;
  }
  MPI_Finalize();
  return wrong;
}
