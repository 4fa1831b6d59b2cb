#pragma once
// Contents for regions and files.

#include <cstdint>
#include <string>

namespace msa::e2e {

// Bytes without a period that a mistake in offsets could hit.
inline std::string Noise(std::size_t bytes, std::uint64_t seed) {
  std::string out(bytes, '\0');
  std::uint64_t x = seed * 0x9e3779b97f4a7c15U + 1;
  for (char& c : out) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x >> 32);
  }
  return out;
}

}  // namespace msa::e2e
