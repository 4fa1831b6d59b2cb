#pragma once
// Intercommunicators between parents and children.
#include "backend.h"

// `inter` leads to the processes of `nspace`: its MPI_Comm_disconnect is reported to the job daemon. Copies
// (MPI_Comm_dup) count: the last one disconnected is it, and one that was freed instead keeps the two
// connected for ever, as MPI says.
void msa_relate(MPI_Comm inter, const char* nspace);
int msa_disconnect(MPI_Comm* comm);
