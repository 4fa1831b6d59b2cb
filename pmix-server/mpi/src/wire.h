#pragma once
// The messages of msa/jobd/task_messages.h in C, in the local wire format (msa/base/wire.h). The test beside
// it holds them against the C++ definitions.

#include <stddef.h>
#include <stdint.h>

enum {
  kMsaHeaderBytes = 16,
  kMsaProtocolVersion = 4,
  kMsaHello = 0x0601,
  kMsaWelcome = 0x0602,
  kMsaSpawnAsk = 0x0603,
  kMsaSpawnVerdict = 0x0604,
  kMsaSpawnWithdraw = 0x0605,
  kMsaDisconnected = 0x0606,
  // The job daemon takes no longer message of a task.
  kMsaMaxAsk = 64 * 1024,
  // A verdict of 10,000 commands with their paths; a larger length is a broken peer.
  kMsaMaxAnswer = 16 * 1024 * 1024
};

enum { kMsaRefusedNot = 0, kMsaRefusedSpawn = 1, kMsaRefusedInfoValue = 2 };

// The info keys of a command, in the message's order.
enum { kMsaKeys = 11 };
extern const char* const msa_keys[kMsaKeys];  // "arch", "soft", "host", ...

struct msa_command {
  const char* program;
  uint32_t maxprocs;
  char* values[kMsaKeys];  // NULL: not given
  char** unknown;
  uint32_t unknown_count;
};

// Bytes under construction; `failed` once memory ran out, then nothing more is added.
struct msa_buffer {
  char* data;
  size_t size, capacity;
  int failed;
};
void msa_buffer_free(struct msa_buffer* buffer);

// Each appends one whole frame.
void msa_put_hello(struct msa_buffer* out, uint64_t id, const char* nspace, uint32_t rank);
void msa_put_ask(struct msa_buffer* out, uint64_t id, const struct msa_command* commands, uint32_t count,
                 const char* cwd, const char* search_path);
// SpawnWithdraw and Disconnected hold one text.
void msa_put_text_message(struct msa_buffer* out, uint16_t type, const char* text);

struct msa_header {
  uint32_t length;
  uint16_t type, flags;
  uint64_t id;
};
// `bytes` holds kMsaHeaderBytes.
struct msa_header msa_get_header(const unsigned char* bytes);

struct msa_welcome {
  uint32_t version, step, world_size;
  uint64_t job;
};
// 0, or -1 if the payload is truncated or malformed; texts with a zero byte are malformed.
int msa_get_welcome(const void* payload, size_t size, struct msa_welcome* welcome);

struct msa_verdict {
  uint8_t refusal;
  char *reason, *ticket, *nspace;  // never NULL after success
  uint32_t* counts;
  char **programs, **wdirs;
  uint32_t count_count, program_count, wdir_count;
};
// As above; -1 also if memory ran out. The verdict is to be freed in either case.
int msa_get_verdict(const void* payload, size_t size, struct msa_verdict* verdict);
void msa_verdict_free(struct msa_verdict* verdict);
