// Parents spawn children of the same program, both sides exchange data, merge and part again.
//   mpi_spawn --children N [--times K] [--depth D] [--info KEY=VALUE]... [--errors-return]
// Each child prints "child rank=.. size=.. depth=.. node=.. module=.. cwd=.. tag=$MPI_SPAWN_TAG". The
// parents' rank 0 prints "spawned N" a time and at the end "seconds median=.. min=.. max=.." of
// MPI_Comm_spawn alone. Exit code 5: wrong data or sizes; 6: the spawn failed (with --errors-return, else MPI
// aborts).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMaxTimes = 10000 };

struct Options {
  int children, times, depth, errors_return;
  MPI_Info info;
};

static void Usage(const char* text) {
  fprintf(stderr, "mpi_spawn: %s\n", text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static struct Options Parse(int argc, char** argv) {
  struct Options options = {.children = 2, .times = 1, .depth = 1, .errors_return = 0, .info = MPI_INFO_NULL};
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--errors-return") == 0) {
      options.errors_return = 1;
      continue;
    }
    ++i;
    if (strcmp(argv[i - 1], "--children") == 0)
      options.children = atoi(value);
    else if (strcmp(argv[i - 1], "--times") == 0)
      options.times = atoi(value);
    else if (strcmp(argv[i - 1], "--depth") == 0)
      options.depth = atoi(value);
    else if (strcmp(argv[i - 1], "--info") == 0) {
      char* copy = strdup(value);
      char* equals = strchr(copy, '=');
      if (equals == NULL) Usage("--info wants KEY=VALUE");
      *equals = '\0';
      if (options.info == MPI_INFO_NULL) MPI_Info_create(&options.info);
      MPI_Info_set(options.info, copy, equals + 1);
      free(copy);
    } else
      Usage("unknown option");
  }
  if (options.times > kMaxTimes) Usage("--times is at most 10000");
  return options;
}

// Every rank of one side sends to every rank of the other and checks what it gets; then one merged allreduce.
static int Exchange(MPI_Comm inter, int is_child) {
  int rank = 0, remote = 0, local = 0;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_size(inter, &local);
  MPI_Comm_remote_size(inter, &remote);
  int wrong = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == is_child) {
      for (int peer = 0; peer < remote; ++peer) {
        int value = 1000 * rank + peer;
        MPI_Send(&value, 1, MPI_INT, peer, turn, inter);
      }
    } else {
      for (int peer = 0; peer < remote; ++peer) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, peer, turn, inter, MPI_STATUS_IGNORE);
        wrong |= value != 1000 * peer + rank;
      }
    }
  }
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, is_child, &merged);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
  wrong |= sum != local + remote;
  MPI_Comm_free(&merged);
  return wrong;
}

static int ByValue(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int SpawnOnce(const char* program, const struct Options* options, double* seconds) {
  char depth[16], children[16];
  snprintf(depth, sizeof depth, "%d", options->depth - 1);
  snprintf(children, sizeof children, "%d", options->children);
  char* arguments[] = {"--depth", depth, "--children", children, NULL};
  int* codes = malloc(sizeof(int) * (size_t)options->children);
  MPI_Comm inter = MPI_COMM_NULL;
  const double begin = MPI_Wtime();
  const int status =
      MPI_Comm_spawn(program, arguments, options->children, options->info, 0, MPI_COMM_WORLD, &inter, codes);
  *seconds = MPI_Wtime() - begin;
  free(codes);
  if (status != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(status, text, &length);
    printf("spawn failed: %s\n", text);
    return 6;
  }
  int remote = 0;
  MPI_Comm_remote_size(inter, &remote);
  const int wrong = remote != options->children || Exchange(inter, 0);
  MPI_Comm_disconnect(&inter);
  return wrong ? 5 : 0;
}

static void SayChild(int depth) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char cwd[1024] = "?";
  if (getcwd(cwd, sizeof cwd) == NULL) strcpy(cwd, "?");
  const char* names[] = {"MSA_NODE", "MSA_MODULE", "MPI_SPAWN_TAG"};
  const char* values[3];
  for (int i = 0; i < 3; ++i) values[i] = getenv(names[i]) != NULL ? getenv(names[i]) : "-";
  printf("child rank=%d size=%d depth=%d node=%s module=%s cwd=%s tag=%s\n", rank, size, depth, values[0],
         values[1], cwd, values[2]);
  fflush(stdout);
}

static int RunSpawns(const char* program, const struct Options* options) {
  static double seconds[kMaxTimes];
  int rank = 0, code = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < options->times && code == 0; ++i) {
    code = SpawnOnce(program, options, &seconds[i]);
    if (rank == 0 && code == 0) printf("spawned %d\n", options->children);
  }
  if (rank == 0 && code == 0) {
    qsort(seconds, (size_t)options->times, sizeof seconds[0], ByValue);
    printf("seconds median=%.6f min=%.6f max=%.6f\n", seconds[options->times / 2], seconds[0],
           seconds[options->times - 1]);
    fflush(stdout);
  }
  return code;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct Options options = Parse(argc, argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  int code = 0;
  if (parent != MPI_COMM_NULL) {
    SayChild(options.depth);
    if (Exchange(parent, 1)) code = 5;
  }
  if (code == 0 && options.depth > 0) {
    if (options.errors_return) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = RunSpawns(argv[0], &options);
  }
  if (parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return code;
}
