// Fabric messages as any client may send them: the input is cut into datagrams (a length of two bytes before
// each), some with a right header put before them, so that the reassembly is reached. Its limits hold, and
// what comes out has the length that its fragments announced.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fragments.h"

namespace {

using namespace msa::nam;

// The first byte chooses message, part and count; the rest is the payload, cut or filled to the right length.
std::string WithHeader(std::string_view bytes) {
  const auto choice = static_cast<unsigned char>(bytes[0]);
  FragmentHead head;
  head.type = 0x0801;
  head.id = choice & 7;
  head.instance = choice >> 3 & 1;
  head.address = choice & 16 ? "0123456789abcdef" : "fedcba9876543210";
  const std::size_t total = (choice >> 5) * kPartBytes / 2;
  std::string payload(total, 'x');
  const auto fragments = Fragment(head, payload);
  const std::size_t part = bytes.size() > 1 ? static_cast<unsigned char>(bytes[1]) % (*fragments).size() : 0;
  std::string out = (*fragments)[part];
  // A few bytes of the header overwritten.
  if (bytes.size() > 3 && static_cast<unsigned char>(bytes[2]) < out.size())
    out[static_cast<unsigned char>(bytes[2])] = bytes[3];
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const Reassembler::Limits limits{.messages = 4, .bytes = 3 * kPartBytes, .messages_of_one_sender = 2};
  Reassembler reassembler(limits);
  while (rest.size() >= 2) {
    const std::size_t length = static_cast<unsigned char>(rest[0]) | static_cast<std::size_t>(rest[1] & 0x7f)
                                                                         << 8;
    const bool framed = (rest[1] & 0x80) != 0;
    rest.remove_prefix(2);
    const std::string_view datagram = rest.substr(0, length);
    rest.remove_prefix(datagram.size());
    const std::string bytes = framed && !datagram.empty() ? WithHeader(datagram) : std::string(datagram);
    const auto fragment = ParseFragment(bytes);
    if (!fragment.ok()) continue;
    const std::size_t total = fragment->total;
    const auto message = reassembler.Add(*fragment);
    if (message.ok() && message->has_value() && (*message)->payload.size() != total) std::abort();
    if (reassembler.unfinished() > limits.messages || reassembler.buffered() > limits.bytes) std::abort();
  }
  return 0;
}
