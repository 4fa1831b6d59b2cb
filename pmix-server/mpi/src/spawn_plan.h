#pragma once
// The root's side of a spawn: what the program wants, the job daemon's answer to it, and what Open MPI is
// told.
#include "backend.h"
#include "job_link.h"

// A call as the program made it; of MPI_Comm_spawn: one command.
struct msa_spawn_call {
  const char* name;
  int count;
  char** commands;
  char*** argvs;  // NULL: no arguments at all
  const int* maxprocs;
  const MPI_Info* infos;
  int root, rank, size;
  MPI_Comm comm;
};

enum msa_decision { kMsaStart, kMsaPassThrough, kMsaRefused };

struct msa_plan {
  enum msa_decision decision;
  int error;  // of a refusal: class
  char reason[MPI_MAX_ERROR_STRING];
  char nspace[256];
  char ticket[192];
  int non_mpi;      // the children will not call MPI_Init: no intercommunicator (key ompi_non_mpi)
  int32_t* counts;  // of each command
  // What to start: commands of 0 processes left out. Room for `count` of each.
  int started;
  char** commands;
  char*** argvs;
  int* maxprocs;
  MPI_Info* infos;
  struct msa_link* link;       // holds the ticket
  struct msa_verdict verdict;  // holds the texts
};

// Asks and waits for the answer. The plan is to be freed.
void msa_plan_make(const struct msa_spawn_call* call, struct msa_plan* plan);
// `used`: the children run, the permission is spent; else it is given back.
enum msa_ticket_use { kMsaUsed, kMsaNotUsed };
void msa_plan_free(struct msa_plan* plan, enum msa_ticket_use use);
