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
  return code == MPI_ERR_SPAWN        ? "MPI_ERR_SPAWN"
         : code == MPI_ERR_INFO_VALUE ? "MPI_ERR_INFO_VALUE"
         : code == MPI_ERR_INFO       ? "MPI_ERR_INFO"
                                      : "MPI_ERR_ARG";
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
