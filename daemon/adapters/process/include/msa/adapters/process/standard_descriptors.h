#pragma once

namespace msa {

// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed: else the next file or socket gets
// that number and is taken for standard input or written to as standard output. A program that links this
// has it done before the constructors of its libraries, since gRPC's open an eventfd; main calls it so that
// it is linked. Idempotent. Ends the process with code 1 if /dev/null cannot be opened.
void SecureStandardDescriptors() noexcept;

}  // namespace msa
