#pragma once
// Communicators of the local group that answer as inter-communicators, since MPI makes none without a remote
// process: of a spawn that started nobody, and of a region.
#include "backend.h"

struct msa_region;

// Collective over `comm`; copies (MPI_Comm_dup) are alike. `region`: its segments are the remote side; the
// communicator takes the reference. NULL: nobody is there.
int msa_inter_make(MPI_Comm comm, struct msa_region* region, MPI_Comm* inter);
// NULL: no communicator of a region.
struct msa_region* msa_inter_region(MPI_Comm comm);
