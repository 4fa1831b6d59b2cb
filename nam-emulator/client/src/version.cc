#include <msa_nam.h>

// The one object of the shared library itself; the rest comes from the archive that tests link too.
static_assert(MSA_NAM_VERSION == 1);
