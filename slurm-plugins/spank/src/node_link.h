#pragma once
// A connection of a plugin, which has no event loop, to a node daemon or a job daemon: it blocks, with a
// deadline. One thread.

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"

namespace msa::spank {

using Deadline = std::chrono::steady_clock::time_point;
inline Deadline In(std::chrono::milliseconds wait) { return std::chrono::steady_clock::now() + wait; }

class NodeLink {
 public:
  // kUnavailable: nobody listens at `path`, or there is no such file. kInvalidArgument: the path is too long.
  static Result<NodeLink> Connect(const std::string& path);

  NodeLink() = default;
  explicit NodeLink(UniqueFd fd) : fd_(std::move(fd)), reader_(kMaxAnswer) {}

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  void Close() { fd_.reset(); }

  // kUnavailable: the other side is gone; kDeadlineExceeded.
  template <class M>
  Status Send(const M& message, Deadline deadline) {
    return SendBytes(wire::Pack(message), {-1, -1}, deadline);
  }
  // With two descriptors of this process beside the first byte.
  template <class M>
  Status SendWith(const M& message, std::array<int, 2> descriptors, Deadline deadline) {
    return SendBytes(wire::Pack(message), descriptors, deadline);
  }
  // The next message, which must be an M; others are passed over. `descriptor`: one that came with it.
  template <class M>
  Result<M> Receive(Deadline deadline, UniqueFd* descriptor = nullptr) {
    for (;;) {
      MSA_ASSIGN_OR_RETURN(const wire::Frame frame, Next(deadline, descriptor));
      if (frame.type == M::kType) return wire::Decode<M>(frame.payload);
    }
  }

 private:
  static constexpr std::size_t kMaxAnswer = std::size_t{4} << 20;
  Status SendBytes(const std::string& bytes, std::array<int, 2> descriptors, Deadline deadline);
  Result<wire::Frame> Next(Deadline deadline, UniqueFd* descriptor);
  Status Wait(short events, Deadline deadline);  // NOLINT: poll's type

  UniqueFd fd_;
  wire::FrameReader reader_{kMaxAnswer};
};

}  // namespace msa::spank
