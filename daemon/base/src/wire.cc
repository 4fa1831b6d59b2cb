#include "msa/base/wire.h"

namespace msa::wire {
namespace {

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

}  // namespace

std::string Pack(std::uint16_t type, std::uint64_t id, std::string_view payload) {
  std::string out;
  out.reserve(kHeaderBytes + payload.size());
  PutLe(out, static_cast<std::uint32_t>(payload.size()));
  PutLe(out, type);
  PutLe(out, std::uint16_t{0});
  PutLe(out, id);
  out.append(payload);
  return out;
}

Status CheckPayload(std::size_t size) {
  if (size <= kMaxPayloadBytes) return Status::Ok();
  return Error(Code::kResourceExhausted, "message of {} bytes exceeds the limit of {} bytes", size,
               kMaxPayloadBytes);
}

Result<std::optional<Frame>> FrameReader::Next() {
  if (consumed_ > 0 && (consumed_ == buffer_.size() || consumed_ >= (std::size_t{1} << 16))) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  if (buffered() < kHeaderBytes) return std::optional<Frame>();
  const char* p = buffer_.data() + consumed_;
  const auto length = GetLe<std::uint32_t>(p);
  if (length > max_payload_)
    return Error(Code::kInvalidArgument, "frame header announces {} bytes, the limit is {}", length,
                 max_payload_);
  if (buffered() < kHeaderBytes + length) return std::optional<Frame>();
  Frame frame;
  frame.type = GetLe<std::uint16_t>(p + 4);
  frame.flags = GetLe<std::uint16_t>(p + 6);
  frame.id = GetLe<std::uint64_t>(p + 8);
  frame.payload.assign(p + kHeaderBytes, length);
  consumed_ += kHeaderBytes + length;
  return std::optional<Frame>(std::move(frame));
}

}  // namespace msa::wire
