#pragma once

#include <functional>
#include <memory>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa::cli {

// Delivers signals on the loop's thread. Create it before the process has a second thread: the signals are
// blocked, and later threads inherit that.
class SignalWatch {
 public:
  // Of INT, TERM, HUP, QUIT, USR1, USR2, TSTP and CONT those that the process does not ignore (nohup, or a
  // shell's background job, ignores some). TTIN and PIPE are ignored from here on. kInternal: refused by the
  // kernel.
  static Result<std::unique_ptr<SignalWatch>> Create(EventLoop& loop,
                                                     std::function<void(int signal)> on_signal);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  SignalWatch(EventLoop& loop, UniqueFd fd, std::function<void(int)> on_signal);
  void Read();
  EventLoop& loop_;
  UniqueFd fd_;
  std::function<void(int)> on_signal_;
};

}  // namespace msa::cli
