// Fortran's MPI_Win_get_attr. Open MPI: mpi_win_get_attr_ of mpif.h and `use mpi`, pmpi_win_get_attr_ also of
// mpi_f08. MPICH: all three end in MPII_Win_get_attr of its C library.
#define _GNU_SOURCE
#include "fortran.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

enum { kNoMpi = 16 };  // MPI_ERR_OTHER of Open MPI, an error in all

typedef void (*fortran_function)(int* win, int* key, intptr_t* value, int* flag, int* error);
typedef int (*mpich_function)(int win, int key, void* value, int* flag, int type);

static void* Next(const char* name) {
  void* next = dlsym(RTLD_NEXT, name);
  if (next == NULL) fprintf(stderr, "msa: %s called, but the MPI library that has it is not loaded\n", name);
  return next;
}

// .true. of gfortran, and of Open MPI and MPICH as Debian builds them, is 1.
static void GetAttribute(const char* name, int* win, int* key, intptr_t* value, int* flag, int* error) {
  if (msa_fortran_attribute(win, *key, value, flag)) {
    *error = 0;
    return;
  }
  fortran_function real;
  *(void**)&real = Next(name);
  if (real != NULL)
    real(win, key, value, flag, error);
  else
    *error = kNoMpi;
}

#define DEFINE(name)                                                            \
  EXPORT void name(int* win, int* key, intptr_t* value, int* flag, int* error); \
  void name(int* win, int* key, intptr_t* value, int* flag, int* error) {       \
    GetAttribute(#name, win, key, value, flag, error);                          \
  }
DEFINE(mpi_win_get_attr_)
DEFINE(pmpi_win_get_attr_)

EXPORT int MPII_Win_get_attr(int win, int key, void* value, int* flag, int type);
int MPII_Win_get_attr(int win, int key, void* value, int* flag, int type) {
  if (msa_fortran_attribute(&win, key, value, flag)) return 0;
  mpich_function real;
  *(void**)&real = Next("MPII_Win_get_attr");
  return real != NULL ? real(win, key, value, flag, type) : kNoMpi;
}
