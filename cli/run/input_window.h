#pragma once

#include <cstdint>
#include <string>

#include "msa/base/messages.h"

namespace msa::cli {

// The bytes of standard input that rank 0 has not taken yet, kept so that a session that was cut can go on
// without loss or repetition. Offsets count from the start of the input. Pure; one thread.
class InputWindow {
 public:
  // Room for so many further bytes (wire::kStdioWindowBytes in all).
  std::size_t room() const noexcept;
  void Append(std::string_view bytes);
  void MarkEof() noexcept { eof_ = true; }

  // A new session begins: nothing is sent before its first InputAck.
  void BeginSession() noexcept { open_ = false; }
  // `ack` within what was read, or it is ignored. The first one of a session says where to go on from.
  void OnAck(const wire::InputAck& ack);
  // True once rank 0 takes no more.
  bool closed() const noexcept { return closed_; }
  bool eof() const noexcept { return eof_; }

  // The next piece to be sent, at most wire::kStdioChunkBytes; false if there is none.
  bool Next(wire::Input* out);

 private:
  std::string bytes_;       // from base_ on
  std::uint64_t base_ = 0;  // acknowledged
  std::uint64_t sent_ = 0;  // handed out by Next
  bool eof_ = false;
  bool eof_sent_ = false;
  bool open_ = false;
  bool closed_ = false;
};

}  // namespace msa::cli
