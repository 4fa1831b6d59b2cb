#pragma once
// What the launcher hands to msa-exec, both built from one tree and installed together. C and C++.
//
// Descriptors of the trampoline: 0, 1, 2 the task's streams, 3 a memory file with the specification, 4 the
// write end of the status pipe of the start, 20 the task's channel if ExecHeader.channel says so. The file
// holds one ExecHeader, `limits` ExecLimits, `mask_bytes` bytes of CPU mask (a multiple of 8), and `argc +
// envc + 2` NUL-terminated strings: program, working directory (empty: stay), the arguments, the environment.
// Closing the status pipe without a record means that the program was exec'ed.

#ifdef __cplusplus
#include <cstdint>
#else
#include <stdint.h>
#endif

enum { kExecMagic = 0x4d534158, kExecSpecFd = 3, kExecStatusFd = 4, kExecChannelFd = 20 };

// At which step the trampoline failed.
enum ExecStage {
  kExecStageSpec = 1,
  kExecStageBind = 2,
  kExecStageLimit = 3,
  kExecStageDirectory = 4,
  kExecStageExec = 5,
};

struct ExecHeader {
  uint32_t magic;
  uint32_t index;  // returned in the status record
  int32_t parent;  // the launcher; a trampoline with another parent is an orphan and leaves
  uint32_t limits;
  uint32_t mask_bytes;
  uint32_t argc;
  uint32_t envc;
  uint32_t channel;  // not 0: descriptor kExecChannelFd is the program's, too
};

struct ExecLimit {
  int64_t resource;
  uint64_t soft;
  uint64_t hard;
};

// Shorter than PIPE_BUF: written in one piece.
struct ExecFailure {
  uint32_t index;
  int32_t stage;
  int32_t error;   // errno
  int32_t detail;  // kExecStageLimit: the resource
};
