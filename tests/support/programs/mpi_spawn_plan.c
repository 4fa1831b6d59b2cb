// Spawns once a round, whatever comes of it, and says what came:
//   mpi_spawn_plan [--maxprocs N[,N...]] [--info KEY=VALUE]... [--root R] [--errors return|fatal|handler]
//                  [--times K] [--depth D] [--part disconnect|free|dup] [--child-dies] [--booster HOSTS,PPN]
//                  [--stay FILE] [--parent-waits]
// More than one number: MPI_Comm_spawn_multiple, each command with the same info. Each parent prints
//   parent R: ok remote=M inter=I codes=C,C,...       or
//   parent R: failed class=MPI_ERR_X text=... codes=C,C,...
// where codes are 0 or the class, and each child "child rank=.. size=.. depth=.. tag=$MPI_SPAWN_TAG
// files=.." (its limit of open files). Both sides meet in a barrier and part as --part says. --child-dies:
// children end before MPI_Init (not the parents' first option, by which children know). --stay: children
// wait until FILE is there; --parent-waits: parents wait for it too, instead of for the children, and abort.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef MSA_WITH_BOOSTER
#include <msa_mpi.h>
#endif

enum { kMaxCommands = 64, kMaxCodes = 1024 };

static struct {
  const char* program;
  int counts[kMaxCommands];
  int commands, root, times, depth, child_dies, hosts, ppn, parent_waits;
  const char *errors, *part, *stay;
  MPI_Info info;
} options = {.commands = 1, .times = 1, .errors = "return", .part = "disconnect", .info = MPI_INFO_NULL};

static int rank;

static void ReadCounts(const char* text) {
  options.commands = 0;
  for (char* end = (char*)text; *text != '\0' && options.commands < kMaxCommands; text = *end ? end + 1 : end)
    options.counts[options.commands++] = (int)strtol(text, &end, 10);
}

static void AddInfo(const char* text) {
  char key[64];
  const char* equals = strchr(text, '=');
  snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
  if (options.info == MPI_INFO_NULL) MPI_Info_create(&options.info);
  MPI_Info_set(options.info, key, equals + 1);
}

static void Parse(int argc, char** argv) {
  options.program = argv[0];
  options.counts[0] = 1;
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    if (strcmp(name, "--child-dies") == 0) {
      options.child_dies = 1;
      continue;
    }
    if (strcmp(name, "--parent-waits") == 0) {
      options.parent_waits = 1;
      continue;
    }
    const char* value = ++i < argc ? argv[i] : "";
    if (strcmp(name, "--stay") == 0) options.stay = value;
    if (strcmp(name, "--maxprocs") == 0) ReadCounts(value);
    if (strcmp(name, "--info") == 0) AddInfo(value);
    if (strcmp(name, "--root") == 0) options.root = atoi(value);
    if (strcmp(name, "--times") == 0) options.times = atoi(value);
    if (strcmp(name, "--depth") == 0) options.depth = atoi(value);
    if (strcmp(name, "--errors") == 0) options.errors = value;
    if (strcmp(name, "--part") == 0) options.part = value;
    if (strcmp(name, "--booster") == 0) sscanf(value, "%d,%d", &options.hosts, &options.ppn);
  }
}

static void Handle(MPI_Comm* comm, int* code, ...) {
  int class;
  (void)comm;
  MPI_Error_class(*code, &class);
  printf("parent %d: handler %s\n", rank, class == MPI_ERR_SPAWN ? "MPI_ERR_SPAWN" : "other");
  fflush(stdout);
}

static const char* NameOf(int class) {
  return class == MPI_SUCCESS          ? "0"
         : class == MPI_ERR_SPAWN      ? "MPI_ERR_SPAWN"
         : class == MPI_ERR_INFO_VALUE ? "MPI_ERR_INFO_VALUE"
         : class == MPI_ERR_ARG        ? "MPI_ERR_ARG"
                                       : "other";
}

static void Part(MPI_Comm* inter) {
  if (strcmp(options.part, "dup") == 0) {
    MPI_Comm copy;
    MPI_Comm_dup(*inter, &copy);
    MPI_Comm_disconnect(inter);
    *inter = copy;
  }
  if (strcmp(options.part, "free") == 0)
    MPI_Comm_free(inter);
  else
    MPI_Comm_disconnect(inter);
}

