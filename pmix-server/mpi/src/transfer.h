#pragma once
// Puts and gets between an origin buffer and a target, both of any datatype.
#include "layout.h"
#include "window.h"

enum msa_direction { kMsaPut, kMsaGet };

// What MPI's arguments say, checked.
struct msa_side {
  const struct msa_layout* layout;
  uint64_t count;
};
struct msa_transfer {
  const char* call;
  struct msa_window* window;
  char* origin;
  struct msa_side from, to;  // of the origin, of the target
  int target;
  uint64_t offset;  // of the target's first count, in bytes
};

// Requests of one transfer to memory that is not mapped.
struct msa_pending {
  struct msa_pending* next;
  int target;
  int count, capacity;
  msa_nam_request_t* requests;
};

// Fills in the sides. The raised error, or MPI_SUCCESS.
int msa_side_make(struct msa_window* window, const char* call, long long count, MPI_Datatype type,
                  struct msa_side* side);
// Is `target` one of the window's, open to access, and does the data lie in it? The raised error, or
// MPI_SUCCESS and the offset.
int msa_target_check(struct msa_transfer* transfer, long disp);

// Does it, or, if *pending is given and the target is not mapped, begins it: *pending is what is left, NULL
// if nothing is. A result of libmsanam.
int msa_transfer_run(const struct msa_transfer* transfer, enum msa_direction direction,
                     struct msa_pending** pending);
// Waits for all of it and frees it. A result of libmsanam.
int msa_pending_finish(struct msa_pending* pending);
void msa_pending_free(struct msa_pending* pending);

// An MPI request of work that is done, or that *pending will complete (which it takes).
int msa_request_done(struct msa_window* window, MPI_Request* request);
int msa_request_of(struct msa_window* window, struct msa_pending* pending, const char* call,
                   MPI_Request* request);

// ---- buffers on a device, through the host (staging.c)

enum msa_stage { kMsaStageIn, kMsaStageOut };
struct msa_staged {
  enum msa_stage how;  // by the caller: read from the program's buffer, or written to it
  char* buffer;        // what to use instead
  char* allocated;     // NULL: the buffer is the program's own
  char* device;        // the program's
  struct msa_side side;
};
// `data`: where count 0 begins. The raised error, or MPI_SUCCESS.
int msa_stage(struct msa_window* window, const char* call, const void* data, const struct msa_side* side,
              struct msa_staged* staged);
// Copies what kMsaStageOut has brought to the device, unless the call has failed, and frees.
int msa_unstage(struct msa_window* window, const char* call, struct msa_staged* staged, int has_failed);
