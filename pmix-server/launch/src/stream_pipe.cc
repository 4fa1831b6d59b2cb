#include "stream_pipe.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "msa/base/messages.h"

namespace msa::launch {
namespace {

// One round reads this many chunks of a pipe before others get their turn.
constexpr int kReadsPerRound = 4;
// The most that the kernel lets an ordinary user's pipe hold (/proc/sys/fs/pipe-max-size); what a grandchild
// that writes without end can add to a task's last words.
constexpr std::size_t kDrainLimit = 1U << 20;

}  // namespace

OutputPipe::OutputPipe(EventLoop& loop, UniqueFd fd, Handlers handlers)
    : loop_(loop), fd_(std::move(fd)), handlers_(std::move(handlers)) {}

OutputPipe::~OutputPipe() { Close(); }

void OutputPipe::Resume() {
  if (!fd_ || !paused_) return;
  // Unwatched while paused, not masked: epoll reports a hang-up whatever is asked for, and the loop would
  // spin.
  if (loop_.Watch(fd_.get(), EPOLLIN, [this](std::uint32_t) { OnReadable(); }).ok()) paused_ = false;
}

void OutputPipe::Pause() {
  if (!fd_ || paused_) return;
  loop_.Unwatch(fd_.get());
  paused_ = true;
}

void OutputPipe::Close() {
  if (!fd_) return;
  Pause();
  fd_.reset();
}

bool OutputPipe::ReadOnce() {
  std::string data(wire::kStdioChunkBytes, '\0');
  const ssize_t n = ::read(fd_.get(), data.data(), data.size());
  if (n > 0) {
    data.resize(static_cast<std::size_t>(n));
    drained_ += data.size();
    handlers_.on_data(std::move(data));
    return true;
  }
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) return false;
  Close();
  return false;
}

void OutputPipe::OnReadable() {
  for (int i = 0; i < kReadsPerRound && !paused_; ++i)
    if (!ReadOnce()) break;
  if (!fd_) handlers_.on_end();
}

void OutputPipe::DrainAndClose() {
  drained_ = 0;
  while (fd_ && !paused_ && drained_ < kDrainLimit)
    if (!ReadOnce()) break;
  if (fd_ && !paused_) Close();
}

InputPipe::InputPipe(EventLoop& loop, UniqueFd fd, Progress on_progress)
    : loop_(loop), fd_(std::move(fd)), on_progress_(std::move(on_progress)) {
  // Without events: a pipe nobody reads any more is reported all the same.
  if (!loop_.Watch(fd_.get(), 0, [this](std::uint32_t events) { OnEvents(events); }).ok()) fd_.reset();
}

InputPipe::~InputPipe() { Close(); }

void InputPipe::Close() {
  if (!fd_) return;
  loop_.Unwatch(fd_.get());
  fd_.reset();
  queue_.clear();
}

void InputPipe::Write(std::string data, bool eof) {
  if (!fd_ || eof_) return;
  if (!data.empty()) queue_.push_back(std::move(data));
  eof_ = eof;
  loop_.Modify(fd_.get(), EPOLLOUT);
}

void InputPipe::OnEvents(std::uint32_t events) {
  std::size_t taken = 0;
  bool refused = (events & EPOLLERR) != 0;
  while (!queue_.empty() && !refused) {
    const std::string& front = queue_.front();
    const ssize_t n = ::write(fd_.get(), front.data() + offset_, front.size() - offset_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      refused = true;
      break;
    }
    taken += static_cast<std::size_t>(n);
    offset_ += static_cast<std::size_t>(n);
    if (offset_ < front.size()) continue;
    queue_.pop_front();
    offset_ = 0;
  }
  const bool closed = refused || (queue_.empty() && eof_);
  if (closed)
    Close();
  else if (queue_.empty())
    loop_.Modify(fd_.get(), 0);
  if (taken > 0 || closed) on_progress_(taken, closed);
}

}  // namespace msa::launch
