// Uses a region of network attached memory as a process outside any job does, by its system's directory.
//
//   nam_outside NAME r|rw
//
// Opens it with these rights, reads the first eight bytes as a number, with "rw" adds one to it, and prints
// what it was. Code 0: done; 1: the library's error stands in the standard error.
#include <inttypes.h>
#include <msa_nam.h>
#include <stdio.h>
#include <string.h>

static int Is(int error, const char* what) {
  if (error == MSA_NAM_OK) return 1;
  fprintf(stderr, "nam_outside: %s: %s (%s)\n", what, msa_nam_error_name(error), msa_nam_error_text());
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int writes = strcmp(argv[2], "rw") == 0;
  int64_t value = 0;
  msa_nam_region_t region;
  if (!Is(msa_nam_open(argv[1], writes ? MSA_NAM_READ | MSA_NAM_WRITE : MSA_NAM_READ, &region), "open"))
    return 1;
  if (!Is(msa_nam_get(region, 0, 0, &value, sizeof value), "get")) return 1;
  if (writes && !Is(msa_nam_fetch_add(region, 0, 0, 1, &value), "fetch_add")) return 1;
  if (!Is(msa_nam_close(region), "close")) return 1;
  printf("%" PRId64 "\n", value);
  return 0;
}
