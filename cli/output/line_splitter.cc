#include "output/line_splitter.h"

#include <fmt/format.h>

namespace msa::cli {

LineSplitter::LineSplitter(Labels labels, std::uint32_t tasks)
    : labels_(labels),
      width_(fmt::formatted_size("{}", tasks > 0 ? tasks - 1 : 0)),
      alone_(tasks == 1 && labels == Labels::kNo) {}

std::string LineSplitter::Label(const Source& source) const {
  if (labels_ == Labels::kNo) return "";
  const auto& [stream, spawn, rank] = source;
  return spawn == 0 ? fmt::format("{:>{}}: ", rank, width_) : fmt::format("s{}.{}: ", spawn, rank);
}

std::string LineSplitter::Add(const wire::Output& record) {
  if (record.spawn != 0) alone_ = false;
  if (alone_) return record.data;
  const Source source{record.stream, record.spawn, record.rank.value};
  Part& held = held_[source];
  held.grown = true;
  const std::string label = Label(source);
  std::string out;
  std::string_view rest = record.data;
  if (label.empty()) {
    const std::size_t whole = rest.rfind('\n') + 1;  // npos + 1 is 0
    if (whole > 0) {
      out = held.text + std::string(rest.substr(0, whole));
      held.text.clear();
      rest.remove_prefix(whole);
    }
  } else {
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      out += label + held.text;
      out += rest.substr(0, end + 1);
      held.text.clear();
      rest.remove_prefix(end + 1);
    }
  }
  held.text += rest;
  if (held.text.size() > kMaxHeld) {
    out += label + held.text + (label.empty() ? "" : "\n");
    held.text.clear();
  }
  if (held.text.empty()) held_.erase(source);
  return out;
}

std::string LineSplitter::Idle(wire::Stream stream) {
  std::string out;
  if (labels_ == Labels::kYes) return out;
  for (auto it = held_.begin(); it != held_.end();) {
    Part& part = it->second;
    if (std::get<0>(it->first) != stream || part.grown) {
      if (std::get<0>(it->first) == stream) part.grown = false;
      ++it;
      continue;
    }
    out += part.text;
    it = held_.erase(it);
  }
  return out;
}

std::string LineSplitter::Rest(wire::Stream stream) {
  std::string out;
  for (auto it = held_.begin(); it != held_.end();) {
    if (std::get<0>(it->first) != stream) {
      ++it;
      continue;
    }
    const std::string label = Label(it->first);
    out += label + it->second.text + (label.empty() ? "" : "\n");
    it = held_.erase(it);
  }
  return out;
}

}  // namespace msa::cli
