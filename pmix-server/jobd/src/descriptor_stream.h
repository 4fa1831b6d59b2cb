#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "msa/adapters/process/byte_stream.h"

namespace msa::jobd {

// A Unix socket's stream that takes descriptors that come with its bytes (SCM_RIGHTS), and passes on its own.
// One thread.
class DescriptorStream final : public ByteStream {
 public:
  // Of what comes, at most `most_received` are kept until they are taken; further ones are closed.
  DescriptorStream(UniqueFd fd, std::size_t most_received)
      : plain_(MakePlainStream(std::move(fd))), most_received_(most_received) {}
  // What came so far, in order.
  std::vector<UniqueFd> TakeReceived();
  // Goes out with the next byte that is written.
  void Pass(UniqueFd descriptor) { waiting_.push_back(std::move(descriptor)); }

  int fd() const override { return plain_->fd(); }
  IoResult Read(char* buffer, std::size_t size) override;
  IoResult Write(const char* data, std::size_t size) override;
  const char* Error() const override { return plain_->Error(); }

 private:
  std::unique_ptr<ByteStream> plain_;
  std::size_t most_received_;
  std::vector<UniqueFd> received_;
  std::deque<UniqueFd> waiting_;
};

}  // namespace msa::jobd
