#pragma once

// Becomes the process that the job daemon at MSA_JOB_SOCKET has in mind for this one. Says on stderr why it
// cannot, and returns the exit code: 127 no such program, 126 it or its directory cannot be used, 125 other.
int BecomeChild(void);
