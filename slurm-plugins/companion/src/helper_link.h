#pragma once
// The socket that a helper of Slurm got from the daemon that started it. Sends block, which is how long the
// daemon takes to read; one thread.

#include <optional>
#include <string>

#include "msa/base/companion_messages.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"

namespace msa::companion {

class HelperLink {
 public:
  // Takes `fd`. kInvalidArgument: it is no socket, as where a person calls the program.
  static Result<HelperLink> Take(int fd);

  int fd() const { return fd_.get(); }
  template <class M>
  Status Send(const M& message, std::uint64_t id = 0) {
    return SendBytes(wire::Pack(message, id));
  }
  // What is there to read becomes frames. False: the daemon has closed its end, or sent what is no frame.
  bool Read();
  std::optional<wire::Frame> Next();

 private:
  explicit HelperLink(UniqueFd fd) : fd_(std::move(fd)) {}
  Status SendBytes(const std::string& bytes);

  UniqueFd fd_;
  wire::FrameReader reader_;
  bool broken_ = false;
};

// A helper's options, all of which are for people but --fd and --poll-ms.
struct HelperOptions {
  int fd = wire::kSlurmHelperFd;
  int poll_ms = 1000;
};
// The options, or the exit code after --help, --version or a mistake, which is told on stderr.
struct HelperStart {
  std::optional<int> exit_code;
  HelperOptions options;
};
HelperStart ParseHelperOptions(int argc, char** argv, const char* help, bool polls);

}  // namespace msa::companion
