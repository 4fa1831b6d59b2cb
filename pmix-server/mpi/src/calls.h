#pragma once
// The MPI calls that libmsampi interposes, once, as a list. The preload knows no mpi.h: it passes handles on
// as pointers, which is right for Open MPI (pointers) and MPICH (int) alike, since both travel in one
// register or one stack slot. The libraries of each MPI define these types and those of win_calls.h before
// they include this.

#include <stdint.h>

#ifndef MSA_COMM
#define MSA_COMM void*
#define MSA_GROUP void*
#define MSA_INFO void*
#endif

#include "win_calls.h"

// X(name without MPI_, parameters, arguments)
// clang-format off
#define MSA_CALLS(X)                                                                                          \
  X(Init, (int* argc, char*** argv), (argc, argv))                                                            \
  X(Init_thread, (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided))    \
  X(Finalize, (void), ())                                                                                     \
  X(Comm_spawn, (const char* command, char** argv, int maxprocs, MSA_INFO info, int root, MSA_COMM comm,      \
                 MSA_COMM* inter, int* codes),                                                                \
    (command, argv, maxprocs, info, root, comm, inter, codes))                                                \
  X(Comm_spawn_multiple, (int count, char** commands, char*** argvs, const int* maxprocs,                     \
                          const MSA_INFO* infos, int root, MSA_COMM comm, MSA_COMM* inter, int* codes),       \
    (count, commands, argvs, maxprocs, infos, root, comm, inter, codes))                                      \
  X(Comm_disconnect, (MSA_COMM* comm), (comm))                                                                \
  X(Comm_remote_size, (MSA_COMM comm, int* size), (comm, size))                                               \
  X(Comm_remote_group, (MSA_COMM comm, MSA_GROUP* group), (comm, group))                                      \
  X(Comm_test_inter, (MSA_COMM comm, int* flag), (comm, flag))                                                \
  X(Intercomm_merge, (MSA_COMM comm, int high, MSA_COMM* merged), (comm, high, merged))                       \
  X(Error_string, (int code, char* text, int* length), (code, text, length))                                  \
  MSA_WIN_CALLS(X)
// clang-format on

#define MSA_MEMBER(name, params, args) int(*name) params;
struct msa_calls {
  MSA_CALLS(MSA_MEMBER)
};
#undef MSA_MEMBER

// Grows by one with any change here: a preload and a library of different installations do not mix.
#define MSA_BACKEND_VERSION 3u

// What the preload tells the library of one MPI.
struct msa_host {
  uint32_t version;
  struct msa_calls real;  // the MPI's own PMPI_*
  // How often this thread has entered PMIx_Connect: tells how far a failed spawn came.
  unsigned (*connects)(void);
};

// What the library of one MPI gives back; lives as long as the process. It may exchange a call later, with
// one atomic store, for one that does the same to everything that exists so far: what is rare costs nothing
// before.
struct msa_backend {
  uint32_t version;
  struct msa_calls calls;
  int (*booster_alloc)(MSA_COMM spawners, int hosts, int processes_per_host, MSA_COMM* inter);
  int (*booster_free)(MSA_COMM* inter);
  // MPI_Win_get_attr of Fortran: 1 if it was answered, with MPI_SUCCESS.
  int (*win_attribute_of)(const int* fortran_win, int key, intptr_t* value, int* flag);
};

// The one symbol that libmsampi-openmpi.so and libmsampi-mpich.so export. NULL: wrong version.
#define MSA_BACKEND_SYMBOL "msa_mpi_backend"
typedef const struct msa_backend* (*msa_backend_entry)(const struct msa_host* host);
