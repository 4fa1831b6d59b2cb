#include "spawn_keys.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "msa/base/wire.h"

namespace msa::jobd {
namespace {

constexpr std::int64_t kMaxDurationMs = 366LL * 24 * 3600 * 1000;

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find_first_of(separators);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string> Words(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  for (const std::string_view part : Split(text, separators))
    if (const std::string_view word = Trim(part); !word.empty()) words.emplace_back(word);
  return words;
}

template <class N>
bool ReadNumber(std::string_view text, N& number) {
  text = Trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// One triplet's numbers within 0 to maxprocs. The walk is bounded by maxprocs, not by what the text names.
Status AddTriplet(std::string_view triplet, std::uint32_t maxprocs, std::set<std::uint32_t>& members) {
  const auto parts = Split(triplet, ":");
  std::int64_t numbers[3] = {0, 0, 1};
  if (parts.size() > 3)
    return Error(Code::kInvalidArgument, "'{}' has more than two ':'; expected a, a:b or a:b:c", triplet);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!ReadNumber(parts[i], numbers[i]) || std::abs(numbers[i]) > std::numeric_limits<std::int32_t>::max())
      return Error(Code::kInvalidArgument, "'{}' is no number in '{}'; expected a, a:b or a:b:c",
                   Trim(parts[i]), triplet);
  if (parts.size() == 1) numbers[1] = numbers[0];
  auto [first, last, stride] = numbers;
  if (stride == 0)
    return Error(Code::kInvalidArgument, "'{}' has the stride 0; expected 1 or more, or a negative one",
                 triplet);
  const std::int64_t most = maxprocs;
  if (stride < 0) {  // the same numbers, counted up
    if (last > first) return Status::Ok();
    const std::int64_t lowest = first - (first - last) / -stride * -stride;
    last = first;
    first = lowest;
    stride = -stride;
  }
  if (first < 0) first += (-first + stride - 1) / stride * stride;
  for (std::int64_t n = first; n <= std::min(last, most); n += stride)
    members.insert(static_cast<std::uint32_t>(n));
  return Status::Ok();
}

Result<std::uint32_t> Count(const char* key, const std::string& text) {
  std::uint32_t number = 0;
  if (text.empty()) return number;
  if (!ReadNumber(text, number) || number == 0)
    return Error(Code::kInvalidArgument, "info key '{}': '{}' is no count; expected a number from 1", key,
                 text);
  return number;
}

Result<Millis> Duration(const char* key, const std::string& text) {
  auto duration = text.empty() ? Result<Millis>(Millis(0)) : ParseDuration(text);
  if (!duration.ok()) return duration.status().WithContext(fmt::format("info key '{}'", key));
  return duration;
}

// "KEY = VALUE" lines, '#' begins a comment.
Status ApplyFile(const std::string& text, wire::SpawnCommand& command) {
  const std::pair<std::string_view, std::string*> keys[] = {
      {"arch", &command.arch},       {"soft", &command.soft},         {"host", &command.host},
      {"wdir", &command.wdir},       {"path", &command.path},         {"msa_nodes", &command.msa_nodes},
      {"msa_ppn", &command.msa_ppn}, {"msa_wait", &command.msa_wait}, {"msa_time", &command.msa_time},
      {"msa_nam", &command.msa_nam}};
  std::size_t number = 0;
  for (const std::string_view raw : Split(text, "\n")) {
    ++number;
    const std::string_view line = Trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    const std::string_view key = Trim(line.substr(0, equals));
    const auto found =
        std::find_if(std::begin(keys), std::end(keys), [&](const auto& k) { return k.first == key; });
    if (equals == std::string_view::npos || found == std::end(keys))
      return Error(
          Code::kInvalidArgument,
          "line {}: '{}'; expected KEY = VALUE with one of the keys arch, soft, host, wdir, path, msa_nodes, "
          "msa_ppn, msa_wait, msa_time, msa_nam",
          number, line);
    if (found->second->empty()) *found->second = Trim(line.substr(equals + 1));
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<std::uint32_t>> ParseSoftSet(std::string_view text, std::uint32_t maxprocs) {
  if (Trim(text).empty()) return std::vector<std::uint32_t>{maxprocs};
  std::set<std::uint32_t> members;
  for (const std::string_view triplet : Split(text, ","))
    if (const Status added = AddTriplet(Trim(triplet), maxprocs, members); !added.ok())
      return added.WithContext(fmt::format("info key 'soft': '{}'", text));
  if (members.empty())
    return Error(Code::kInvalidArgument,
                 "info key 'soft': '{}' has no number from 0 to maxprocs, which is {}", text, maxprocs);
  return std::vector<std::uint32_t>(members.rbegin(), members.rend());
}

Result<Millis> ParseDuration(std::string_view text) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  const auto bad = [&] {
    return Error(
        Code::kInvalidArgument,
        "'{}' is no duration; expected seconds, or numbers with ms, s, m, h or d as in 1h30m, up to a year",
        text);
  };
  std::string_view rest = Trim(text);
  std::int64_t sum = 0;
  if (rest.empty()) return bad();
  while (!rest.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0) return bad();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::string_view unit = rest.substr(0, rest.find_first_of("0123456789"));
    const auto found =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return u.first == unit; });
    const bool plain = unit.empty() && rest.empty() && sum == 0;
    if (!plain && found == std::end(kUnits)) return bad();
    const std::int64_t factor = plain ? 1000 : found->second;
    if (number > kMaxDurationMs / factor) return bad();
    sum += number * factor;
    if (sum > kMaxDurationMs) return bad();
    rest.remove_prefix(unit.size());
  }
  return Millis(sum);
}

