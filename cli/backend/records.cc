#include "backend/records.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "msa/topology/host_list.h"

namespace msa::cli {
namespace {

// 100 years in seconds: beyond it a time is none.
constexpr std::uint64_t kLastSecond = 4'102'444'800;

Status Broken(std::size_t record, std::string_view how) {
  return Error(
      Code::kDataLoss,
      "record {} of Slurm's answer {}; is another program in PATH under the name of Slurm's command?", record,
      how);
}

}  // namespace

RecordFormat::RecordFormat(std::string_view token)
    : between_(fmt::format("\x1f{}\x1f", token)), end_(fmt::format("\x1f{}\x1e", token)) {}

std::string RecordFormat::Ask(std::span<const std::string_view> fields) const {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i)
    out += fmt::format("{}{}:{}", i > 0 ? "," : "", fields[i], i + 1 < fields.size() ? between_ : end_);
  return out;
}

Result<std::vector<std::vector<std::string>>> RecordFormat::Read(std::string_view text,
                                                                 std::size_t fields) const {
  std::vector<std::vector<std::string>> out;
  while (!text.empty()) {
    std::vector<std::string> record;
    const std::size_t end = text.find(end_);
    if (end == std::string_view::npos) return Broken(out.size() + 1, "has no end");
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(end + end_.size());
    for (;;) {
      const std::size_t mark = rest.find(between_);
      record.emplace_back(rest.substr(0, mark));
      if (mark == std::string_view::npos) break;
      rest.remove_prefix(mark + between_.size());
    }
    if (record.size() != fields)
      return Broken(out.size() + 1, fmt::format("has {} fields, expected {}", record.size(), fields));
    if (!text.empty() && text.front() != '\n') return Broken(out.size() + 1, "does not end its line");
    if (!text.empty()) text.remove_prefix(1);
    out.push_back(std::move(record));
  }
  return out;
}

Result<std::vector<std::vector<std::string>>> RecordFormat::ReadParsable(std::string_view text,
                                                                         std::size_t fields) const {
  std::vector<std::vector<std::string>> out;
  while (!text.empty()) {
    std::vector<std::string> record;
    while (record.size() < fields) {
      const std::size_t mark = text.find(between_);
      if (mark == std::string_view::npos) return Broken(out.size() + 1, "has no end");
      record.emplace_back(text.substr(0, mark));
      text.remove_prefix(mark + between_.size());
    }
    if (text.empty() || text.front() != '\n') return Broken(out.size() + 1, "does not end its line");
    text.remove_prefix(1);
    out.push_back(std::move(record));
  }
  return out;
}

std::string_view Given(std::string_view text) {
  constexpr std::array<std::string_view, 7> kNothing = {"(null)", "N/A",  "n/a", "Unknown",
                                                        "NONE",   "none", "None"};
  const auto it = std::find(kNothing.begin(), kNothing.end(), text);
  return it == kNothing.end() ? text : std::string_view();
}

std::uint64_t SlurmNumber(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const std::size_t used = static_cast<std::size_t>(end - text.data());
  if (used == text.size()) return value;
  const std::size_t unit = kUnits.find(text[used]);
  if (unit == std::string_view::npos) return value;
  const unsigned shift = 10 * (static_cast<unsigned>(unit) + 1);
  return value > (UINT64_MAX >> shift) ? 0 : value << shift;
}

std::int64_t SlurmTime(std::string_view text) {
  std::uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds > kLastSecond) return 0;
  return static_cast<std::int64_t>(seconds) * 1000;
}

std::vector<std::string> NodesOfList(std::string_view list) {
  if (Given(list).empty()) return {};
  Result<std::vector<std::string>> names = ExpandHostList(list);
  return names.ok() ? *std::move(names) : std::vector<std::string>{std::string(list)};
}

}  // namespace msa::cli
