#pragma once
// The relay's loop: packets out of the interface, through the line, back into the interface. One thread.

#include <cstdint>
#include <vector>

#include "msa/gateway/delay_line.h"

#include "tun.h"

namespace msa::gateway {

struct Counters {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t dropped_full = 0;     // the line had no room
  std::uint64_t dropped_refused = 0;  // the kernel would not take it back
};

class Relay {
 public:
  Relay(Tun tun, const DelayLineOptions& options);

  int fd() const { return tun_.fd(); }
  // Takes what is there, gives back what is due. When to come again at the latest; none: when fd is readable.
  // Errors of Tun.
  Result<std::optional<SteadyTime>> Turn();
  const Counters& counters() const { return counters_; }

 private:
  Status TakeIn();
  Status GiveOut();
  Status GiveBack(std::span<const char> packet);

  Tun tun_;
  bool direct_;  // neither delay nor rate: nothing waits
  DelayLine line_;
  std::vector<char> scratch_;
  Counters counters_;
};

}  // namespace msa::gateway