static int Spawn(MPI_Comm* inter, int* codes) {
  static char depth[16];
  static char* arguments[8];
  static char** all[kMaxCommands];
  static char* programs[kMaxCommands];
  static MPI_Info infos[kMaxCommands];
  int n = 0;
  snprintf(depth, sizeof depth, "%d", options.depth - 1);
  if (options.child_dies) arguments[n++] = "--child-dies";
  arguments[n++] = "--depth";
  arguments[n++] = depth;
  arguments[n++] = "--part";
  arguments[n++] = (char*)options.part;
  if (options.stay != NULL) {
    arguments[n++] = "--stay";
    arguments[n++] = (char*)options.stay;
  }
#ifdef MSA_WITH_BOOSTER
  if (options.hosts != 0) return deep_booster_alloc(MPI_COMM_WORLD, options.hosts, options.ppn, inter);
#endif
  if (options.commands == 1)
    return MPI_Comm_spawn(options.program, arguments, options.counts[0], options.info, options.root,
                          MPI_COMM_WORLD, inter, codes);
  for (int i = 0; i < options.commands; ++i) {
    all[i] = arguments;
    programs[i] = (char*)options.program;
    infos[i] = options.info;
  }
  return MPI_Comm_spawn_multiple(options.commands, programs, all, options.counts, infos, options.root,
                                 MPI_COMM_WORLD, inter, codes);
}

static void Say(int status, MPI_Comm inter, const int* codes) {
  char line[8192], text[MPI_MAX_ERROR_STRING];
  int size = 0, remote = -1, is_inter = -1, total = 0, length, class = MPI_SUCCESS;
  if (status == MPI_SUCCESS) {
    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_test_inter(inter, &is_inter);
    size = snprintf(line, sizeof line, "parent %d: ok remote=%d inter=%d codes=", rank, remote, is_inter);
  } else {
    MPI_Error_class(status, &class);
    MPI_Error_string(status, text, &length);
    size =
        snprintf(line, sizeof line, "parent %d: failed class=%s text=%s codes=", rank, NameOf(class), text);
  }
  for (int i = 0; i < options.commands; ++i) total += options.counts[i] > 0 ? options.counts[i] : 0;
  for (int i = 0; i < total && size < (int)sizeof line - 64; ++i)
    size += snprintf(line + size, sizeof line - (size_t)size, "%s%s", i > 0 ? "," : "",
                     codes[i] == -7 ? "unset" : NameOf(codes[i]));
  puts(line);
  fflush(stdout);
}

static void AwaitFile(void) {
  while (options.stay != NULL && access(options.stay, F_OK) != 0) usleep(20000);
}

static void Round(void) {
  int codes[kMaxCodes], remote = 0;
  MPI_Comm inter = MPI_COMM_NULL;
  for (int i = 0; i < kMaxCodes; ++i) codes[i] = -7;
  const int status = Spawn(&inter, codes);
  Say(status, inter, codes);
  if (status != MPI_SUCCESS) return;
  if (options.parent_waits) {
    AwaitFile();
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_remote_size(inter, &remote);
  if (remote > 0) MPI_Barrier(inter);
  Part(&inter);
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  if (argc > 1 && strcmp(argv[1], "--child-dies") == 0) return 3;
  MPI_Init(&argc, &argv);
  Parse(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  if (strcmp(options.errors, "return") == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(options.errors, "handler") == 0) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(&Handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  }
  const int is_child = parent != MPI_COMM_NULL;
  if (is_child) {
    int size = 0;
    const char* tag = getenv("MPI_SPAWN_TAG");
    struct rlimit files = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    getrlimit(RLIMIT_NOFILE, &files);
    printf("child rank=%d size=%d depth=%d tag=%s files=%lu\n", rank, size, options.depth,
           tag != NULL ? tag : "-", (unsigned long)files.rlim_cur);
    fflush(stdout);
    AwaitFile();
  }
  for (int i = 0; i < options.times && (!is_child || options.depth > 0); ++i) Round();
  if (is_child) {
    MPI_Barrier(parent);
    Part(&parent);
  }
  MPI_Finalize();
  return 0;
}
