#pragma once

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/byte_stream.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

namespace msa {

// Frames of the local wire format over a byte stream, on an event loop. One thread, the loop's.
class FrameChannel {
 public:
  struct Handlers {
    std::function<void(wire::Frame)> on_frame;
    // Once, when the peer closed (kUnavailable "peer closed the connection"), the stream broke, or a frame
    // was malformed (kInvalidArgument). Not after Close(). The handler may destroy the channel.
    std::function<void(Status)> on_closed;
    // Optional: the send queue fell below kLowWater after it had reached kHighWater.
    std::function<void()> on_drained;
  };
  static constexpr std::size_t kHighWater = std::size_t{1} << 20;
  static constexpr std::size_t kLowWater = std::size_t{256} << 10;

  // Starts to read at once. kResourceExhausted: the loop cannot watch it.
  static Result<std::unique_ptr<FrameChannel>> Create(EventLoop& loop, std::unique_ptr<ByteStream> stream,
                                                      Handlers handlers,
                                                      std::size_t max_payload = wire::kMaxPayloadBytes);
  ~FrameChannel();
  FrameChannel(const FrameChannel&) = delete;
  FrameChannel& operator=(const FrameChannel&) = delete;

  // Queues a packed frame (wire::Pack) and writes what the stream takes at once. After the channel has closed
  // it does nothing: on_closed tells.
  void Send(std::string packed);
  template <class M>
  void SendMessage(const M& message, std::uint64_t id = 0) {
    Send(wire::Pack(message, id));
  }

  // Bytes not yet taken by the stream. Above kHighWater a sender should wait for on_drained.
  std::size_t queued() const noexcept;
  // Stops (or resumes) reading: back-pressure towards the peer.
  void PauseReading();
  void ResumeReading();
  bool closed() const noexcept;
  // Drops the queue and closes the descriptor; no handler is called any more.
  void Close();
  // Closes after the queue is written, or after `limit`; no on_frame any more.
  void CloseWhenDrained(Millis limit);
  int fd() const noexcept;

 private:
  struct Core;
  explicit FrameChannel(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace msa
