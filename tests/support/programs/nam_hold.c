// Holds a region of network attached memory that lives as long as its lease.
//
//   nam_hold NAME
//
// Creates it, writes, prints "held", waits for the end of standard input, and reads what was written. Code 0:
// it was there all the time.
#include <msa_nam.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int Is(int error, const char* what) {
  if (error == MSA_NAM_OK) return 1;
  fprintf(stderr, "nam_hold: %s: %s (%s)\n", what, msa_nam_error_name(error), msa_nam_error_text());
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const struct msa_nam_segment segment = {1 << 20, 1, 0};
  const struct msa_nam_create_options options = {
      .name = argv[1], .segments = &segment, .segment_count = 1, .lifetime = MSA_NAM_LEASE};
  static const char text[] = "what was written";
  char back[sizeof text] = "", byte;
  msa_nam_region_t region;
  if (!Is(msa_nam_create(&options, &region), "create")) return 1;
  if (!Is(msa_nam_put(region, 0, 4096, text, sizeof text), "put")) return 1;
  printf("held\n");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  if (!Is(msa_nam_get(region, 0, 4096, back, sizeof back), "get")) return 1;
  if (memcmp(text, back, sizeof text) != 0) {
    fprintf(stderr, "nam_hold: it holds '%s'\n", back);
    return 1;
  }
  return Is(msa_nam_close(region), "close") ? 0 : 1;
}
