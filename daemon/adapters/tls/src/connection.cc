#include "connection.h"

#include <sys/epoll.h>

namespace msa::tls {
namespace {
// One TLS record is at most 16 KiB; two of them a turn.
constexpr std::size_t kBuffer = 32U << 10;
}  // namespace

Connection::Connection(EventLoop& loop, std::unique_ptr<TlsStream> stream, std::function<void()> on_end)
    : loop_(loop), stream_(std::move(stream)), on_end_(std::move(on_end)) {}

Connection::~Connection() {
  SetEvents(stream_->fd(), 0, stream_events_);
  if (local_) SetEvents(local_->fd(), 0, local_events_);
}

// A descriptor that nothing is wanted of is not watched: its hang-up would come again and again.
void Connection::SetEvents(int fd, std::uint32_t events, std::uint32_t& now) {
  if (events == now) return;
  if (events == 0) {
    loop_.Unwatch(fd);
  } else if (now == 0) {
    const Status watched = loop_.Watch(fd, events, [this](std::uint32_t) { OnEvent(); });
    if (!watched.ok()) return End();
  } else {
    loop_.Modify(fd, events);
  }
  now = events;
}

void Connection::OnEvent() {
  if (on_shaken_) return OnShake();
  bool moved = true;
  while (moved) {
    moved = false;
    stream_wants_ = local_wants_ = 0;
    if (!Step(in_, *stream_, *local_, moved) || !Step(out_, *local_, *stream_, moved)) return End();
  }
  WatchBoth();
}

void Connection::Shake(std::function<void(Status)> on_done) {
  on_shaken_ = std::move(on_done);
  OnShake();
}

void Connection::OnShake() {
  const IoResult result = stream_->Handshake();
  if (result.outcome == IoOutcome::kWantRead || result.outcome == IoOutcome::kWantWrite)
    return SetEvents(stream_->fd(), result.outcome == IoOutcome::kWantRead ? EPOLLIN : EPOLLOUT,
                     stream_events_);
  SetEvents(stream_->fd(), 0, stream_events_);
  const auto done = std::exchange(on_shaken_, nullptr);
  if (result.outcome == IoOutcome::kDone) return done(Status::Ok());
  const char* const why = stream_->Error();
  done(msa::Error(Code::kUnauthenticated, "TLS handshake: {}",
                  *why != '\0' ? why : "the peer closed the connection"));
}

void Connection::Move(UniqueFd local) {
  local_ = MakePlainStream(std::move(local));
  in_.buffer.resize(kBuffer);
  out_.buffer.resize(kBuffer);
  OnEvent();
}

void Connection::Note(const IoResult& result, const ByteStream& of) {
  const std::uint32_t wanted = result.outcome == IoOutcome::kWantRead ? EPOLLIN : EPOLLOUT;
  (&of == stream_.get() ? stream_wants_ : local_wants_) |= wanted;
}

bool Connection::Step(Flow& flow, ByteStream& from, ByteStream& to, bool& moved) {
  if (flow.empty() && !flow.source_closed) {
    const IoResult result = from.Read(flow.buffer.data(), flow.buffer.size());
    if (result.outcome == IoOutcome::kError) return false;
    if (result.outcome == IoOutcome::kClosed) {
      flow.source_closed = true;
    } else if (result.outcome == IoOutcome::kDone) {
      flow.begin = 0;
      flow.end = result.bytes;
    } else {
      Note(result, from);
    }
  }
  if (flow.empty()) return !flow.source_closed;
  const IoResult result = to.Write(flow.buffer.data() + flow.begin, flow.end - flow.begin);
  if (result.outcome == IoOutcome::kError || result.outcome == IoOutcome::kClosed) return false;
  if (result.outcome == IoOutcome::kDone) {
    flow.begin += result.bytes;
    moved = true;
  } else {
    Note(result, to);
  }
  return true;
}

void Connection::WatchBoth() {
  SetEvents(stream_->fd(), stream_wants_, stream_events_);
  SetEvents(local_->fd(), local_wants_, local_events_);
}

void Connection::End() {
  // The owner destroys this object.
  const auto on_end = std::exchange(on_end_, nullptr);
  if (on_end) on_end();
}

}  // namespace msa::tls
