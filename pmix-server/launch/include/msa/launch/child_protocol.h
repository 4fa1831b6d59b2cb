#pragma once
// What msa-exec, in C, speaks of the local wire format where srun has started it: TaskExecAsk and TaskExec of
// msa/jobd/task_messages.h, which the job daemon holds these numbers against.

enum {
  kChildProtocolVersion = 4,
  kChildHeaderBytes = 16,  // u32 length of the payload, u16 type, u16 flags, u64 id; little-endian
  kChildAskType = 0x0607,
  kChildExecType = 0x0608,
  kChildMaxAnswer = 16 * 1024 * 1024  // arguments and environment: the kernel takes 6 MiB
};
