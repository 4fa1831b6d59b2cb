#pragma once

#include <cstddef>
#include <memory>

#include "msa/base/unique_fd.h"

namespace msa {

enum class IoOutcome {
  kDone,       // `bytes` were moved, at least one
  kWantRead,   // wait until the descriptor is readable
  kWantWrite,  // wait until it is writable
  kClosed,     // end of stream
  kError,      // broken; see ByteStream::Error()
};

struct IoResult {
  IoOutcome outcome = IoOutcome::kError;
  std::size_t bytes = 0;
};

// A non-blocking, connected byte stream over one descriptor: plain, or with TLS. One thread.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual int fd() const = 0;
  virtual IoResult Read(char* buffer, std::size_t size) = 0;
  virtual IoResult Write(const char* data, std::size_t size) = 0;
  // What broke it, for people; empty if nothing did.
  virtual const char* Error() const = 0;
};

// A stream over a socket or pipe; makes the descriptor non-blocking. Writes never raise SIGPIPE on sockets.
std::unique_ptr<ByteStream> MakePlainStream(UniqueFd fd);

}  // namespace msa
