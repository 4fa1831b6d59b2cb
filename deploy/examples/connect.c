// Two jobs that meet by a name: a server that answers clients, one after the other.
//
//   mpicc.openmpi -o connect connect.c
//   msactl run -m cluster -n 2 ./connect server 2 &
//   msactl run -m booster -n 4 ./connect client
//   msactl run -m booster -n 3 ./connect client
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char* kService = "connect example";

// Over both jobs: how many processes they are together.
static int Together(MPI_Comm other) {
  int one = 1, here = 0, there = 0;
  MPI_Allreduce(&one, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&one, &there, 1, MPI_INT, MPI_SUM, other);  // over an intercommunicator: the other side's sum
  return here + there;
}

static void Serve(int rank, int clients) {
  char port[MPI_MAX_PORT_NAME] = "";
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(kService, MPI_INFO_NULL, port);  // all jobs of this user can look it up
  }
  for (int i = 0; i < clients; ++i) {
    MPI_Comm client;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client);  // waits as long as it takes
    const int together = Together(client);
    if (rank == 0) printf("server: client %d came, %d processes together\n", i + 1, together);
    MPI_Comm_disconnect(&client);
  }
  if (rank == 0) {
    MPI_Unpublish_name(kService, MPI_INFO_NULL, port);
    MPI_Close_port(port);
  }
}

static int Ask(int rank) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm server;
  if (rank == 0) {
    // The server's job may still wait in the queue: up to a minute.
    const struct timespec pause = {0, 100 * 1000 * 1000};
    int tries = 600;
    while (MPI_Lookup_name(kService, MPI_INFO_NULL, port) != MPI_SUCCESS && --tries > 0)
      nanosleep(&pause, NULL);
    if (tries == 0) {
      fprintf(stderr, "nobody has published '%s'; start the server first\n", kService);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server) != MPI_SUCCESS) return 1;
  const int together = Together(server);
  if (rank == 0) printf("client: %d processes together\n", together);
  MPI_Comm_disconnect(&server);
  return 0;
}

int main(int argc, char** argv) {
  int rank = 0, code = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (argc > 2 && strcmp(argv[1], "server") == 0)
    Serve(rank, atoi(argv[2]));
  else if (argc > 1 && strcmp(argv[1], "client") == 0)
    code = Ask(rank);
  else
    code = 2;
  MPI_Finalize();
  return code;
}
