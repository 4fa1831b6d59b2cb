#pragma once
// Connections of this process to its job daemon. One serves one question at a time and lies ready afterwards;
// threads that ask at once have one each. All calls: any thread, nothing is locked while they wait.

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct msa_link;

struct msa_link_error {
  char text[256];
};

// A greeted connection; NULL with the reason. *world_size: of this process's namespace as the job daemon
// knows it, 0 if it is not one of the job's (another launcher started this process).
struct msa_link* msa_link_acquire(uint32_t* world_size, struct msa_link_error* error);
// Keeps it for the next question.
void msa_link_release(struct msa_link* link);
// Closes it: the job daemon withdraws what is not answered or not used.
void msa_link_close(struct msa_link* link);
// Closes those that lie ready.
void msa_link_close_all(void);

// 0, or -1 with the reason.
int msa_link_send(struct msa_link* link, const struct msa_buffer* frames, struct msa_link_error* error);
uint64_t msa_link_next_id(struct msa_link* link);
// Waits for the message of that type and id; `progress` is called at growing distances meanwhile (NULL:
// nothing). The payload is to be freed. 0, or -1 with the reason.
int msa_link_receive(struct msa_link* link, uint16_t type, uint64_t id, void (*progress)(void* context),
                     void* context, void** payload, size_t* size, struct msa_link_error* error);

// How long to sleep after waiting for `waited` nanoseconds already: a sixteenth of it, so that a wait grows
// by no more than that, from 1 us to 10 ms (100 wakes a second are nothing).
int64_t msa_pause_ns(int64_t waited);
int64_t msa_now_ns(void);
