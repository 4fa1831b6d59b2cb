#pragma once

#include <deque>
#include <optional>
#include <string>

#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"

namespace msa::namd::test {

// Frames over a connected socket for a test's own thread: every call returns by its limit.
class FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  void SendRaw(std::string_view bytes);
  template <class M>
  void Send(const M& message, std::uint64_t id = 0) {
    SendRaw(wire::Pack(message, id));
  }
  // nullopt: nothing within the limit, or the peer has closed.
  std::optional<wire::Frame> Receive(Millis limit);
  bool closed() const { return closed_; }
  int fd() const { return fd_.get(); }
  void Close() { fd_.reset(); }
  // Descriptors that came with what was received, in order.
  std::deque<UniqueFd> files;

 private:
  bool ReadSome(Millis limit);

  UniqueFd fd_;
  wire::FrameReader reader_;
  bool closed_ = false;
};

}  // namespace msa::namd::test
