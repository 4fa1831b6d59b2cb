#pragma once
// The local wire format: frames of a 16-byte header and a payload, all integers little-endian.
//
//   header   u32 payload length | u16 message type | u16 flags | u64 correlation id
//   payload  the message's fields in order: u8 u16 u32 u64 i32 i64 as they are, bool as u8 (0 or 1), enums as
//            their integer, a time as i64 milliseconds since the Unix epoch, a string or blob as u32 length +
//            bytes, a list as u32 count + elements, an optional as bool + value, a nested message as its
//            fields.
//
// A message is a struct with `static constexpr std::uint16_t kType` (top-level ones only) and
//   template <class A> void Fields(A& a) { a(first, second, ...); }
// New fields are appended at the end: a decoder leaves missing trailing fields of a *top-level* message at
// their defaults and ignores surplus bytes; nested messages are fixed. It serves noded <-> jobd, jobd <->
// jobd, tasks -> jobd and Slurm plugins -> noded. Nothing here blocks or locks; objects belong to one thread.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "msa/base/codec.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa::wire {

inline constexpr std::size_t kHeaderBytes = 16;
// 64 MiB: one fence of 4,096 ranks with 16 KiB each; a larger length is a broken or hostile peer.
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{64} << 20;
struct Frame {
  std::uint16_t type = 0;
  std::uint16_t flags = 0;
  std::uint64_t id = 0;  // pairs a reply with its request; 0 if there is none
  std::string payload;
};

// The payload of a message.
template <class M>
std::string Encode(const M& message) {
  std::string out;
  Encoder encoder(out);
  const_cast<M&>(message).Fields(encoder);  // Encoder only reads
  return out;
}

// kInvalidArgument: truncated, over-long or inconsistent input.
template <class M>
Result<M> Decode(std::string_view payload) {
  M message;
  Decoder decoder(payload);
  message.Fields(decoder);
  if (!decoder.ok())
    return Error(Code::kInvalidArgument, "message of type {} with {} bytes is truncated or malformed",
                 M::kType, payload.size());
  return message;
}

// Header and payload, ready to be sent. The payload must be within kMaxPayloadBytes; see CheckPayload.
std::string Pack(std::uint16_t type, std::uint64_t id, std::string_view payload);
template <class M>
std::string Pack(const M& message, std::uint64_t id = 0) {
  return Pack(M::kType, id, Encode(message));
}

// kResourceExhausted, naming size and limit, if a payload of `size` bytes may not be sent.
Status CheckPayload(std::size_t size);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_payload = kMaxPayloadBytes) : max_payload_(max_payload) {}
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // A whole frame, nullopt if more bytes are needed; kInvalidArgument if the header announces more than the
  // limit (the connection is beyond repair: close it).
  Result<std::optional<Frame>> Next();
  std::size_t buffered() const noexcept { return buffer_.size() - consumed_; }

 private:
  std::size_t max_payload_;
  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace msa::wire
