#pragma once

#include <cstdint>

namespace msa::wire {

// A frame of a session (0x04xx, see messages.h): msactl -> head, and back as it came. Somebody is there.
struct Ping {
  static constexpr std::uint16_t kType = 0x04f0;
  template <class A>
  void Fields(A& a) {
    (void)a;
  }
};

}  // namespace msa::wire
