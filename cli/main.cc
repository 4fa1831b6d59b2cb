#include <unistd.h>

#include "msa/adapters/process/standard_descriptors.h"

#include "commands/registry.h"

int main(int argc, char** argv) {
  msa::SecureStandardDescriptors();
  const int code = msa::cli::Dispatch(msa::cli::Args(argv + (argc > 0 ? 1 : 0), argv + argc));
  // Without a farewell to gRPC's threads: its shutdown takes longer than most commands.
  ::_exit(code);
}
