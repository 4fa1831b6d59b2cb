#define _GNU_SOURCE
#include "spawn_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task.h"

__attribute__((format(printf, 3, 4))) static void Refuse(struct msa_plan* plan, int error, const char* format,
                                                         ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(plan->reason, sizeof plan->reason, format, arguments);
  va_end(arguments);
  plan->decision = kMsaRefused;
  plan->error = error;
}

static void OutOfMemory(struct msa_plan* plan) { Refuse(plan, MPI_ERR_SPAWN, "out of memory"); }

// ------------------------------------------------------------------------------------- what the program
// wants

static char* InfoValue(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1];
  int found = 0;
  if (info == MPI_INFO_NULL) return NULL;
  PMPI_Info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &found);
  return found ? strdup(value) : NULL;
}

static int IsKnown(const char* key) {
  for (int i = 0; i < kMsaKeys; ++i)
    if (strcmp(key, msa_keys[i]) == 0) return 1;
  return 0;
}

// The job daemon names what it does not know in a warning.
static int ReadUnknown(MPI_Info info, struct msa_command* command) {
  int keys = 0;
  PMPI_Info_get_nkeys(info, &keys);
  command->unknown = keys > 0 ? calloc((size_t)keys, sizeof(char*)) : NULL;
  if (keys > 0 && command->unknown == NULL) return -1;
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1];
    PMPI_Info_get_nthkey(info, i, key);
    if (strncmp(key, "msa_", 4) != 0 || IsKnown(key)) continue;
    char* copy = strdup(key);
    if (copy == NULL) return -1;
    command->unknown[command->unknown_count++] = copy;
  }
  return 0;
}

static int ReadCommand(const struct msa_spawn_call* call, int i, struct msa_command* command) {
  command->program = call->commands[i];
  command->maxprocs = (uint32_t)call->maxprocs[i];
  if (call->infos[i] == MPI_INFO_NULL) return 0;
  for (int key = 0; key < kMsaKeys; ++key) command->values[key] = InfoValue(call->infos[i], msa_keys[key]);
  return ReadUnknown(call->infos[i], command);
}

static void FreeCommands(struct msa_command* commands, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    for (int key = 0; key < kMsaKeys; ++key) free(commands[i].values[key]);
    for (uint32_t u = 0; u < commands[i].unknown_count; ++u) free(commands[i].unknown[u]);
    free(commands[i].unknown);
  }
  free(commands);
}

// Errors that Open MPI would find at the root alone, while the other parents wait for ever.
static int Check(const struct msa_spawn_call* call, struct msa_plan* plan) {
  if (call->count < 1)
    Refuse(plan, MPI_ERR_ARG, "count is %d; expected 1 or more commands", call->count);
  else if (call->commands == NULL || call->maxprocs == NULL)
    Refuse(plan, MPI_ERR_ARG, "no array of commands or of maxprocs");
  else if (call->infos == NULL)
    Refuse(plan, MPI_ERR_INFO, "no array of infos; MPI_INFO_NULL stands for no info");
  for (int i = 0; i < call->count && plan->decision != kMsaRefused; ++i) {
    if (call->commands[i] == NULL)
      Refuse(plan, MPI_ERR_ARG, "command %d is NULL", i);
    else if (call->maxprocs[i] < 0)
      Refuse(plan, MPI_ERR_ARG, "maxprocs of '%s' is %d; expected 0 or more", call->commands[i],
             call->maxprocs[i]);
    else if (call->infos[i] == NULL)
      Refuse(plan, MPI_ERR_INFO, "info of '%s' is NULL; MPI_INFO_NULL stands for no info", call->commands[i]);
  }
  return plan->decision == kMsaRefused ? -1 : 0;
}

// -------------------------------------------------------------------------------------------- the answer

static void Progress(void* context) {
  // Looks for a message and takes none: other ranks may need this one's MPI to move before they come here.
  int found;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, *(MPI_Comm*)context, &found, MPI_STATUS_IGNORE);
}

