/* mpi_job MODE [ARGS]: an MPI program that does what the tests of the job daemon ask for.
     hello                     every rank prints rank, size and node
     shared                    every rank prints its place among the ranks that MPI says share its node
     linger SECONDS            as hello, but MPI lives so long
     abort RANK CODE           that rank calls MPI_Abort
     leave RANK CODE           that rank exits without MPI_Finalize, the others wait for a message
     crash RANK                that rank dies by SIGSEGV
     spawn N ROUNDS [HOST]     spawns N children, ROUNDS times, adds up over the merged communicator,
   disconnects multiple N M              spawns N and M children of two commands nested DEPTH every world
   spawns one child down to that depth where DIR                 spawns a child with wdir DIR and env
   MSA_TEST_WORD=hello, which prints both missing                   spawns a program that does not exist dying
   N                   spawns N children that exit before MPI_Init childabort                a child, still
   connected, calls MPI_Abort with code 9 ring BYTES                sends so much around the ring */
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* self;
static int rank, size;

static int merged(MPI_Comm inter, int high) {
  MPI_Comm all;
  int one = 1, sum = 0;
  MPI_Intercomm_merge(inter, high, &all);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  MPI_Comm_free(&all);
  return sum;
}

static void child(MPI_Comm parent, const char* mode, int argc, char** argv) {
  if (strcmp(mode, "nested-child") == 0) {
    int depth = atoi(argv[2]);
    if (depth > 1) {
      char text[16];
      char* args[] = {"nested-child", text, NULL};
      MPI_Comm inter;
      snprintf(text, sizeof text, "%d", depth - 1);
      MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
      merged(inter, 0);
      MPI_Comm_disconnect(&inter);
    }
    printf("depth %d\n", depth);
    fflush(stdout);
  }
  if (strcmp(mode, "where-child") == 0) {
    char cwd[4096];
    const char* word = getenv("MSA_TEST_WORD");
    printf("cwd %s word %s\n", getcwd(cwd, sizeof cwd), word == NULL ? "none" : word);
    fflush(stdout);
  }
  if (strcmp(mode, "node-child") == 0) {
    printf("child %d of %d on %s\n", rank, size, getenv("MSA_NODE"));
    fflush(stdout);
  }
  merged(parent, 1);
  if (strcmp(mode, "abort-child") == 0) {
    MPI_Abort(MPI_COMM_WORLD, 9);
  }
  (void)argc;
  MPI_Comm_disconnect(&parent);
}

static void spawn(int n, char** args, MPI_Info info, int print, int round) {
  MPI_Comm inter;
  int error, sum;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  error = MPI_Comm_spawn(self, args, n, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  if (error != MPI_SUCCESS) {
    printf("spawn failed\n");
    fflush(stdout);
    _exit(7);
  }
  sum = merged(inter, 0);
  if (print && rank == 0) printf("round %d: %d together\n", round, sum);
  fflush(stdout);
  MPI_Comm_disconnect(&inter);
}

static void multiple(int n, int m) {
  char* commands[2];
  char* first[] = {"plain-child", NULL};
  char* second[] = {"node-child", NULL};
  char** args[2] = {first, second};
  int counts[2];
  MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm inter;
  int sum;
  commands[0] = commands[1] = (char*)self;
  counts[0] = n;
  counts[1] = m;
  MPI_Comm_spawn_multiple(2, commands, args, counts, infos, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  sum = merged(inter, 0);
  if (rank == 0) printf("multiple: %d together\n", sum);
  fflush(stdout);
  MPI_Comm_disconnect(&inter);
}

static void shared(void) {
  MPI_Comm node;
  int local, locals, lowest;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Comm_size(node, &locals);
  MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, node);
  printf("%d of %d with rank %d\n", local, locals, lowest);
  fflush(stdout);
  MPI_Comm_free(&node);
}

static void linger(double seconds) {
  const double end = MPI_Wtime() + seconds;
  printf("rank %d of %d\n", rank, size);
  fflush(stdout);
  while (MPI_Wtime() < end) poll(NULL, 0, 50);
}

static void ring(int bytes) {
  char* out = calloc(1, (size_t)bytes);
  char* in = calloc(1, (size_t)bytes);
  MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 0, in, bytes, MPI_BYTE, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) printf("ring done\n");
  free(out);
  free(in);
}

static void parent_part(const char* mode, int argc, char** argv) {
  if (strcmp(mode, "hello") == 0) {
    printf("rank %d of %d on %s\n", rank, size, getenv("MSA_NODE"));
    fflush(stdout);
  } else if (strcmp(mode, "shared") == 0) {
    shared();
  } else if (strcmp(mode, "linger") == 0) {
    linger(atof(argv[2]));
  } else if (strcmp(mode, "abort") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == atoi(argv[2])) MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
    for (;;) pause();
  } else if (strcmp(mode, "leave") == 0 || strcmp(mode, "crash") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == atoi(argv[2])) {
      if (strcmp(mode, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
      }
      _exit(atoi(argv[3]));
    }
    for (;;) pause();
  } else if (strcmp(mode, "spawn") == 0) {
    int round;
    char* args[] = {argc > 4 ? "node-child" : "plain-child", NULL};
    MPI_Info info = MPI_INFO_NULL;
    if (argc > 4) {
      MPI_Info_create(&info);
      MPI_Info_set(info, "host", argv[4]);
    }
    for (round = 0; round < atoi(argv[3]); ++round) spawn(atoi(argv[2]), args, info, 1, round);
  } else if (strcmp(mode, "multiple") == 0) {
    multiple(atoi(argv[2]), atoi(argv[3]));
  } else if (strcmp(mode, "nested") == 0) {
    char* args[] = {"nested-child", argv[2], NULL};
    spawn(1, args, MPI_INFO_NULL, 1, 0);
  } else if (strcmp(mode, "where") == 0) {
    char* args[] = {"where-child", NULL};
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "wdir", argv[2]);
    MPI_Info_set(info, "env", "MSA_TEST_WORD=hello");
    spawn(1, args, info, 1, 0);
  } else if (strcmp(mode, "missing") == 0) {
    self = "/nonexistent/program";
    spawn(1, MPI_ARGV_NULL, MPI_INFO_NULL, 1, 0);
  } else if (strcmp(mode, "dying") == 0) {
    char* args[] = {"die-child", NULL};
    spawn(atoi(argv[2]), args, MPI_INFO_NULL, 1, 0);
  } else if (strcmp(mode, "childabort") == 0) {
    char* args[] = {"abort-child", NULL};
    spawn(1, args, MPI_INFO_NULL, 1, 0);
    for (;;) pause();
  } else if (strcmp(mode, "ring") == 0) {
    ring(atoi(argv[2]));
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "hello";
  MPI_Comm parent;
  self = argv[0];
  if (strcmp(mode, "die-child") == 0) return 3;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL)
    child(parent, mode, argc, argv);
  else
    parent_part(mode, argc, argv);
  MPI_Finalize();
  return 0;
}
