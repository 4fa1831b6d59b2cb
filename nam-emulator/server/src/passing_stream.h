#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "msa/adapters/process/byte_stream.h"

namespace msa::namd {

// A Unix socket's stream that passes descriptors (SCM_RIGHTS) with bytes of one's choice. One thread.
class PassingStream final : public ByteStream {
 public:
  // `on_passed`: one is out, within Write.
  explicit PassingStream(UniqueFd fd, std::function<void()> on_passed = {});
  // `file` goes out with the byte at `position` of all that are ever written. Positions only grow.
  void Pass(std::uint64_t position, UniqueFd file);
  std::size_t waiting() const { return waiting_.size(); }  // files that are not out

  int fd() const override { return plain_->fd(); }
  IoResult Read(char* buffer, std::size_t size) override { return plain_->Read(buffer, size); }
  IoResult Write(const char* data, std::size_t size) override;
  const char* Error() const override { return plain_->Error(); }

 private:
  struct Passed {
    std::uint64_t position = 0;
    UniqueFd file;
  };
  IoResult WriteWith(const char* data, std::size_t size, int file);

  std::unique_ptr<ByteStream> plain_;
  const std::function<void()> on_passed_;
  std::uint64_t written_ = 0;
  std::deque<Passed> waiting_;
};

}  // namespace msa::namd
