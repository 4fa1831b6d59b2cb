#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inter.h"
#include "refusal.h"
#include "relations.h"
#include "spawn_plan.h"
#include "task.h"

// Commands whose numbers travel with the verdict itself; more take a second broadcast.
enum { kInline = 32 };

struct numbers {
  int32_t maxprocs, count;
};

// What the root tells the other parents.
struct verdict {
  int32_t decision, error, non_mpi, commands;
  char nspace[256];
  char reason[MPI_MAX_ERROR_STRING];
  struct numbers numbers[kInline];
};

// Waits without spinning: nodes may come in minutes.
static int WaitFor(MPI_Request* request) {
  const int64_t begin = msa_now_ns();
  for (;;) {
    int done = 0;
    const int failed = PMPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (failed != MPI_SUCCESS || done) return failed;
    const struct timespec pause = {0, msa_pause_ns(msa_now_ns() - begin)};
    nanosleep(&pause, NULL);
  }
}

static int Broadcast(const struct msa_spawn_call* call, void* bytes, size_t size) {
  MPI_Request request;
  if (call->size == 1) return MPI_SUCCESS;
  const int failed = PMPI_Ibcast(bytes, (int)size, MPI_BYTE, call->root, call->comm, &request);
  return failed != MPI_SUCCESS ? failed : WaitFor(&request);
}

// The root's verdict to all; *numbers points into it or is to be freed.
static int Share(const struct msa_spawn_call* call, const struct msa_plan* plan, struct verdict* verdict,
                 struct numbers** numbers) {
  const int is_root = call->rank == call->root;
  *numbers = verdict->numbers;
  if (is_root) {
    memset(verdict, 0, sizeof *verdict);
    verdict->decision = (int32_t)plan->decision;
    verdict->error = plan->error;
    verdict->non_mpi = plan->non_mpi;
    verdict->commands = call->count > 0 && call->maxprocs != NULL ? call->count : 0;
    memcpy(verdict->nspace, plan->nspace, sizeof verdict->nspace);
    memcpy(verdict->reason, plan->reason, sizeof verdict->reason);
  }
  const size_t more = is_root && verdict->commands > kInline ? (size_t)verdict->commands : 0;
  if (more > 0) *numbers = calloc(more, sizeof **numbers);
  if (more > 0 && *numbers == NULL) return MPI_ERR_NO_MEM;
  for (int i = 0; is_root && i < verdict->commands; ++i) {
    (*numbers)[i].maxprocs = call->maxprocs[i] > 0 ? call->maxprocs[i] : 0;
    (*numbers)[i].count = plan->decision == kMsaStart ? plan->counts[i] : 0;
  }
  int failed = Broadcast(call, verdict, sizeof *verdict);
  if (failed != MPI_SUCCESS || verdict->commands <= kInline) return failed;
  if (!is_root) *numbers = calloc((size_t)verdict->commands, sizeof **numbers);
  if (*numbers == NULL) return MPI_ERR_NO_MEM;
  return Broadcast(call, *numbers, (size_t)verdict->commands * sizeof **numbers);
}

static int Total(const struct verdict* verdict, const struct numbers* numbers) {
  int total = 0;
  for (int i = 0; i < verdict->commands; ++i) total += numbers[i].count;
  return total;
}

enum outcome { kStarted, kFailed };

static void FillCodes(int* codes, const struct verdict* verdict, const struct numbers* numbers,
                      enum outcome outcome) {
  if (codes == MPI_ERRCODES_IGNORE) return;
  for (int i = 0; i < verdict->commands; ++i)
    for (int32_t p = 0; p < numbers[i].maxprocs; ++p)
      *codes++ = outcome == kStarted && p < numbers[i].count ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

// ----------------------------------------------------------------------------------------------- the start

// Open MPI 4.1.4: a root whose launch fails, or whose children die before they connect, leaves the other
// parents waiting for a length and a list of the children. It gets "0.0", a process of no namespace, which
// Open MPI gives up on. Other versions differ and get nothing.
static void ReleaseParents(const struct msa_spawn_call* call) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  char nobody[] = "0.0";
  int length = sizeof nobody;
  if (call->size == 1 || PMPI_Get_library_version(version, &length) != MPI_SUCCESS) return;
  if (strncmp(version, "Open MPI v4.1.4,", 16) != 0) return;
  length = sizeof nobody;
  PMPI_Bcast(&length, 1, MPI_INT, call->root, call->comm);
  PMPI_Bcast(nobody, length, MPI_BYTE, call->root, call->comm);
}

static int Call(const struct msa_spawn_call* call, const struct msa_plan* plan, int is_multiple,
                MPI_Comm* inter) {
  const struct msa_calls* real = &msa_host_calls()->real;
  const int is_root = call->rank == call->root;
  if (!is_multiple)
    return real->Comm_spawn(is_root ? plan->commands[0] : "", is_root ? plan->argvs[0] : MPI_ARGV_NULL,
                            is_root ? plan->maxprocs[0] : 1, is_root ? plan->infos[0] : MPI_INFO_NULL,
                            call->root, call->comm, inter, MPI_ERRCODES_IGNORE);
  return real->Comm_spawn_multiple(is_root ? plan->started : 0, is_root ? plan->commands : NULL,
                                   is_root && call->argvs != NULL ? plan->argvs : MPI_ARGVS_NULL,
                                   is_root ? plan->maxprocs : NULL, is_root ? plan->infos : NULL, call->root,
                                   call->comm, inter, MPI_ERRCODES_IGNORE);
}

static const char kNotReached[] =
    "permitted, but its processes could not be started or ended before they had connected; the step's stderr "
    "says why, or nothing if they exited with code 0 without MPI_Init";