static int Exchange(const struct msa_spawn_call* call, struct msa_plan* plan,
                    const struct msa_command* commands, uint32_t count) {
  struct msa_link_error error;
  struct msa_buffer ask = {0};
  void* payload = NULL;
  size_t size = 0;
  MPI_Comm comm = call->comm;
  char cwd[4096];
  const uint64_t id = msa_link_next_id(plan->link);
  msa_put_ask(&ask, id, commands, count, getcwd(cwd, sizeof cwd), getenv("PATH"));
  int failed = -1;
  if (ask.size > kMsaHeaderBytes + kMsaMaxAsk)
    snprintf(error.text, sizeof error.text, "the commands take %zu bytes, the limit is %d; spawn in parts",
             ask.size - kMsaHeaderBytes, (int)kMsaMaxAsk);
  else if (msa_link_send(plan->link, &ask, &error) == 0)
    failed = msa_link_receive(plan->link, kMsaSpawnVerdict, id, &Progress, &comm, &payload, &size, &error);
  msa_buffer_free(&ask);
  if (failed == 0 && msa_get_verdict(payload, size, &plan->verdict) != 0) {
    failed = -1;
    snprintf(error.text, sizeof error.text, "the job daemon's answer is malformed");
  }
  free(payload);
  if (failed != 0) Refuse(plan, MPI_ERR_SPAWN, "%s", error.text);
  return failed;
}

// The verdict is for those commands that may start at all, in their order.
static int Accept(const struct msa_spawn_call* call, struct msa_plan* plan, uint32_t asked) {
  const struct msa_verdict* v = &plan->verdict;
  if (v->refusal != kMsaRefusedNot) {
    Refuse(plan, v->refusal == kMsaRefusedInfoValue ? MPI_ERR_INFO_VALUE : MPI_ERR_SPAWN, "%s",
           v->reason[0] != '\0' ? v->reason : "refused without a reason");
    return -1;
  }
  int sound = v->count_count == asked && strlen(v->ticket) < sizeof plan->ticket &&
              strlen(v->nspace) < sizeof plan->nspace;
  uint64_t total = 0;
  for (int i = 0, at = 0; sound && i < call->count; ++i) {
    if (call->maxprocs[i] == 0) continue;
    sound = v->counts[at] <= (uint32_t)call->maxprocs[i];
    plan->counts[i] = (int32_t)v->counts[at++];
    total += (uint32_t)plan->counts[i];
  }
  if (!sound || (total > 0 && v->ticket[0] == '\0')) {
    Refuse(plan, MPI_ERR_SPAWN, "the job daemon's answer does not fit the question");
    return -1;
  }
  strcpy(plan->nspace, v->nspace);
  strcpy(plan->ticket, v->ticket);
  return 0;
}

// 0: there is a verdict to start by; -1: decided otherwise.
static int Ask(const struct msa_spawn_call* call, struct msa_plan* plan) {
  struct msa_link_error error;
  uint32_t world_size = 0, asked = 0;
  struct msa_command* commands = calloc((size_t)call->count, sizeof *commands);
  int failed = commands == NULL;
  for (int i = 0; i < call->count && !failed; ++i)
    if (call->maxprocs[i] > 0) failed = ReadCommand(call, i, &commands[asked++]) != 0;
  if (failed) {
    OutOfMemory(plan);
  } else if (asked > 0) {
    plan->link = msa_link_acquire(&world_size, &error);
    failed = plan->link == NULL;
    if (failed) Refuse(plan, MPI_ERR_SPAWN, "%s", error.text);
    // An mpirun inside the job started this process: it is for it to spawn.
    if (!failed && world_size == 0) {
      plan->decision = kMsaPassThrough;
      failed = 1;
    }
    if (!failed) failed = Exchange(call, plan, commands, asked) != 0 || Accept(call, plan, asked) != 0;
  }
  if (commands != NULL) FreeCommands(commands, asked);
  return failed ? -1 : 0;
}

// --------------------------------------------------------------------------------- what Open MPI is told

