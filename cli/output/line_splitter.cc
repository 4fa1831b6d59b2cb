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

void LineSplitter::MayBePrompt(Part& part, bool prompt) {
  if (part.prompt == prompt) return;
  part.prompt = prompt;
  if (prompt)
    ++prompts_;
  else
    --prompts_;
}

LineSplitter::Held::iterator LineSplitter::Drop(Held::iterator it) {
  MayBePrompt(it->second, false);
  return held_.erase(it);
}

std::string LineSplitter::Add(const wire::Output& record) {
  if (record.spawn != 0) alone_ = false;
  const Source source{record.stream, record.spawn, record.rank.value};
  Task& task = tasks_[{record.spawn, record.rank.value}];
  const std::uint64_t written = task.bytes[record.stream] += record.data.size();
  ++task.records;
  ++records_;
  if (alone_) return record.data;
  const auto it = held_.try_emplace(source).first;
  Part& held = it->second;
  held.rounds = 0;
  held.task = &task;
  held.of_others = records_ - task.records;
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
  MayBePrompt(held, written % kStdioBuffer != 0);
  if (held.text.empty()) Drop(it);
  return out;
}

std::string LineSplitter::Idle(wire::Stream stream) {
  std::string out;
  if (labels_ == Labels::kYes) return out;
  for (auto it = held_.begin(); it != held_.end();) {
    Part& part = it->second;
    if (std::get<0>(it->first) != stream || !part.prompt) {
      ++it;
      continue;
    }
    const bool busy = records_ - part.task->records != part.of_others;
    if (++part.rounds <= (busy ? kBusyRounds : 1)) {
      ++it;
      continue;
    }
    out += part.text;
    it = Drop(it);
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
    it = Drop(it);
  }
  return out;
}

}  // namespace msa::cli
