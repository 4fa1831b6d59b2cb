#pragma once
// What the sources of one MPI's library share. Calls that the preload interposes go through `real`: by their
// names they would come back here. All others are plain PMPI calls.

#include <mpi.h>

#define MSA_COMM MPI_Comm
#define MSA_GROUP MPI_Group
#define MSA_INFO MPI_Info
#define MSA_WIN MPI_Win
#define MSA_TYPE MPI_Datatype
#define MSA_OP MPI_Op
#define MSA_REQUEST MPI_Request
#include "calls.h"

const struct msa_host* msa_host_calls(void);
// What the preload calls; to exchange one: __atomic_store_n.
struct msa_calls* msa_backend_calls(void);

// After MPI_Init: ends a step whose processes do not know of each other.
void msa_check_world(void);
// MPI_Init and MPI_Init_thread with the check, for an MPI that needs nothing more.
int msa_init(int* argc, char*** argv);
int msa_init_thread(int* argc, char*** argv, int required, int* provided);

int msa_booster_alloc(MPI_Comm spawners, int hosts, int processes_per_host, MPI_Comm* inter);
int msa_booster_free(MPI_Comm* inter);

// The list of the MPI at hand, filled in by openmpi.c or mpich.c from the MPI's own.
void msa_override(struct msa_calls* calls);
// Between MPI_Init and the program: communicators that this process is born with.
void msa_after_init(void);
