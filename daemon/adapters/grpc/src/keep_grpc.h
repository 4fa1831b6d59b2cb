#pragma once

namespace msa {

// Keeps gRPC initialised until the process ends. Else the last channel or server that goes takes it down,
// which now and then waits 10 s for descriptors that another thread is about to give back. Any thread;
// idempotent.
void KeepGrpc();

}  // namespace msa
