#pragma once

#include <memory>
#include <string>

#include "msa/adapters/process/byte_stream.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::jobd {

// TLS 1.3 with a pre-shared key, no certificates: whoever lacks the secret does not get past the handshake,
// in either direction. Create it early (it costs half a millisecond); one thread.
class TlsContext {
 public:
  // kInternal: OpenSSL refuses, with its text.
  static Result<std::unique_ptr<TlsContext>> Create();
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The key of all streams made from now on. `identity` is sent in the clear, `secret_hex` is 32 bytes in
  // hex. kInvalidArgument: not 64 hex digits.
  Status SetSecret(std::string identity, const std::string& secret_hex);

  // Streams over a connected socket; the handshake runs inside their first reads and writes (the client must
  // write first). The context must outlive them. kInternal: OpenSSL refuses.
  Result<std::unique_ptr<ByteStream>> Client(UniqueFd fd);
  Result<std::unique_ptr<ByteStream>> Server(UniqueFd fd);

  struct Impl;

 private:
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa::jobd
