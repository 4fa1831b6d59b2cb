#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/status.h"

namespace msa::cli {

// Writes to standard output and standard error in the order given, without blocking the loop on a slow reader
// and without changing the descriptors' flags, which other processes share. One thread, the loop's.
class OutputWriter {
 public:
  enum class To { kOut, kErr };
  struct Handlers {
    // Everything up to this number was written.
    std::function<void(std::uint64_t seq)> on_written;
    // Once: a descriptor takes no more. `broken_pipe`: the reader is gone, no error of ours. What follows is
    // dropped.
    std::function<void(To to, Status why, bool broken_pipe)> on_failed;
  };
  OutputWriter(EventLoop& loop, int out, int err, Handlers handlers);
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  // Queues bytes; `seq` is reported when they are written, 0: no report.
  void Write(To to, std::string bytes, std::uint64_t seq);
  bool idle() const noexcept { return queue_.empty(); }
  std::size_t queued() const noexcept { return queued_; }

 private:
  struct Item {
    To to;
    std::string bytes;
    std::uint64_t seq = 0;
    std::size_t written = 0;
  };
  int Fd(To to) const noexcept { return to == To::kOut ? out_ : err_; }
  void Pump();
  // False: the descriptor is full, or has failed.
  bool WriteSome(Item& item);
  void Fail(To to, int error);
  void WaitFor(int fd);

  EventLoop& loop_;
  const int out_;
  const int err_;
  const Handlers handlers_;
  std::deque<Item> queue_;
  std::size_t queued_ = 0;
  int waiting_fd_ = -1;
  bool failed_[2] = {false, false};
  bool pumping_ = false;
};

}  // namespace msa::cli
