#include <fcntl.h>
#include <unistd.h>

#include "commands/registry.h"

int main(int argc, char** argv) {
  // A descriptor 0, 1 or 2 that is closed would be given to the first file or socket that we open. The lowest
  // free number is the one that open(2) takes.
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return 1;
  const int code = msa::cli::Dispatch(msa::cli::Args(argv + (argc > 0 ? 1 : 0), argv + argc));
  // Without a farewell to gRPC's threads: its shutdown takes longer than most commands.
  ::_exit(code);
}
