// Two MPI jobs that meet.
//   mpi_connect server WHERE CLIENTS [after]   accepts so many clients, one after the other
//   mpi_connect client WHERE [connected]
//   mpi_connect names NAME                     what MPI says of names published twice, and of unknown ones
// WHERE: a name to publish, or "@FILE", a file that gets the port, or "port:PORT". Rank 0 of both sides sends
// 2 MiB to each rank of the other. `after` "fail": accepting goes on when a client fails. `connected` "die":
// rank 0 is killed between connecting and talking; "stay": it waits, connected, to be killed.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kCount = (2 << 20) / (int)sizeof(int) };

static int rank;
static const char* what;

static int Failed(int status, const char* call) {
  if (status == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING];
  int length, class;
  MPI_Error_class(status, &class);
  MPI_Error_string(status, text, &length);
  printf("%s rank %d: %s failed class=%d text=%s\n", what, rank, call, class, text);
  fflush(stdout);
  return 1;
}

static void Pause(void) {
  const struct timespec pause = {0, 50 * 1000 * 1000};
  nanosleep(&pause, NULL);
}

// Both ways at once; the number of ints that were wrong, -1: a call failed.
static int Talk(MPI_Comm other, int salt) {
  int remote, wrong = 0;
  int* out = malloc(kCount * sizeof *out);
  int* in = malloc(kCount * sizeof *in);
  MPI_Comm_remote_size(other, &remote);
  MPI_Request* sent = malloc((size_t)remote * sizeof *sent);
  int sends = 0;
  if (rank == 0)
    for (; sends < remote; ++sends) {
      for (int i = 0; i < kCount && sends == 0; ++i) out[i] = i ^ salt;
      MPI_Isend(out, kCount, MPI_INT, sends, 1, other, &sent[sends]);
    }
  if (Failed(MPI_Recv(in, kCount, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE), "MPI_Recv")) return -1;
  for (int i = 0; i < kCount; ++i) wrong += in[i] != (i ^ ~salt);
  if (Failed(MPI_Waitall(sends, sent, MPI_STATUSES_IGNORE), "MPI_Waitall")) return -1;
  int one = 1, sum = 0;
  if (Failed(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other), "MPI_Allreduce")) return -1;
  if (sum != remote) ++wrong;
  free(out);
  free(in);
  free(sent);
  return wrong;
}

static int Server(const char* where, int clients, int go_on) {
  char port[MPI_MAX_PORT_NAME] = "";
  int bad = 0;
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    if (where[0] == '@') {
      char temporary[4096];
      snprintf(temporary, sizeof temporary, "%s.new", where + 1);
      FILE* file = fopen(temporary, "w");
      if (file == NULL || fputs(port, file) < 0 || fclose(file) != 0) return 5;
      if (rename(temporary, where + 1) != 0) return 5;
    } else if (Failed(MPI_Publish_name(where, MPI_INFO_NULL, port), "MPI_Publish_name")) {
      return 3;
    }
    printf("server listens\n");
    fflush(stdout);
  }
  for (int i = 0; i < clients; ++i) {
    MPI_Comm other;
    int remote = 0;
    if (Failed(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other), "MPI_Comm_accept")) {
      if (!go_on) return 3;
      continue;
    }
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    MPI_Comm_remote_size(other, &remote);
    if (rank == 0) printf("server connected %d\n", i);
    fflush(stdout);
    const int wrong = Talk(other, 1);
    if (wrong != 0) bad = 1;
    if (rank == 0) printf("server client %d remote=%d wrong=%d\n", i, remote, wrong);
    fflush(stdout);
    if (wrong == 0) MPI_Comm_disconnect(&other);
  }
  if (rank == 0) {
    if (where[0] != '@') Failed(MPI_Unpublish_name(where, MPI_INFO_NULL, port), "MPI_Unpublish_name");
    MPI_Close_port(port);
    printf("server done\n");
  }
  return bad && !go_on ? 4 : 0;
}

static int FindPort(const char* where, char* port) {
  if (strncmp(where, "port:", 5) == 0) return strcpy(port, where + 5) != NULL;
  for (int tries = 0; tries < 1200; ++tries) {
    if (where[0] == '@') {
      FILE* file = fopen(where + 1, "r");
      const int found = file != NULL && fgets(port, MPI_MAX_PORT_NAME, file) != NULL;
      if (file != NULL) fclose(file);
      if (found) return 1;
    } else {
      if (MPI_Lookup_name(where, MPI_INFO_NULL, port) == MPI_SUCCESS) return 1;
    }
    if (tries == 0) printf("client waits\n");
    fflush(stdout);
    Pause();
  }
  return 0;
}

static int Client(const char* where, const char* then) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  int remote = 0;
  if (rank == 0 && !FindPort(where, port)) MPI_Abort(MPI_COMM_WORLD, 5);
  if (rank == 0) printf("client connects\n");
  fflush(stdout);
  if (Failed(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other), "MPI_Comm_connect")) return 3;
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  MPI_Comm_remote_size(other, &remote);
  if (rank == 0) printf("client connected\n");
  fflush(stdout);
  if (strcmp(then, "die") == 0 && rank == 0) raise(SIGKILL);
  while (strcmp(then, "stay") == 0) Pause();
  const int wrong = Talk(other, ~1);
  if (wrong != 0) return 4;
  MPI_Comm_disconnect(&other);
  if (rank == 0) printf("client done remote=%d wrong=%d\n", remote, wrong);
  return 0;
}

static int Names(const char* name) {
  char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME] = "";
  if (rank != 0) return 0;
  MPI_Open_port(MPI_INFO_NULL, port);
  Failed(MPI_Lookup_name(name, MPI_INFO_NULL, found), "MPI_Lookup_name");
  Failed(MPI_Publish_name(name, MPI_INFO_NULL, port), "MPI_Publish_name");
  Failed(MPI_Publish_name(name, MPI_INFO_NULL, port), "MPI_Publish_name");
  Failed(MPI_Lookup_name(name, MPI_INFO_NULL, found), "MPI_Lookup_name");
  printf("names %s MPI_ERR_NAME=%d MPI_ERR_SERVICE=%d\n", strcmp(found, port) == 0 ? "same" : "different",
         MPI_ERR_NAME, MPI_ERR_SERVICE);
  Failed(MPI_Unpublish_name(name, MPI_INFO_NULL, port), "MPI_Unpublish_name");
  MPI_Close_port(port);
  return 0;
}

int main(int argc, char** argv) {
  int code = 2;
  if (argc < 3) return 2;
  what = argv[1];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(what, "server") == 0 && argc > 3)
    code = Server(argv[2], atoi(argv[3]), argc > 4 && strcmp(argv[4], "fail") == 0);
  else if (strcmp(what, "client") == 0)
    code = Client(argv[2], argc > 3 ? argv[3] : "");
  else if (strcmp(what, "names") == 0)
    code = Names(argv[2]);
  MPI_Finalize();
  return code;
}
