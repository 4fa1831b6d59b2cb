#pragma once
// Our ends of the pipes to a task.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/unique_fd.h"

namespace msa::launch {

// Reads a task's stdout or stderr. Loop's thread.
class OutputPipe {
 public:
  // on_data may pause the pipe; on_end once, at the end of file or on a read error, and the pipe is closed
  // then.
  struct Handlers {
    std::function<void(std::string data)> on_data;
    std::function<void()> on_end;
  };
  OutputPipe(EventLoop& loop, UniqueFd fd, Handlers handlers);
  ~OutputPipe();
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  bool open() const noexcept { return static_cast<bool>(fd_); }
  void Resume();
  void Pause();
  // Reads what the pipe holds now, until it is empty, paused, or has given what a pipe can hold, and closes
  // it unless paused. on_end is not called.
  void DrainAndClose();

 private:
  void OnReadable();
  // False: nothing there, or the end (then closed).
  bool ReadOnce();
  void Close();

  EventLoop& loop_;
  UniqueFd fd_;
  Handlers handlers_;
  bool paused_ = true;
  std::size_t drained_ = 0;
};

// Feeds a task's stdin. Loop's thread.
class InputPipe {
 public:
  // Bytes that the pipe took since the last call; closed: it takes no more.
  using Progress = std::function<void(std::size_t taken, bool closed)>;
  InputPipe(EventLoop& loop, UniqueFd fd, Progress on_progress);
  ~InputPipe();
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;

  bool open() const noexcept { return static_cast<bool>(fd_); }
  // Queues bytes; they are written by the loop, so that no handler runs inside this call.
  void Write(std::string data, bool eof);
  void Close();

 private:
  void OnEvents(std::uint32_t events);

  EventLoop& loop_;
  UniqueFd fd_;
  Progress on_progress_;
  std::deque<std::string> queue_;
  std::size_t offset_ = 0;  // written of the first
  bool eof_ = false;
};

}  // namespace msa::launch
