// What the libraries of all MPIs have in common: the entry, MPI_Init's check, deep_booster_alloc.
#include "backend.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leave.h"
#include "refusal.h"
#include "task.h"
#include "window.h"

static struct msa_host host;
static struct msa_backend backend;

const struct msa_host* msa_host_calls(void) { return &host; }
struct msa_calls* msa_backend_calls(void) {
  return &backend.calls;
}

__attribute__((visibility("default"))) const struct msa_backend* msa_mpi_backend(
    const struct msa_host* given);
const struct msa_backend* msa_mpi_backend(const struct msa_host* given) {
  if (given->version != MSA_BACKEND_VERSION) return NULL;
  host = *given;
  backend.version = MSA_BACKEND_VERSION;
  backend.calls = host.real;
  backend.calls.Comm_connect = &msa_comm_connect;
  backend.calls.Win_allocate = &msa_win_allocate;
  backend.calls.Win_allocate_c = &msa_win_allocate_c;
  backend.calls.Win_create_dynamic = &msa_win_create_dynamic;
  backend.calls.Win_get_attr = &msa_win_get_attr;
  backend.win_attribute_of = &msa_win_attribute_of;
  msa_override(&backend.calls);
  backend.booster_alloc = &msa_booster_alloc;
  backend.booster_free = &msa_booster_free;
  return &backend;
}

// ------------------------------------------------------------------------------------------- MPI_Init

// 125: the launcher failed, not the program.
enum { kLauncherFailed = 125 };

void msa_check_world(void) {
  const struct msa_task* task = msa_task_get();
  int size = 0;
  if (!task->active || task->world_size <= 1) return;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 1) return;
  msa_say(
      "MPI_COMM_WORLD has 1 process where the step has %ld: this one did not find the job daemon and runs "
      "alone; keep PMIX_* and PMI_* of its environment, and use Debian's Open MPI (libpmix.so.2) or MPICH",
      task->world_size);
  PMPI_Abort(MPI_COMM_WORLD, kLauncherFailed);
}

int msa_init(int* argc, char*** argv) {
  msa_leave_on_order();
  const int failed = host.real.Init(argc, argv);
  if (failed == MPI_SUCCESS) {
    msa_check_world();
    msa_after_init();
  }
  return failed;
}

int msa_init_thread(int* argc, char*** argv, int required, int* provided) {
  msa_leave_on_order();
  const int failed = host.real.Init_thread(argc, argv, required, provided);
  if (failed == MPI_SUCCESS) {
    msa_check_world();
    msa_after_init();
  }
  return failed;
}

// ------------------------------------------------------------------------------------- deep_booster_alloc

// The words of this process's command line, in one block; NULL if it cannot be read.
static char* ReadCommandLine(size_t* size) {
  FILE* file = fopen("/proc/self/cmdline", "rb");
  if (file == NULL) return NULL;
  char* text = NULL;
  size_t capacity = 0;
  for (*size = 0;;) {
    if (capacity - *size < 4096) {
      char* more = realloc(text, capacity += 16384);
      if (more == NULL) break;
      text = more;
    }
    const size_t got = fread(text + *size, 1, capacity - *size - 1, file);
    if (got == 0) break;
    *size += got;
  }
  fclose(file);
  if (text != NULL) text[*size] = '\0';
  return text;
}

// The words after the first, ended by NULL; to be freed, the words stay in `text`.
static char** Arguments(char* text, size_t size) {
  size_t count = 0;
  for (size_t at = 0; at < size; at += strlen(text + at) + 1) ++count;
  char** words = calloc(count + 1, sizeof *words);
  if (words == NULL) return NULL;
  size_t word = 0;
  for (size_t at = strlen(text) + 1; at < size; at += strlen(text + at) + 1) words[word++] = text + at;
  return words;
}

static int SpawnSelf(MPI_Comm spawners, int hosts, int processes_per_host, MPI_Comm* inter) {
  size_t size = 0;
  char number[16];
  char* text = ReadCommandLine(&size);
  char** arguments = text != NULL ? Arguments(text, size) : NULL;
  // What cannot be read is no program: all spawners get the refusal of it.
  const char* program = arguments != NULL ? text : "";
  MPI_Info info;
  PMPI_Info_create(&info);
  PMPI_Info_set(info, "arch", "booster");
  snprintf(number, sizeof number, "%d", hosts);
  PMPI_Info_set(info, "msa_nodes", number);
  snprintf(number, sizeof number, "%d", processes_per_host);
  PMPI_Info_set(info, "msa_ppn", number);
  const int result = backend.calls.Comm_spawn(program, arguments, hosts * processes_per_host, info, 0,
                                              spawners, inter, MPI_ERRCODES_IGNORE);
  PMPI_Info_free(&info);
  free(arguments);
  free(text);
  return result;
}

int msa_booster_alloc(MPI_Comm spawners, int hosts, int processes_per_host, MPI_Comm* inter) {
  if (hosts < 1 || processes_per_host < 1 || hosts > INT_MAX / processes_per_host) {
    char reason[160];
    snprintf(reason, sizeof reason,
             "deep_booster_alloc: %d hosts with %d processes each; expected 1 or more of both", hosts,
             processes_per_host);
    *inter = MPI_COMM_NULL;
    return msa_refuse(spawners, MPI_ERR_ARG, reason);
  }
  return SpawnSelf(spawners, hosts, processes_per_host, inter);
}

int msa_booster_free(MPI_Comm* inter) { return backend.calls.Comm_disconnect(inter); }
