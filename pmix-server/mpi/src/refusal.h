#pragma once
// Why the last call of this thread that msa answers was refused, and how that reaches the program.
#include "backend.h"

// Notes the reason for MPI_Error_string of this thread; `code` is an error class, and so a code that every
// MPI knows. NULL: the last one went well.
void msa_refusal_set(int code, const char* reason);
// Notes it, calls the communicator's error handler, which may not come back, and returns `code`.
int msa_refuse(MPI_Comm comm, int code, const char* reason);
// MPI_Error_string: the reason if `code` is that of this thread's last refusal.
int msa_error_string(int code, char* text, int* length);
