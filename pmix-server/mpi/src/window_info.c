// The info and the attributes of NAM windows.
#include <msa_mpi.h>
#include <stdio.h>
#include <string.h>

#include "refusal.h"
#include "window.h"

void msa_info_value(MPI_Info info, const char* key, const char* fallback, char* value, int size) {
  int found = 0;
  value[0] = '\0';
  if (info == MPI_INFO_NULL) return;
  PMPI_Info_get(info, key, size - 1, value, &found);
  if (!found && fallback != NULL) PMPI_Info_get(info, fallback, size - 1, value, &found);
  if (!found) value[0] = '\0';
}

enum msa_kind msa_memory_kind(MPI_Info info, char* text, const char** key) {
  static const char* const kKeys[] = {MSA_INFO_MEM_KIND, "msa_mem_kind"};
  enum msa_kind kind = kMsaOrdinary;
  for (int i = 0; i < 2; ++i) {
    *key = kKeys[i];
    msa_info_value(info, kKeys[i], NULL, text, 64);
    if (text[0] == '\0') continue;
    const char* word = strncmp(text, "deep_", 5) == 0 ? text + 5 : text;
    const enum msa_kind this = strcmp(word, "nam") == 0              ? kMsaNam
                               : strcmp(word, "nam_persistent") == 0 ? kMsaNamPersistent
                                                                     : kMsaBadKind;
    // The MPI's own memory instead would be gone with the program that meant to keep it.
    if (this == kMsaBadKind) return this;
    if (kind == kMsaOrdinary) kind = this;
  }
  return kind;
}

int msa_win_get_group(MPI_Win win, MPI_Group* group) {
  struct msa_window* window = msa_window_of(win);
  if (window == NULL) return msa_host_calls()->real.Win_get_group(win, group);
  return PMPI_Comm_group(window->comm, group);
}

int msa_win_get_info(MPI_Win win, MPI_Info* info) {
  struct msa_window* window = msa_window_of(win);
  const int failed = msa_host_calls()->real.Win_get_info(win, info);
  if (window == NULL || failed != MPI_SUCCESS) return failed;
  PMPI_Info_set(*info, MSA_INFO_MEM_KIND, window->is_persistent ? "deep_nam_persistent" : "deep_nam");
  PMPI_Info_set(*info, "msa_mem_kind", window->is_persistent ? "nam_persistent" : "nam");
  PMPI_Info_set(*info, MSA_INFO_WIN_PORT_NAME, window->region->port);
  PMPI_Info_set(*info, MSA_INFO_WIN_NAME, window->region->name);
  return MPI_SUCCESS;
}

// Collective, as MPI says. The lifetime changes at once for one that is kept, so that a job that is killed
// leaves what it said; one that is to go goes at MPI_Win_free.
int msa_win_set_info(MPI_Win win, MPI_Info info) {
  struct msa_window* window = msa_window_of(win);
  struct msa_verdict verdict = {0};
  const char* key;
  char text[64];
  if (window == NULL) return msa_host_calls()->real.Win_set_info(win, info);
  const enum msa_kind kind = msa_memory_kind(info, text, &key);
  if (kind == kMsaBadKind)
    return msa_window_error(window, MPI_ERR_INFO_VALUE, MSA_BAD_KIND, "MPI_Win_set_info", key, text);
  if (kind == kMsaNamPersistent && !window->is_persistent && window->rank == 0)
    msa_verdict_nam(&verdict, "MPI_Win_set_info",
                    msa_nam.set_lifetime(window->region->handle, MSA_NAM_PERSISTENT));
  if (kind == kMsaNamPersistent && !window->is_persistent) msa_agree(window->comm, &verdict);
  if (verdict.code != MPI_SUCCESS) return msa_window_error(window, verdict.code, "%s", verdict.text);
  if (kind != kMsaOrdinary) window->is_persistent = kind == kMsaNamPersistent;
  return msa_host_calls()->real.Win_set_info(win, info);
}

// What an attribute points to, and whether Fortran gets the address itself.
static const void* Attribute(struct msa_window* window, int key, int* is_address, size_t* size) {
  *is_address = 0;
  *size = sizeof(int);
  if (key == MPI_WIN_BASE || key == MPIX_WIN_SIZES || key == MPIX_WIN_DISP_UNITS) *is_address = 1;
  if (key == MPI_WIN_SIZE) *size = sizeof(MPI_Aint);
  return key == MPI_WIN_BASE            ? window->base
         : key == MPI_WIN_SIZE          ? (void*)&window->bytes
         : key == MPI_WIN_DISP_UNIT     ? (void*)&window->unit
         : key == MPI_WIN_CREATE_FLAVOR ? (void*)&window->create_flavor
         : key == MPI_WIN_MODEL         ? (void*)&window->model
         : key == MPIX_WIN_SIZES        ? (void*)window->region->bytes
         : key == MPIX_WIN_DISP_UNITS   ? (void*)window->region->units
                                        : NULL;
}

static int IsKnown(int key) {
  return key == MPI_WIN_BASE || key == MPI_WIN_SIZE || key == MPI_WIN_DISP_UNIT ||
         key == MPI_WIN_CREATE_FLAVOR || key == MPI_WIN_MODEL || key == MPIX_WIN_SIZES ||
         key == MPIX_WIN_DISP_UNITS;
}

int msa_win_get_attr(MPI_Win win, int key, void* value, int* flag) {
  struct msa_window* window = msa_window_of(win);
  int is_address;
  size_t size;
  if (window == NULL || !IsKnown(key)) {
    // A window of the MPI's own has no such attributes, but its keyvals are none of the MPI's.
    if (key != MPIX_WIN_SIZES && key != MPIX_WIN_DISP_UNITS)
      return msa_host_calls()->real.Win_get_attr(win, key, value, flag);
    *flag = 0;
    return MPI_SUCCESS;
  }
  *(const void**)value = Attribute(window, key, &is_address, &size);
  *flag = 1;
  return MPI_SUCCESS;
}

int msa_win_attribute_of(const int* fortran_win, int key, intptr_t* value, int* flag) {
  struct msa_window* window = msa_window_of(PMPI_Win_f2c(*fortran_win));
  int is_address;
  size_t size;
#ifdef MPICH_VERSION
  // The predefined ones are one more in mpif.h than in mpi.h.
  if (key == MPI_WIN_BASE + 1 || key == MPI_WIN_SIZE + 1 || key == MPI_WIN_DISP_UNIT + 1 ||
      key == MPI_WIN_CREATE_FLAVOR + 1 || key == MPI_WIN_MODEL + 1)
    --key;
#endif
  if (window == NULL || !IsKnown(key)) {
    *flag = 0;
    return key == MPIX_WIN_SIZES || key == MPIX_WIN_DISP_UNITS;
  }
  const void* at = Attribute(window, key, &is_address, &size);
  *value = is_address ? (intptr_t)at : size == sizeof(int) ? *(const int*)at : *(const MPI_Aint*)at;
  *flag = 1;
  return 1;
}

int msa_win_attach(MPI_Win win, void* base, long size) {
  struct msa_window* window = msa_window_of(win);
  if (window == NULL) return msa_host_calls()->real.Win_attach(win, base, size);
  return msa_window_error(window, MPI_ERR_RMA_ATTACH,
                          "MPI_Win_attach: the window is a region of network attached memory, to which no "
                          "memory of the process can be attached");
}
