#pragma once
// MPI_Win_get_attr of Fortran, which goes past the C call in both MPIs (fortran.c).
#include <stdint.h>

// 1: a NAM window's, answered. In preload.c.
int msa_fortran_attribute(const int* win, int key, intptr_t* value, int* flag);
