// Where the time of one MPI_Comm_spawn of 2 goes, all on one machine's monotonic clock:
//   spawn_times [TIMES [ARCH SOFT]]    prints a line "spawn TOTAL LAUNCH INIT REST" in microseconds a time;
//                                      ARCH and SOFT are info keys of the spawn
//     TOTAL   MPI_Comm_spawn as the parent sees it
//     LAUNCH  until the last child is in main(): the request to the launcher and the launcher's work
//     INIT    the last child's MPI_Init; REST: connecting the two worlds. Both are Open MPI's own
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kChildren = 2 };

static long long NowMicros(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void RunChild(MPI_Comm parent, const long long mine[2]) {
  long long last[2];
  MPI_Reduce(mine, last, 2, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send(last, 2, MPI_LONG_LONG, 0, 0, parent);
  MPI_Comm_disconnect(&parent);
}

static void SpawnOnce(const char* program, MPI_Info info) {
  MPI_Comm children;
  const long long begin = NowMicros();
  MPI_Comm_spawn(program, MPI_ARGV_NULL, kChildren, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  const long long end = NowMicros();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    long long last[2];
    MPI_Recv(last, 2, MPI_LONG_LONG, 0, 0, children, MPI_STATUS_IGNORE);
    printf("spawn %lld %lld %lld %lld\n", end - begin, last[0] - begin, last[1] - last[0], end - last[1]);
    fflush(stdout);
  }
  MPI_Comm_disconnect(&children);
}

int main(int argc, char** argv) {
  long long mine[2] = {NowMicros(), 0};
  MPI_Init(&argc, &argv);
  mine[1] = NowMicros();
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    RunChild(parent, mine);
  } else {
    const int times = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Info info = MPI_INFO_NULL;
    if (argc > 3) {
      MPI_Info_create(&info);
      MPI_Info_set(info, "arch", argv[2]);
      MPI_Info_set(info, "soft", argv[3]);
    }
    for (int i = 0; i < times; ++i) SpawnOnce(argv[0], info);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  }
  MPI_Finalize();
  return 0;
}
