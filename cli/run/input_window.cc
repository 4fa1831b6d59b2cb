#include "run/input_window.h"

#include <algorithm>

namespace msa::cli {

std::size_t InputWindow::room() const noexcept {
  if (closed_ || eof_ || bytes_.size() >= wire::kStdioWindowBytes) return 0;
  return wire::kStdioWindowBytes - bytes_.size();
}

void InputWindow::Append(std::string_view bytes) { bytes_.append(bytes); }

void InputWindow::OnAck(const wire::InputAck& ack) {
  if (ack.closed) {
    closed_ = true;
    bytes_.clear();
    return;
  }
  if (ack.offset < base_ || ack.offset > base_ + bytes_.size()) return;
  bytes_.erase(0, static_cast<std::size_t>(ack.offset - base_));
  base_ = ack.offset;
  sent_ = std::max(sent_, base_);
  if (!open_) {
    open_ = true;
    sent_ = base_;
    eof_sent_ = false;
  }
}

bool InputWindow::Next(wire::Input* out) {
  if (!open_ || closed_ || eof_sent_) return false;
  const std::size_t ahead = static_cast<std::size_t>(sent_ - base_);
  const std::size_t size = std::min<std::size_t>(bytes_.size() - ahead, wire::kStdioChunkBytes);
  const bool last = eof_ && ahead + size == bytes_.size();
  if (size == 0 && !last) return false;
  out->offset = sent_;
  out->data.assign(bytes_, ahead, size);
  out->eof = last;
  sent_ += size;
  eof_sent_ = last;
  return true;
}

}  // namespace msa::cli
