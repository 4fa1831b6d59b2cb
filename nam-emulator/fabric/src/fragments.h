#pragma once
// How a message of NAM's protocol goes over fabric messages: in fragments with a header of their own, since a
// lease may be larger than any receive buffer, and since an answer must find its way.
//
//   header   u32 magic | u8 kind | u8 address bytes | u16 type | u64 id | u64 instance | u32 total | u32 part
//   |
//            u32 parts | u32 payload bytes, little-endian; then the sender's address (fi_getname; only
//            towards the server), then the payload.
//
// Fragments of one message arrive in order (FI_ORDER_SAS); those of several may be mixed. Nothing here calls
// libfabric, blocks or locks.

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::nam {

// A whole fragment: below 16 KiB, where ofi_rxm would begin to fetch it with a round trip of its own.
inline constexpr std::size_t kFragmentBytes = 16000;
inline constexpr std::size_t kFragmentHeaderBytes = 40;
// Payload of every fragment but the last of a message.
inline constexpr std::size_t kPartBytes = kFragmentBytes - kFragmentHeaderBytes - 64;
// A signed lease has at most 4 MiB; twice that leaves room for what stands around it.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 20;

enum class FragmentKind : std::uint8_t {
  kRequest = 1,  // of NAM's protocol: a wire::Frame
  kReply = 2,
  kCheck = 3,    // what did you have against this transfer? CheckQuestion
  kChecked = 4,  // CheckAnswer
};

struct FragmentHead {
  FragmentKind kind = FragmentKind::kRequest;
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::uint64_t instance = 0;  // random, of the sender: a restarted one has another
  std::string_view address;    // of the sender, at most 64 bytes
};

// What a transfer that failed had asked for. A provider need not tell why it refused one (tcp;ofi_rxm drops
// the connection), so the client asks.
struct CheckQuestion {
  static constexpr std::uint16_t kType = 1;
  std::uint64_t key = 0;
  std::uint64_t offset = 0;  // from the registered memory's begin
  std::uint64_t bytes = 0;
  bool write = false;
  template <class A>
  void Fields(A& a) {
    a(key, offset, bytes, write);
  }
};
struct CheckAnswer {
  static constexpr std::uint16_t kType = 2;
  std::uint8_t code = 0;  // msa::Code
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(code, message);
  }
};

// The fragments of a message, ready to be sent. At least one. kResourceExhausted: longer than
// kMaxMessageBytes. kInvalidArgument: an address of more than 64 bytes.
Result<std::vector<std::string>> Fragment(const FragmentHead& head, std::string_view payload);

struct Message {
  FragmentKind kind = FragmentKind::kRequest;
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::uint64_t instance = 0;
  std::string address;
  std::string payload;
};

// One fragment, its views into the bytes that were parsed.
struct ParsedFragment {
  FragmentHead head;
  std::uint32_t total = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::string_view payload;
};
// kInvalidArgument: says what is wrong with it. Trusts nothing.
Result<ParsedFragment> ParseFragment(std::string_view bytes);

// Puts messages together again. What is unfinished is bounded: by count and by bytes, the oldest goes first.
class Reassembler {
 public:
  struct Limits {
    std::size_t messages = 64;                 // unfinished at a time
    std::size_t bytes = 4 * kMaxMessageBytes;  // of their payload so far
    std::size_t messages_of_one_sender = 16;
  };
  Reassembler() : Reassembler(Limits()) {}
  explicit Reassembler(Limits limits) : limits_(limits) {}

  // The message that this fragment completes, nullopt if more are to come. kInvalidArgument: not a fragment
  // that could follow; what had come of its message is dropped.
  Result<std::optional<Message>> Add(const ParsedFragment& fragment);

  std::size_t unfinished() const noexcept { return partial_.size(); }
  std::size_t buffered() const noexcept { return buffered_; }

 private:
  struct Partial {
    Message message;
    std::uint32_t total = 0;
    std::uint32_t next = 0;
    std::uint32_t parts = 0;
  };
  using Partials = std::list<Partial>;
  Partials::iterator Find(const ParsedFragment& fragment);
  void Drop(Partials::iterator partial);
  void MakeRoom(const ParsedFragment& fragment);

  Limits limits_;
  Partials partial_;  // oldest first
  std::size_t buffered_ = 0;
};

}  // namespace msa::nam
