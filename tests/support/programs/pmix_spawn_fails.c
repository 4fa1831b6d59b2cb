// Preloaded: every PMIx_Spawn of the process fails, as if the launcher could not start the program.
#include <stddef.h>

int PMIx_Spawn(const void* info, size_t ninfo, const void* apps, size_t napps, char* nspace);
int PMIx_Spawn(const void* info, size_t ninfo, const void* apps, size_t napps, char* nspace) {
  (void)info, (void)ninfo, (void)apps, (void)napps, (void)nspace;
  return -1;  // PMIX_ERROR
}
