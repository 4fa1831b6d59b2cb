#pragma once

#include <memory>
#include <string>

#include "msa/adapters/process/byte_stream.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::jobd {

// TLS 1.3 with a pre-shared key, no certificates: whoever lacks the secret does not get past the handshake,
// in either direction. One thread.
class TlsContext {
 public:
  TlsContext();
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Does now what the first stream does else, a handshake with itself: OpenSSL's own start takes 2 ms, the
  // first use of each algorithm another. Before SetSecret. kInternal: OpenSSL refuses, with its text.
  Status Warm();

  // The key of all streams made from now on. `identity` is sent in the clear, `secret_hex` is 32 bytes in
  // hex. kInvalidArgument: not 64 hex digits.
  Status SetSecret(std::string identity, const std::string& secret_hex);

  // Streams over a connected socket; the handshake runs inside their first reads and writes (the client must
  // write first). The context must outlive them. kInternal: OpenSSL refuses.
  Result<std::unique_ptr<ByteStream>> Client(UniqueFd fd);
  Result<std::unique_ptr<ByteStream>> Server(UniqueFd fd);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa::jobd
