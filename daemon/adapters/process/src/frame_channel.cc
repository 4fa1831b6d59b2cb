#include "msa/adapters/process/frame_channel.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <deque>

namespace msa {

struct FrameChannel::Core : std::enable_shared_from_this<Core> {
  Core(EventLoop& l, std::unique_ptr<ByteStream> s, Handlers h, std::size_t max_payload)
      : loop(l), stream(std::move(s)), handlers(std::move(h)), reader(max_payload) {}

  EventLoop& loop;
  std::unique_ptr<ByteStream> stream;
  Handlers handlers;
  wire::FrameReader reader;
  std::deque<std::string> queue;
  std::size_t front_sent = 0;
  std::size_t queued = 0;
  bool was_high = false;
  bool paused = false;
  bool draining = false;
  bool read_wants_write = false;  // TLS: the read side waits for a writable descriptor
  bool write_wants_read = false;
  TimerId drain_timer{};

  bool closed() const { return stream == nullptr; }

  void Arm() {
    if (closed()) return;
    std::uint32_t events = 0;
    if ((!paused && !read_wants_write) || write_wants_read) events |= EPOLLIN;
    if ((!queue.empty() && !write_wants_read) || read_wants_write) events |= EPOLLOUT;
    loop.Modify(stream->fd(), events);
  }

  void Shut() {
    if (closed()) return;
    loop.Unwatch(stream->fd());
    loop.Cancel(drain_timer);
    stream.reset();
    queue.clear();
    queued = 0;
  }

  void Fail(Status why) {
    if (closed()) return;
    Shut();
    auto handler = std::move(handlers.on_closed);
    handlers = {};
    if (handler && !draining) handler(std::move(why));
  }

  void WriteSome() {
    write_wants_read = false;
    while (!closed() && !queue.empty()) {
      const std::string& front = queue.front();
      const IoResult io = stream->Write(front.data() + front_sent, front.size() - front_sent);
      switch (io.outcome) {
        case IoOutcome::kDone:
          front_sent += io.bytes;
          queued -= io.bytes;
          if (front_sent == front.size()) {
            queue.pop_front();
            front_sent = 0;
          }
          continue;
        case IoOutcome::kWantRead:
          write_wants_read = true;
          return;
        case IoOutcome::kWantWrite:
          return;
        case IoOutcome::kClosed:
          return Fail(Status(Code::kUnavailable, "peer closed the connection"));
        case IoOutcome::kError:
          return Fail(Error(Code::kUnavailable, "connection broke: {}", stream->Error()));
      }
    }
  }

  void AfterWrite() {
    if (closed()) return;
    if (draining && queue.empty()) return Shut();
    if (was_high && queued < kLowWater) {
      was_high = false;
      if (handlers.on_drained) handlers.on_drained();
    }
  }

  // Bounded rounds, so that one busy peer does not starve the others.
  void ReadSome() {
    read_wants_write = false;
    std::array<char, 64 * 1024> buffer;
    for (int round = 0; round < 16 && !closed() && !paused; ++round) {
      const IoResult io = stream->Read(buffer.data(), buffer.size());
      switch (io.outcome) {
        case IoOutcome::kDone:
          if (draining) continue;
          reader.Append({buffer.data(), io.bytes});
          if (!Deliver()) return;
          continue;
        case IoOutcome::kWantRead:
          return;
        case IoOutcome::kWantWrite:
          read_wants_write = true;
          return;
        case IoOutcome::kClosed:
          return Fail(Status(Code::kUnavailable, "peer closed the connection"));
        case IoOutcome::kError:
          return Fail(Error(Code::kUnavailable, "connection broke: {}", stream->Error()));
      }
    }
  }

  bool Deliver() {
    while (!closed() && !paused && !draining) {
      auto frame = reader.Next();
      if (!frame.ok()) {
        Fail(frame.status());
        return false;
      }
      if (!frame->has_value()) return true;
      // A copy: the handler may close the channel and so drop its own owner.
      const auto handler = handlers.on_frame;
      handler(std::move(**frame));
    }
    return !closed();
  }

  void OnEvents(std::uint32_t events) {
    const auto self = shared_from_this();
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR) || write_wants_read) {
      WriteSome();
      AfterWrite();
    }
    if (!closed() && ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || read_wants_write)) {
      if (paused && (events & (EPOLLHUP | EPOLLERR))) paused = false;  // the end must be seen
      ReadSome();
      if (!closed()) {  // TLS may write when it reads
        WriteSome();
        AfterWrite();
      }
    }
    Arm();
  }
};

FrameChannel::FrameChannel(std::shared_ptr<Core> core) : core_(std::move(core)) {}

FrameChannel::~FrameChannel() { Close(); }

Result<std::unique_ptr<FrameChannel>> FrameChannel::Create(EventLoop& loop,
                                                           std::unique_ptr<ByteStream> stream,
                                                           Handlers handlers, std::size_t max_payload) {
  const int fd = stream->fd();
  auto core = std::make_shared<Core>(loop, std::move(stream), std::move(handlers), max_payload);
  std::weak_ptr<Core> weak = core;
  MSA_RETURN_IF_ERROR(loop.Watch(fd, EPOLLIN, [weak](std::uint32_t events) {
    if (const auto locked = weak.lock()) locked->OnEvents(events);
  }));
  return std::unique_ptr<FrameChannel>(new FrameChannel(std::move(core)));
}

void FrameChannel::Send(std::string packed) {
  const auto core = core_;
  if (core->closed() || core->draining) return;
  core->queued += packed.size();
  core->queue.push_back(std::move(packed));
  if (core->queued >= kHighWater) core->was_high = true;
  if (core->queue.size() > 1) return core->Arm();
  // A failed write here is reported from the loop, not from inside the caller.
  core->write_wants_read = false;
  const std::string& front = core->queue.front();
  const IoResult io = core->stream->Write(front.data(), front.size());
  if (io.outcome == IoOutcome::kDone) {
    core->queued -= io.bytes;
    core->front_sent = io.bytes;
    if (io.bytes == front.size()) {
      core->queue.pop_front();
      core->front_sent = 0;
      if (core->was_high && core->queued < kLowWater) core->was_high = false;
    }
  } else if (io.outcome == IoOutcome::kWantRead) {
    core->write_wants_read = true;
  }
  core->Arm();
}

std::size_t FrameChannel::queued() const noexcept { return core_->queued; }
bool FrameChannel::closed() const noexcept { return core_->closed(); }
int FrameChannel::fd() const noexcept { return core_->closed() ? -1 : core_->stream->fd(); }

void FrameChannel::PauseReading() {
  core_->paused = true;
  core_->Arm();
}

void FrameChannel::ResumeReading() {
  const auto core = core_;
  if (!core->paused || core->closed()) return;
  core->paused = false;
  // Frames may stand in the buffer already; they are delivered from the loop.
  std::weak_ptr<Core> weak = core;
  core->loop.Post([weak] {
    if (const auto locked = weak.lock(); locked && !locked->closed()) {
      locked->Deliver();
      locked->ReadSome();
      locked->Arm();
    }
  });
}

void FrameChannel::Close() {
  core_->handlers = {};
  core_->Shut();
}

void FrameChannel::CloseWhenDrained(Millis limit) {
  const auto core = core_;
  if (core->closed()) return;
  core->draining = true;
  if (core->queue.empty()) return core->Shut();
  core->drain_timer = core->loop.After(limit, [core] { core->Shut(); });
}

}  // namespace msa
