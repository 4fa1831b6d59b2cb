#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "refusal.h"
#include "task.h"
#include "window.h"

int msa_class_of_nam(int nam_error) {
  switch (nam_error) {
    case MSA_NAM_OK:
      return MPI_SUCCESS;
    case MSA_NAM_ERR_ARG:
      return MPI_ERR_ARG;
    case MSA_NAM_ERR_NOT_FOUND:
      return MPI_ERR_PORT;
    case MSA_NAM_ERR_DENIED:
      return MPI_ERR_ACCESS;
    case MSA_NAM_ERR_RANGE:
      return MPI_ERR_RMA_RANGE;
    case MSA_NAM_ERR_NO_SPACE:
      return MPI_ERR_NO_MEM;
    case MSA_NAM_ERR_EXISTS:
      return MPI_ERR_INFO_VALUE;
    case MSA_NAM_ERR_BUSY:
      return MPI_ERR_RMA_CONFLICT;
    case MSA_NAM_ERR_STALE:
      return MPI_ERR_WIN;
    case MSA_NAM_ERR_INTERNAL:
      return MPI_ERR_INTERN;
    default:
      return MPI_ERR_OTHER;
  }
}

static void SayIfFatal(int failed, MPI_Errhandler handler, const char* text) {
  if (failed != MPI_SUCCESS) return;
  if (handler == MPI_ERRORS_ARE_FATAL) msa_say("%s", text);
  PMPI_Errhandler_free(&handler);
}

int msa_window_error(struct msa_window* window, int code, const char* format, ...) {
  char text[MPI_MAX_ERROR_STRING];
  MPI_Errhandler handler;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const int failed = PMPI_Win_get_errhandler(window->win, &handler);
  SayIfFatal(failed, handler, text);
  msa_refusal_set(code, text);
  PMPI_Win_call_errhandler(window->win, code);
  return code;
}

int msa_window_nam_error(struct msa_window* window, const char* call, int nam_error) {
  return msa_window_error(window, msa_class_of_nam(nam_error), "%s: %s", call, msa_nam.error_text());
}

int msa_comm_error(MPI_Comm comm, int code, const char* text) {
  MPI_Errhandler handler;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const int failed = PMPI_Comm_get_errhandler(comm, &handler);
  if (rank == 0)
    SayIfFatal(failed, handler, text);
  else if (failed == MPI_SUCCESS)
    PMPI_Errhandler_free(&handler);
  PMPI_Barrier(comm);  // said before the first error handler aborts
  return msa_refuse(comm, code, text);
}

// -------------------------------------------------------------------------------------------- agreement

void msa_verdict_set(struct msa_verdict* verdict, int code, const char* format, ...) {
  va_list arguments;
  if (verdict->code != MPI_SUCCESS) return;  // the first reason is the reason
  va_start(arguments, format);
  vsnprintf(verdict->text, sizeof verdict->text, format, arguments);
  va_end(arguments);
  verdict->code = code;
}

void msa_verdict_nam(struct msa_verdict* verdict, const char* call, int nam_error) {
  if (nam_error != MSA_NAM_OK)
    msa_verdict_set(verdict, msa_class_of_nam(nam_error), "%s: %s", call, msa_nam.error_text());
}

void msa_agree(MPI_Comm comm, struct msa_verdict* verdict) {
  struct {
    int failed, rank;
  } mine, worst;
  mine.failed = verdict->code != MPI_SUCCESS;
  PMPI_Comm_rank(comm, &mine.rank);
  PMPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, comm);
  if (worst.failed) PMPI_Bcast(verdict, (int)sizeof *verdict, MPI_BYTE, worst.rank, comm);
}
