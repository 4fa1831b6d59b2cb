// Any byte stream in any pieces: the first byte of the input is the size of the pieces. Frames come out whole
// or the reader refuses; it never holds more than it was given.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msa/base/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::wire;
  if (size < 2) return 0;
  const std::size_t step = data[0] + std::size_t{1};
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t total = rest.size();
  FrameReader reader(1u << 16);
  std::size_t delivered = 0;
  while (!rest.empty()) {
    reader.Append(rest.substr(0, step));
    rest.remove_prefix(std::min(step, rest.size()));
    for (;;) {
      auto next = reader.Next();
      if (!next.ok()) return 0;
      if (!next->has_value()) break;
      delivered += kHeaderBytes + (*next)->payload.size();
      if ((*next)->payload.size() > (1u << 16)) std::abort();
    }
  }
  if (delivered + reader.buffered() != total) std::abort();
  return 0;
}
