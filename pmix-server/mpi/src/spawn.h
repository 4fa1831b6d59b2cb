#pragma once
// MPI_Comm_spawn and MPI_Comm_spawn_multiple: ask, tell all parents, start or fail alike.
#include "backend.h"

int msa_spawn(const char* command, char** argv, int maxprocs, MPI_Info info, int root, MPI_Comm comm,
              MPI_Comm* inter, int* codes);
int msa_spawn_multiple(int count, char** commands, char*** argvs, const int* maxprocs, const MPI_Info* infos,
                       int root, MPI_Comm comm, MPI_Comm* inter, int* codes);
