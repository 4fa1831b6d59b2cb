#include "passing_stream.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "msa/base/descriptor_passing.h"

namespace msa::namd {
namespace {

constexpr useconds_t kFilesPause = 500;

}  // namespace

PassingStream::PassingStream(UniqueFd fd, std::function<void()> on_passed)
    : plain_(MakePlainStream(std::move(fd))), on_passed_(std::move(on_passed)) {}

void PassingStream::Pass(std::uint64_t position, UniqueFd file) {
  waiting_.push_back({position, std::move(file)});
}

IoResult PassingStream::Write(const char* data, std::size_t size) {
  IoResult result;
  if (waiting_.empty() || waiting_.front().position >= written_ + size) {
    result = plain_->Write(data, size);
  } else if (waiting_.front().position > written_) {
    result = plain_->Write(data, static_cast<std::size_t>(waiting_.front().position - written_));
  } else {
    result = WriteWith(data, size, waiting_.front().file.get());
    if (result.outcome == IoOutcome::kDone) {
      waiting_.pop_front();
      if (on_passed_) on_passed_();
    }
  }
  if (result.outcome == IoOutcome::kDone) written_ += result.bytes;
  return result;
}

IoResult PassingStream::WriteWith(const char* data, std::size_t size, int file) {
  // Not beyond the next one's byte.
  if (waiting_.size() > 1)
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, waiting_[1].position - written_));
  const SentBytes out = SendWithDescriptors(plain_->fd(), {data, size}, {&file, 1});
  switch (out.error) {
    case 0:
      return {IoOutcome::kDone, out.bytes};
    case EAGAIN:
      return {IoOutcome::kWantWrite, 0};
    case ETOOMANYREFS:
      // This user's files on their way in sockets are as many as one may have open. They get fewer when some
      // client reads, of which nobody is told.
      ::usleep(kFilesPause);
      return {IoOutcome::kWantWrite, 0};
    case EPIPE:
    case ECONNRESET:
      return {IoOutcome::kClosed, 0};
    default:
      return {IoOutcome::kError, 0};
  }
}

}  // namespace msa::namd
