#pragma once
// A connection to a daemon's Unix socket that carries frames (msa/base/wire.h), with a deadline on each step.

#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"

namespace msa::nam {

// One thread sends, one receives.
class FrameSocket {
 public:
  // kUnavailable: nobody listens there. kNotFound: there is no such socket. kPermissionDenied.
  static Result<std::shared_ptr<FrameSocket>> Connect(const std::string& path, SteadyTime deadline);
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  // kUnavailable: the peer has closed it; kDeadlineExceeded: a part may have been sent, close it.
  Status Send(std::string_view bytes, SteadyTime deadline);
  // kUnavailable likewise. kDeadlineExceeded: may be called again.
  Result<wire::Frame> Receive(SteadyTime deadline);
  // Of the last frame; -1 if none came.
  UniqueFd TakeFd();
  int fd() const { return fd_.get(); }
  // Everybody who waits on it is told that it has ended.
  void Shutdown();

 private:
  explicit FrameSocket(UniqueFd fd);
  Status Wait(short events, SteadyTime deadline);
  Status Fill();

  UniqueFd fd_;
  wire::FrameReader reader_;
  std::deque<UniqueFd> fds_;
};

// A forked child must not keep its parent's connections open, or nobody would hear of the parent's death.
// Called by the fork handler, in the child.
void CloseInheritedSockets() noexcept;
void LockSocketsForFork() noexcept;
void UnlockSocketsAfterFork() noexcept;

}  // namespace msa::nam
