#pragma once
// What this process is in msa, read from its environment once.

#include <stdint.h>

struct msa_task {
  int active;  // there is a job daemon to ask
  char socket[108];
  char nspace[256];  // PMIx's; empty: unknown
  char parent[256];  // of a spawned process: its parents' namespace; empty: none
  uint32_t rank;     // in its namespace
  long world_size;   // 0: not said
};

// The first call reads the environment; any thread.
const struct msa_task* msa_task_get(void);

// One line "msa: ..." on stderr, in one piece.
__attribute__((format(printf, 1, 2))) void msa_say(const char* format, ...);