Result<Bytes> ParseBytes(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(trimmed.data() + trimmed.size() - end));
  if (unit.size() == 3 && unit.ends_with("iB")) unit.remove_suffix(2);
  constexpr std::string_view kUnits = "KMGT";
  const auto found = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
  const int shift = found == std::string_view::npos ? 0 : 10 * (static_cast<int>(found) + 1);
  if (error != std::errc() || (!unit.empty() && shift == 0) || value == 0 ||
      value > (std::uint64_t{std::numeric_limits<std::int64_t>::max()} >> shift))
    return Error(Code::kInvalidArgument,
                 "'{}' is no size; expected bytes above 0, or a number with K, M, G or T as in 64M", text);
  return Bytes(value << shift);
}

Result<ParsedCommand> ParseSpawnCommand(
    wire::SpawnCommand command,
    const std::function<Result<std::string>(const std::string& path)>& read_file) {
  if (!command.file.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::string text, read_file(command.file));
    if (const Status applied = ApplyFile(text, command); !applied.ok())
      return applied.WithContext(fmt::format("info key 'file': '{}'", command.file));
  }
  if (command.maxprocs == 0 || command.maxprocs > wire::kMaxListItems)
    return Error(Code::kInvalidArgument, "maxprocs is {}; expected 1 to {}", command.maxprocs,
                 wire::kMaxListItems);
  ParsedCommand out;
  MSA_ASSIGN_OR_RETURN(out.plan.counts, ParseSoftSet(command.soft, command.maxprocs));
  MSA_ASSIGN_OR_RETURN(out.plan.nodes, Count("msa_nodes", command.msa_nodes));
  MSA_ASSIGN_OR_RETURN(out.plan.per_node, Count("msa_ppn", command.msa_ppn));
  MSA_ASSIGN_OR_RETURN(out.wait, Duration("msa_wait", command.msa_wait));
  MSA_ASSIGN_OR_RETURN(out.time, Duration("msa_time", command.msa_time));
  if (!command.msa_nam.empty()) {
    auto nam = ParseBytes(command.msa_nam);
    if (!nam.ok()) return nam.status().WithContext("info key 'msa_nam'");
    out.nam = *nam;
  }
  out.plan.module = Trim(command.arch);
  out.plan.hosts = Words(command.host, ",");
  out.program = command.program;
  out.search = Words(command.path, ": \t");
  out.wdir = command.wdir;
  const auto& plan = out.plan;
  const auto wrong = [&](std::uint32_t count) {
    return count > 0 && plan.nodes > 0 &&
           (count < plan.nodes || (plan.per_node > 0 && count > std::uint64_t{plan.nodes} * plan.per_node));
  };
  std::erase_if(out.plan.counts, wrong);
  if (plan.counts.empty())
    return Error(
        Code::kInvalidArgument,
        "info keys 'msa_nodes' {} and 'msa_ppn' {}: none of the numbers of processes asked fits; expected at "
        "least one process a node and at most {} in all",
        plan.nodes, plan.per_node == 0 ? std::string("(any)") : std::to_string(plan.per_node),
        plan.per_node == 0 ? std::string("maxprocs")
                           : std::to_string(std::uint64_t{plan.nodes} * plan.per_node));
  return out;
}

}  // namespace msa::jobd
