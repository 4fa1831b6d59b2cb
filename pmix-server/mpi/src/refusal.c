#include "refusal.h"

#include <stdio.h>
#include <string.h>

static _Thread_local struct {
  int code;
  char reason[MPI_MAX_ERROR_STRING];
} last = {MPI_SUCCESS, ""};

void msa_refusal_set(int code, const char* reason) {
  last.code = reason != NULL ? code : MPI_SUCCESS;
  snprintf(last.reason, sizeof last.reason, "%s", reason != NULL ? reason : "");
}

int msa_refuse(MPI_Comm comm, int code, const char* reason) {
  msa_refusal_set(code, reason);
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

static const char* NameOf(int code) {
  static const struct {
    int code;
    const char* name;
  } kNames[] = {
#define NAME(code) {code, #code}
      NAME(MPI_ERR_SPAWN),      NAME(MPI_ERR_INFO_VALUE), NAME(MPI_ERR_INFO),         NAME(MPI_ERR_ARG),
      NAME(MPI_ERR_PORT),       NAME(MPI_ERR_NO_MEM),     NAME(MPI_ERR_RMA_RANGE),    NAME(MPI_ERR_RMA_SYNC),
      NAME(MPI_ERR_RMA_ATTACH), NAME(MPI_ERR_ACCESS),     NAME(MPI_ERR_RMA_CONFLICT), NAME(MPI_ERR_WIN),
      NAME(MPI_ERR_TYPE),       NAME(MPI_ERR_OP),         NAME(MPI_ERR_RANK),         NAME(MPI_ERR_COUNT),
      NAME(MPI_ERR_SIZE),       NAME(MPI_ERR_DISP),       NAME(MPI_ERR_COMM),         NAME(MPI_ERR_LOCKTYPE),
      NAME(MPI_ERR_INTERN),     NAME(MPI_ERR_OTHER),      NAME(MPI_ERR_GROUP),
#undef NAME
  };
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i)
    if (kNames[i].code == code) return kNames[i].name;
  return "MPI error";
}

int msa_error_string(int code, char* text, int* length) {
  if (last.code == MPI_SUCCESS || code != last.code)
    return msa_host_calls()->real.Error_string(code, text, length);
  char whole[MPI_MAX_ERROR_STRING + 32];
  snprintf(whole, sizeof whole, "%s: %s", NameOf(code), last.reason);
  snprintf(text, MPI_MAX_ERROR_STRING, "%.*s", MPI_MAX_ERROR_STRING - 1, whole);
  *length = (int)strlen(text);
  return MPI_SUCCESS;
}