// Errors come back here first, so that all parents have failed before anyone's handler ends the job.
static int Start(const struct msa_spawn_call* call, const struct msa_plan* plan,
                 const struct verdict* verdict, int is_multiple, MPI_Comm* inter) {
  const unsigned connects = msa_host_calls()->connects();
  MPI_Errhandler handler;
  *inter = MPI_COMM_NULL;
  PMPI_Comm_get_errhandler(call->comm, &handler);
  PMPI_Comm_set_errhandler(call->comm, MPI_ERRORS_RETURN);
  int failed = Call(call, plan, is_multiple, inter) != MPI_SUCCESS;
  if (!failed && *inter == MPI_COMM_NULL && !verdict->non_mpi) failed = 1;
  if (failed && call->rank == call->root) {
    msa_say("%s: %s", call->name, kNotReached);
    if (msa_host_calls()->connects() == connects) ReleaseParents(call);
  }
  PMPI_Comm_set_errhandler(call->comm, handler);
  PMPI_Errhandler_free(&handler);
  if (failed) {
    *inter = MPI_COMM_NULL;
    return -1;
  }
  if (*inter != MPI_COMM_NULL && verdict->nspace[0] != '\0') msa_relate(*inter, verdict->nspace);
  return 0;
}

// --------------------------------------------------------------------------------------------- the calls

static void SayRefused(const struct msa_spawn_call* call, const struct msa_plan* plan) {
  const char* whole = plan->verdict.reason;  // MPI's limit for error strings may have cut the other
  msa_say("%s: %s", call->name, whole != NULL && whole[0] != '\0' ? whole : plan->reason);
}

enum { kPass = -1 };  // no error code: the MPI itself answers the call

static int Decide(const struct msa_spawn_call* call, struct msa_plan* plan, int is_multiple, MPI_Comm* inter,
                  int* codes) {
  struct verdict verdict;
  struct numbers* numbers = NULL;
  int result = Share(call, plan, &verdict, &numbers);
  if (result != MPI_SUCCESS) {
    // The communicator itself is broken; Open MPI's own handler has seen it.
  } else if (verdict.decision == kMsaPassThrough) {
    result = kPass;
  } else if (verdict.decision == kMsaRefused) {
    *inter = MPI_COMM_NULL;
    FillCodes(codes, &verdict, numbers, kFailed);
    result = msa_refuse(call->comm, verdict.error, verdict.reason);
  } else if (Total(&verdict, numbers) == 0) {
    FillCodes(codes, &verdict, numbers, kStarted);
    result = msa_inter_make(call->comm, NULL, inter);
  } else if (Start(call, plan, &verdict, is_multiple, inter) == 0) {
    FillCodes(codes, &verdict, numbers, kStarted);
  } else {
    FillCodes(codes, &verdict, numbers, kFailed);
    result = msa_refuse(call->comm, MPI_ERR_SPAWN, kNotReached);
  }
  if (numbers != verdict.numbers) free(numbers);
  if (result == MPI_SUCCESS) msa_refusal_set(MPI_SUCCESS, NULL);
  return result;
}

// kPass: not for msa.
static int Run(struct msa_spawn_call* call, int is_multiple, MPI_Comm* inter, int* codes) {
  const struct msa_calls* real = &msa_host_calls()->real;
  int is_inter = 0;
  if (!msa_task_get()->active || call->comm == MPI_COMM_NULL || call->comm == NULL || inter == NULL)
    return kPass;
  if (real->Comm_test_inter(call->comm, &is_inter) != MPI_SUCCESS || is_inter) return kPass;
  PMPI_Comm_rank(call->comm, &call->rank);
  PMPI_Comm_size(call->comm, &call->size);
  if (call->root < 0 || call->root >= call->size) return kPass;
  struct msa_plan plan = {0};
  if (call->rank == call->root) {
    msa_plan_make(call, &plan);
    if (plan.decision == kMsaRefused) SayRefused(call, &plan);
  }
  const int result = Decide(call, &plan, is_multiple, inter, codes);
  msa_plan_free(&plan, result == MPI_SUCCESS ? kMsaUsed : kMsaNotUsed);
  return result;
}

int msa_spawn(const char* command, char** argv, int maxprocs, MPI_Info info, int root, MPI_Comm comm,
              MPI_Comm* inter, int* codes) {
  char* commands[] = {(char*)command};
  struct msa_spawn_call call = {.name = "MPI_Comm_spawn",
                                .count = 1,
                                .commands = commands,
                                .argvs = &argv,
                                .maxprocs = &maxprocs,
                                .infos = &info,
                                .root = root,
                                .comm = comm};
  const int result = Run(&call, 0, inter, codes);
  if (result != kPass) return result;
  return msa_host_calls()->real.Comm_spawn(command, argv, maxprocs, info, root, comm, inter, codes);
}

int msa_spawn_multiple(int count, char** commands, char*** argvs, const int* maxprocs, const MPI_Info* infos,
                       int root, MPI_Comm comm, MPI_Comm* inter, int* codes) {
  struct msa_spawn_call call = {.name = "MPI_Comm_spawn_multiple",
                                .count = count,
                                .commands = commands,
                                .argvs = argvs,
                                .maxprocs = maxprocs,
                                .infos = infos,
                                .root = root,
                                .comm = comm};
  const int result = Run(&call, 1, inter, codes);
  if (result != kPass) return result;
  return msa_host_calls()->real.Comm_spawn_multiple(count, commands, argvs, maxprocs, infos, root, comm,
                                                    inter, codes);
}
