#pragma once
// One connection of a pump: bytes between a TLS stream and a plain one. Loop's thread.

#include <functional>
#include <memory>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/tls/member_tls.h"

namespace msa::tls {

class Connection {
 public:
  Connection(EventLoop& loop, std::unique_ptr<TlsStream> stream, std::function<void()> on_end);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Server: shakes hands, then calls `on_done` once, unless the connection ends before. `on_done` may end it.
  void Shake(std::function<void(Status)> on_done);
  // Moves bytes from here on, until `on_end`.
  void Move(UniqueFd local);
  TlsStream& stream() { return *stream_; }

 private:
  struct Flow {
    std::vector<char> buffer;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool source_closed = false;
    bool empty() const { return begin == end; }
  };
  void OnEvent();
  void OnShake();
  // False: the connection is over.
  bool Step(Flow& flow, ByteStream& from, ByteStream& to, bool& moved);
  void WatchBoth();
  void SetEvents(int fd, std::uint32_t events, std::uint32_t& now);
  void Note(const IoResult& result, const ByteStream& of);
  void End();

  EventLoop& loop_;
  std::unique_ptr<TlsStream> stream_;
  std::unique_ptr<ByteStream> local_;
  std::function<void()> on_end_;
  std::function<void(Status)> on_shaken_;
  Flow in_;   // from the peer
  Flow out_;  // to it
  std::uint32_t stream_wants_ = 0;
  std::uint32_t local_wants_ = 0;
  std::uint32_t stream_events_ = 0;  // watched now
  std::uint32_t local_events_ = 0;
};

}  // namespace msa::tls