// The children's environment carries the permission to the job daemon. A program's own `env` may leave no
// room; Open MPI also puts `ompi_param` there.
static int AddTicket(MPI_Info info, struct msa_plan* plan) {
  static const char* const kKeys[] = {"env", "ompi_param"};
  for (int i = 0; i < 2; ++i) {
    char value[MPI_MAX_INFO_VAL];
    char* given = InfoValue(info, kKeys[i]);
    if (i == 1 && given != NULL) {
      free(given);
      break;
    }
    const int size = snprintf(value, sizeof value, "%s%sMSA_SPAWN_TICKET=%s", given != NULL ? given : "",
                              given != NULL ? "\n" : "", plan->ticket);
    free(given);
    if (size < (int)sizeof value) return PMPI_Info_set(info, kKeys[i], value);
  }
  Refuse(plan, MPI_ERR_INFO_VALUE, "info keys 'env' and 'ompi_param' leave no room for msa's own %zu bytes",
         sizeof "\nMSA_SPAWN_TICKET=" + strlen(plan->ticket));
  return -1;
}

static int AddCommand(const struct msa_spawn_call* call, struct msa_plan* plan, int i, uint32_t asked) {
  const struct msa_verdict* v = &plan->verdict;
  const int at = plan->started;
  const char* wdir = asked < v->wdir_count ? v->wdirs[asked] : "";
  char* program = asked < v->program_count ? v->programs[asked] : NULL;
  plan->commands[at] = program != NULL && program[0] != '\0' ? program : call->commands[i];
  plan->argvs[at] = call->argvs != NULL ? call->argvs[i] : MPI_ARGV_NULL;
  plan->maxprocs[at] = plan->counts[i];
  if (call->infos[i] != MPI_INFO_NULL)
    PMPI_Info_dup(call->infos[i], &plan->infos[at]);
  else
    PMPI_Info_create(&plan->infos[at]);
  ++plan->started;
  if (at == 0) {
    char* non_mpi = InfoValue(plan->infos[0], "ompi_non_mpi");
    plan->non_mpi = non_mpi != NULL && (strcmp(non_mpi, "true") == 0 || strcmp(non_mpi, "1") == 0);
    free(non_mpi);
  }
  // A longer directory than an info value holds is known to the job daemon from its own verdict.
  if (wdir[0] != '\0' && strlen(wdir) < MPI_MAX_INFO_VAL) PMPI_Info_set(plan->infos[at], "wdir", wdir);
  return at == 0 ? AddTicket(plan->infos[0], plan) : 0;
}

void msa_plan_make(const struct msa_spawn_call* call, struct msa_plan* plan) {
  memset(plan, 0, sizeof *plan);
  if (Check(call, plan) != 0) return;
  const size_t count = (size_t)call->count;
  plan->counts = calloc(count, sizeof *plan->counts);
  plan->commands = calloc(count, sizeof *plan->commands);
  plan->argvs = calloc(count, sizeof *plan->argvs);
  plan->maxprocs = calloc(count, sizeof *plan->maxprocs);
  plan->infos = calloc(count, sizeof *plan->infos);
  if (!plan->counts || !plan->commands || !plan->argvs || !plan->maxprocs || !plan->infos) {
    OutOfMemory(plan);
    return;
  }
  if (Ask(call, plan) != 0) return;
  uint32_t asked = 0;
  for (int i = 0; i < call->count; ++i) {
    if (call->maxprocs[i] == 0) continue;
    if (plan->counts[i] > 0 && AddCommand(call, plan, i, asked) != 0) return;
    ++asked;
  }
}

static void Withdraw(struct msa_plan* plan) {
  struct msa_link_error error;
  struct msa_buffer message = {0};
  msa_put_text_message(&message, kMsaSpawnWithdraw, plan->ticket);
  // Closing withdraws as well.
  if (msa_link_send(plan->link, &message, &error) == 0)
    msa_link_release(plan->link);
  else
    msa_link_close(plan->link);
  msa_buffer_free(&message);
}

void msa_plan_free(struct msa_plan* plan, enum msa_ticket_use use) {
  if (plan->link != NULL && plan->ticket[0] != '\0' && use == kMsaNotUsed)
    Withdraw(plan);
  else if (plan->link != NULL && (plan->verdict.reason != NULL || plan->decision == kMsaPassThrough))
    msa_link_release(plan->link);  // answered in full: good for the next question
  else
    msa_link_close(plan->link);
  for (int i = 0; i < plan->started; ++i) PMPI_Info_free(&plan->infos[i]);
  free(plan->counts);
  free(plan->commands);
  free(plan->argvs);
  free(plan->maxprocs);
  free(plan->infos);
  msa_verdict_free(&plan->verdict);
}
