#pragma once
// Intercommunicators that msa knows: those between parents and children, and those whose remote group is
// empty.
#include "backend.h"

// `inter` leads to the processes of `nspace`: its MPI_Comm_disconnect is reported to the job daemon. Copies
// (MPI_Comm_dup) count: the last one disconnected is it, and one that was freed instead keeps the two
// connected for ever, as MPI says.
void msa_relate(MPI_Comm inter, const char* nspace);
int msa_disconnect(MPI_Comm* comm);

// An intercommunicator of comm's processes with nobody on the other side. Collective over `comm`. From the
// first one on, MPI_Comm_remote_size and the like look for them.
int msa_empty_inter(MPI_Comm comm, MPI_Comm* inter);
