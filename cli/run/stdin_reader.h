#pragma once

#include <functional>
#include <optional>

#include "msa/adapters/process/event_loop.h"

#include "run/input_window.h"

namespace msa::cli {

// Fills an InputWindow from a descriptor as long as there is room, without changing the descriptor's flags. A
// terminal is read only while this process is in its foreground. One thread, the loop's.
class StdinReader {
 public:
  StdinReader(EventLoop& loop, int fd, InputWindow& window, std::function<void()> on_input);
  ~StdinReader();
  StdinReader(const StdinReader&) = delete;
  StdinReader& operator=(const StdinReader&) = delete;

  // Reads on if there is room.
  void Resume();

 private:
  void ReadOnce();
  void StopWatching();
  void LookAgainLater();
  bool InBackground() const;

  EventLoop& loop_;
  const int fd_;
  InputWindow& window_;
  const std::function<void()> on_input_;
  bool watching_ = false;
  std::optional<TimerId> timer_;
};

// True if reading from `fd` can bring anything: not closed, not /dev/null.
bool CanBringInput(int fd);

}  // namespace msa::cli
