#include "fragments.h"

#include <algorithm>
#include <utility>

namespace msa::nam {
namespace {

constexpr std::uint32_t kMagic = 0x314e414d;  // "MAN1"
constexpr std::size_t kMaxAddress = 64;

template <class I>
void PutLe(std::string& out, I v) {
  for (std::size_t i = 0; i < sizeof(I); ++i) out.push_back(static_cast<char>(v >> (8 * i) & 0xff));
}

template <class I>
I GetLe(const char* p) {
  I v = 0;
  for (std::size_t i = 0; i < sizeof(I); ++i)
    v = static_cast<I>(v | static_cast<I>(static_cast<unsigned char>(p[i])) << (8 * i));
  return v;
}

std::uint32_t PartsOf(std::size_t total) {
  return total == 0 ? 1 : static_cast<std::uint32_t>((total + kPartBytes - 1) / kPartBytes);
}

std::size_t BytesOfPart(std::size_t total, std::uint32_t part) {
  const std::size_t begin = std::size_t{part} * kPartBytes;
  return std::min(kPartBytes, total - begin);
}

}  // namespace

Result<std::vector<std::string>> Fragment(const FragmentHead& head, std::string_view payload) {
  if (payload.size() > kMaxMessageBytes)
    return Error(Code::kResourceExhausted, "message of {} bytes for the fabric, at most {} go",
                 payload.size(), kMaxMessageBytes);
  if (head.address.size() > kMaxAddress)
    return Error(Code::kInvalidArgument, "fabric address of {} bytes, expected at most {}",
                 head.address.size(), kMaxAddress);
  const std::uint32_t parts = PartsOf(payload.size());
  std::vector<std::string> out(parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::string_view piece =
        payload.substr(std::size_t{part} * kPartBytes, BytesOfPart(payload.size(), part));
    std::string& bytes = out[part];
    bytes.reserve(kFragmentHeaderBytes + head.address.size() + piece.size());
    PutLe(bytes, kMagic);
    PutLe(bytes, static_cast<std::uint8_t>(head.kind));
    PutLe(bytes, static_cast<std::uint8_t>(head.address.size()));
    PutLe(bytes, head.type);
    PutLe(bytes, head.id);
    PutLe(bytes, head.instance);
    PutLe(bytes, static_cast<std::uint32_t>(payload.size()));
    PutLe(bytes, part);
    PutLe(bytes, parts);
    PutLe(bytes, static_cast<std::uint32_t>(piece.size()));
    bytes.append(head.address).append(piece);
  }
  return out;
}

Result<ParsedFragment> ParseFragment(std::string_view bytes) {
  const auto bad = [&](std::string_view what) {
    return Error(Code::kInvalidArgument, "fabric message of {} bytes: {}", bytes.size(), what);
  };
  if (bytes.size() < kFragmentHeaderBytes) return bad("shorter than a header");
  const char* p = bytes.data();
  if (GetLe<std::uint32_t>(p) != kMagic) return bad("not one of msa's");
  ParsedFragment out;
  const auto kind = GetLe<std::uint8_t>(p + 4);
  if (kind < static_cast<std::uint8_t>(FragmentKind::kRequest) ||
      kind > static_cast<std::uint8_t>(FragmentKind::kChecked))
    return bad("of an unknown kind");
  out.head.kind = static_cast<FragmentKind>(kind);
  const std::size_t address = GetLe<std::uint8_t>(p + 5);
  out.head.type = GetLe<std::uint16_t>(p + 6);
  out.head.id = GetLe<std::uint64_t>(p + 8);
  out.head.instance = GetLe<std::uint64_t>(p + 16);
  out.total = GetLe<std::uint32_t>(p + 24);
  out.part = GetLe<std::uint32_t>(p + 28);
  out.parts = GetLe<std::uint32_t>(p + 32);
  const std::size_t payload = GetLe<std::uint32_t>(p + 36);
  if (address > kMaxAddress) return bad("its address is too long");
  if (bytes.size() != kFragmentHeaderBytes + address + payload) return bad("its length is not what it says");
  if (out.total > kMaxMessageBytes) return bad("announces more than a message may have");
  if (out.parts != PartsOf(out.total) || out.part >= out.parts) return bad("its count of parts is wrong");
  if (payload != BytesOfPart(out.total, out.part)) return bad("its part has the wrong length");
  out.head.address = bytes.substr(kFragmentHeaderBytes, address);
  out.payload = bytes.substr(kFragmentHeaderBytes + address, payload);
  return out;
}

Reassembler::Partials::iterator Reassembler::Find(const ParsedFragment& fragment) {
  return std::find_if(partial_.begin(), partial_.end(), [&](const Partial& p) {
    return p.message.id == fragment.head.id && p.message.instance == fragment.head.instance &&
           p.message.address == fragment.head.address;
  });
}

void Reassembler::Drop(Partials::iterator partial) {
  buffered_ -= partial->message.payload.size();
  partial_.erase(partial);
}

void Reassembler::MakeRoom(const ParsedFragment& fragment) {
  std::size_t of_sender = 0;
  auto oldest = partial_.end();
  for (auto it = partial_.begin(); it != partial_.end(); ++it) {
    if (it->message.address != fragment.head.address || it->message.instance != fragment.head.instance)
      continue;
    if (of_sender++ == 0) oldest = it;
  }
  if (of_sender >= limits_.messages_of_one_sender) Drop(oldest);
  while (!partial_.empty() && partial_.size() >= limits_.messages) Drop(partial_.begin());
}

Result<std::optional<Message>> Reassembler::Add(const ParsedFragment& fragment) {
  auto it = Find(fragment);
  if (it == partial_.end()) {
    if (fragment.part != 0)
      return Error(Code::kInvalidArgument, "fragment {} of {} of message {} without those before it",
                   fragment.part, fragment.parts, fragment.head.id);
    if (fragment.parts > 1) MakeRoom(fragment);
    it = partial_.emplace(partial_.end());
    it->message = {fragment.head.kind,
                   fragment.head.type,
                   fragment.head.id,
                   fragment.head.instance,
                   std::string(fragment.head.address),
                   {}};
    it->total = fragment.total;
    it->parts = fragment.parts;
  } else if (fragment.part != it->next || fragment.parts != it->parts || fragment.total != it->total ||
             fragment.head.kind != it->message.kind || fragment.head.type != it->message.type) {
    const std::uint32_t expected = it->next;
    Drop(it);
    return Error(Code::kInvalidArgument, "fragment {} of {} of message {} where fragment {} was expected",
                 fragment.part, fragment.parts, fragment.head.id, expected);
  }
  it->message.payload.append(fragment.payload);
  buffered_ += fragment.payload.size();
  if (++it->next < it->parts) {
    // Its own may go too, when one sender's messages alone are more than there is room for.
    while (buffered_ > limits_.bytes) Drop(partial_.begin());
    return std::optional<Message>();
  }
  Message message = std::move(it->message);
  buffered_ -= message.payload.size();
  partial_.erase(it);
  return std::optional<Message>(std::move(message));
}

}  // namespace msa::nam
