#pragma once
// A link's delay and rate, for packets: what goes in comes out in order, at the time when a wire of that rate
// and length would have delivered it. Pure: time enters as an argument and never goes back. One thread.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "msa/base/clock.h"

namespace msa::gateway {

struct DelayLineOptions {
  std::chrono::nanoseconds delay{0};  // one way
  std::uint64_t bits_per_second = 0;  // 0: as fast as it goes
  std::size_t capacity = 16U << 20;   // bytes of packets under way, at least twice `packet`
  std::size_t packet = 66U << 10;     // bytes of the largest packet, its virtio header included
};

class DelayLine {
 public:
  explicit DelayLine(const DelayLineOptions& options);

  // Room for one packet of the largest size, where it is read into; valid until Commit. Empty: the line is
  // full.
  std::span<char> Reserve();
  // The packet stands in the first `size` bytes of what Reserve gave. `wire_bytes`: how many count for the
  // rate.
  void Commit(std::size_t size, std::size_t wire_bytes, SteadyTime now);

  // When the first packet is due; none: the line is empty.
  std::optional<SteadyTime> NextDue() const;
  // The first packet. The line must not be empty.
  std::span<const char> Front() const;
  void Pop();

  std::size_t packets() const { return packets_; }

 private:
  struct Header {
    SteadyTime due;
    std::size_t size = 0;  // kWrap: the next one stands at the begin
  };
  static constexpr std::size_t kWrap = ~std::size_t{0};
  static constexpr std::size_t kStride(std::size_t size);

  Header ReadHeader(std::size_t at) const;
  void WriteHeader(std::size_t at, const Header& header);

  DelayLineOptions options_;
  std::size_t size_;  // of the ring
  std::unique_ptr<char[]> ring_;
  std::size_t head_ = 0;  // the first packet's header
  std::size_t tail_ = 0;  // where the next one goes
  std::size_t packets_ = 0;
  std::size_t reserved_ = 0;
  SteadyTime link_free_{};  // when the wire has sent all before
};

}  // namespace msa::gateway
