#pragma once
// From a datatype's construction to its layout.
#include "layout.h"

enum msa_pairs { kMsaPairsAsMapped, kMsaPairsWhole };

// *has_gaps is set to 1 where a pair with a gap inside is part of it. NULL: no memory, or no datatype. One
// thread at a time.
struct msa_layout* msa_flatten(MPI_Datatype type, enum msa_pairs pairs, int* has_gaps);
