#include "msa/gateway/delay_line.h"

#include <algorithm>
#include <cstring>

namespace msa::gateway {

constexpr std::size_t DelayLine::kStride(std::size_t size) {
  return sizeof(Header) + (size + alignof(Header) - 1) / alignof(Header) * alignof(Header);
}

DelayLine::DelayLine(const DelayLineOptions& options)
    : options_(options),
      size_(kStride(std::max(options.capacity, 2 * kStride(options.packet)))),
      ring_(new char[size_]) {}

DelayLine::Header DelayLine::ReadHeader(std::size_t at) const {
  Header header;
  std::memcpy(&header, ring_.get() + at, sizeof header);
  return header;
}

void DelayLine::WriteHeader(std::size_t at, const Header& header) {
  std::memcpy(ring_.get() + at, &header, sizeof header);
}

// The ring's used part is [head, tail) or, wrapped, [head, end) and [0, tail); a packet never wraps.
std::span<char> DelayLine::Reserve() {
  const std::size_t need = kStride(options_.packet);
  if (packets_ == 0) head_ = tail_ = 0;
  const bool wrapped = packets_ > 0 && tail_ <= head_;
  if (!wrapped && size_ - tail_ < need) {
    if (head_ < need) return {};
    if (size_ - tail_ >= sizeof(Header)) WriteHeader(tail_, {.size = kWrap});
    reserved_ = 0;
  } else {
    if (wrapped && head_ - tail_ < need) return {};
    reserved_ = tail_;
  }
  return {ring_.get() + reserved_ + sizeof(Header), options_.packet};
}

void DelayLine::Commit(std::size_t size, std::size_t wire_bytes, SteadyTime now) {
  SteadyTime sent = now;
  if (options_.bits_per_second != 0) {
    const double seconds =
        8.0 * static_cast<double>(wire_bytes) / static_cast<double>(options_.bits_per_second);
    sent = std::max(now, link_free_) +
           std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
    link_free_ = sent;
  }
  WriteHeader(reserved_, {.due = sent + options_.delay, .size = size});
  tail_ = reserved_ + kStride(size);
  ++packets_;
}

std::optional<SteadyTime> DelayLine::NextDue() const {
  if (packets_ == 0) return std::nullopt;
  return ReadHeader(head_).due;
}

std::span<const char> DelayLine::Front() const {
  return {ring_.get() + head_ + sizeof(Header), ReadHeader(head_).size};
}

void DelayLine::Pop() {
  head_ += kStride(ReadHeader(head_).size);
  --packets_;
  if (packets_ == 0) return;
  if (size_ - head_ < sizeof(Header) || ReadHeader(head_).size == kWrap) head_ = 0;
}

}  // namespace msa::gateway
