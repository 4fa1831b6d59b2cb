#include "msa/adapters/process/byte_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace msa {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(UniqueFd fd) : fd_(std::move(fd)) {
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  }
  int fd() const override { return fd_.get(); }

  IoResult Read(char* buffer, std::size_t size) override {
    for (;;) {
      const ssize_t n = ::read(fd_.get(), buffer, size);
      if (n > 0) return {IoOutcome::kDone, static_cast<std::size_t>(n)};
      if (n == 0) return {IoOutcome::kClosed, 0};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoOutcome::kWantRead, 0};
      return Fail();
    }
  }

  IoResult Write(const char* data, std::size_t size) override {
    for (;;) {
      ssize_t n = is_socket_ ? ::send(fd_.get(), data, size, MSG_NOSIGNAL) : ::write(fd_.get(), data, size);
      if (n < 0 && errno == ENOTSOCK) {
        is_socket_ = false;
        continue;
      }
      if (n >= 0) return {IoOutcome::kDone, static_cast<std::size_t>(n)};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoOutcome::kWantWrite, 0};
      return Fail();
    }
  }

  const char* Error() const override { return error_ == 0 ? "" : ::strerror(error_); }

 private:
  IoResult Fail() {
    error_ = errno;
    // The peer died with our bytes unread: its end, not a fault of the stream.
    if (error_ == ECONNRESET || error_ == EPIPE) return {IoOutcome::kClosed, 0};
    return {IoOutcome::kError, 0};
  }
  UniqueFd fd_;
  bool is_socket_ = true;
  int error_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(UniqueFd fd) {
  return std::make_unique<PlainStream>(std::move(fd));
}

}  // namespace msa
