/* A counter in network attached memory that outlives its programs: each run counts on from where the last one
 * was. Create it where it is missing, add to it, say what it shows.
 *
 *   cc nam_counter.c -o nam_counter $(pkg-config --cflags --libs msanam)
 *   ./nam_counter visits          # on the host of a NAM node, or: msactl run -n 4 ./nam_counter visits
 *   ./nam_counter visits --remove
 */
#include <inttypes.h>
#include <msa_nam.h>
#include <stdio.h>
#include <string.h>

static int Fail(int error) {
  fprintf(stderr, "nam_counter: %s: %s\n", msa_nam_error_name(error), msa_nam_error_text());
  return 1;
}

/* Several processes may begin at once: one creates it, the others find it there. */
static int OpenOrCreate(const char* name, msa_nam_region_t* region) {
  const struct msa_nam_segment counter = {.bytes = sizeof(int64_t), .disp_unit = sizeof(int64_t)};
  const struct msa_nam_create_options options = {
      .name = name, .segments = &counter, .segment_count = 1, .lifetime = MSA_NAM_PERSISTENT};
  int error = msa_nam_open(name, MSA_NAM_READ | MSA_NAM_WRITE, region);
  if (error != MSA_NAM_ERR_NOT_FOUND) return error;
  error = msa_nam_create(&options, region);
  if (error != MSA_NAM_ERR_EXISTS) return error;
  return msa_nam_open(name, MSA_NAM_READ | MSA_NAM_WRITE, region);
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--remove") != 0)) {
    fprintf(stderr, "usage: nam_counter NAME [--remove]\n");
    return 2;
  }
  int error;
  if (argc == 3) {
    error = msa_nam_delete(argv[1], 0);
    return error == MSA_NAM_OK ? 0 : Fail(error);
  }
  msa_nam_region_t region;
  int64_t before;
  error = OpenOrCreate(argv[1], &region);
  if (error != MSA_NAM_OK) return Fail(error);
  error = msa_nam_fetch_add(region, 0, 0, 1, &before);
  if (error != MSA_NAM_OK) return Fail(error);
  printf("%s: %" PRId64 "\n", argv[1], before + 1);
  error = msa_nam_close(region);
  return error == MSA_NAM_OK ? 0 : Fail(error);
}
