#include "msa/topology/host_list.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

namespace msa {
namespace {

// 18 digits fit std::uint64_t with room to count on.
constexpr std::size_t kMaxDigits = 18;
// Longest host name of POSIX: without a limit a short expression could fill the memory with long names.
constexpr std::size_t kMaxNameBytes = 255;

Status Bad(std::string_view expression, std::string_view why) {
  return Error(Code::kInvalidArgument, "host list '{}': {}; expected names like 'cn0,cn[2-4,7]'",
               expression.substr(0, 120), why);
}

std::optional<std::uint64_t> Number(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string Padded(std::uint64_t value, std::size_t width) {
  std::string text = std::to_string(value);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// The texts of one bracket group, "0-3,7".
Result<std::vector<std::string>> ExpandGroup(std::string_view group, std::string_view expression) {
  std::vector<std::string> texts;
  while (true) {
    const auto comma = group.find(',');
    const std::string_view item = group.substr(0, comma);
    const auto dash = item.find('-');
    const std::string_view first_text = item.substr(0, dash);
    const std::string_view last_text = dash == std::string_view::npos ? first_text : item.substr(dash + 1);
    const auto first = Number(first_text);
    const auto last = Number(last_text);
    if (!first || !last) return Bad(expression, fmt::format("'{}' in brackets is no number or range", item));
    if (*first > *last) return Bad(expression, fmt::format("range '{}' runs backwards", item));
    if (*last - *first >= kMaxHostListNames || texts.size() + (*last - *first) >= kMaxHostListNames)
      return Bad(expression, fmt::format("more than {} names", kMaxHostListNames));
    for (std::uint64_t n = *first; n <= *last; ++n) texts.push_back(Padded(n, first_text.size()));
    if (comma == std::string_view::npos) return texts;
    group.remove_prefix(comma + 1);
  }
}

Status ExpandName(std::string_view name, std::string_view expression, std::vector<std::string>& out) {
  std::vector<std::string> names = {""};
  while (!name.empty()) {
    const auto open = name.find_first_of("[]");
    for (std::string& text : names) {
      text += name.substr(0, open);
      if (text.size() > kMaxNameBytes)
        return Bad(expression, fmt::format("a name of more than {} bytes", kMaxNameBytes));
    }
    if (open == std::string_view::npos) break;
    const auto close = name.find(']', open);
    if (name[open] == ']' || close == std::string_view::npos) return Bad(expression, "brackets do not match");
    MSA_ASSIGN_OR_RETURN(const std::vector<std::string> group,
                         ExpandGroup(name.substr(open + 1, close - open - 1), expression));
    if (names.size() * group.size() + out.size() > kMaxHostListNames)
      return Bad(expression, fmt::format("more than {} names", kMaxHostListNames));
    std::vector<std::string> product;
    product.reserve(names.size() * group.size());
    for (const std::string& text : names)
      for (const std::string& part : group) product.push_back(text + part);
    names = std::move(product);
    name.remove_prefix(close + 1);
  }
  if (out.size() + names.size() > kMaxHostListNames)
    return Bad(expression, fmt::format("more than {} names", kMaxHostListNames));
  out.insert(out.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
  return Status::Ok();
}

struct Numbered {
  std::string prefix;
  std::size_t width = 0;  // of the digits, only told apart where they are padded
  std::uint64_t number = 0;
};

// nullopt: no digits at its end.
std::optional<Numbered> Split(const std::string& name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  const auto number = Number(std::string_view(name).substr(begin));
  if (!number) return std::nullopt;
  const std::size_t width = name[begin] == '0' && name.size() - begin > 1 ? name.size() - begin : 0;
  return Numbered{name.substr(0, begin), width, *number};
}

std::string GroupText(const Numbered& key, const std::vector<std::uint64_t>& numbers) {
  std::string ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!ranges.empty()) ranges += ',';
    ranges += Padded(numbers[i], key.width);
    if (last > i) ranges += '-' + Padded(numbers[last], key.width);
    i = last + 1;
  }
  const bool single = numbers.size() == 1;
  return single ? key.prefix + ranges : key.prefix + '[' + ranges + ']';
}

}  // namespace

Result<std::vector<std::string>> ExpandHostList(std::string_view expression) {
  std::vector<std::string> names;
  if (expression.empty()) return names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= expression.size(); ++i) {
    const char c = i < expression.size() ? expression[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (depth < 0 || depth > 1) return Bad(expression, "brackets do not match");
    if (c != ',' || (depth > 0 && i < expression.size())) continue;
    const std::string_view name = expression.substr(begin, i - begin);
    if (name.empty()) return Bad(expression, "an empty name");
    MSA_RETURN_IF_ERROR(ExpandName(name, expression, names));
    begin = i + 1;
  }
  return names;
}

std::string CompressHostList(const std::vector<std::string>& names) {
  struct Group {
    std::optional<Numbered> key;  // nullopt: a name as it is
    std::string plain;
    std::vector<std::uint64_t> numbers;
  };
  std::vector<Group> groups;
  // Plain names and numbered ones do not meet.
  std::map<std::tuple<bool, std::string, std::size_t>, std::size_t> by_key;
  for (const std::string& name : names) {
    auto split = Split(name);
    const auto key =
        split ? std::tuple(true, split->prefix, split->width) : std::tuple(false, name, std::size_t{0});
    const auto [it, fresh] = by_key.try_emplace(key, groups.size());
    if (fresh) groups.push_back(split ? Group{split, "", {}} : Group{std::nullopt, name, {}});
    if (split) groups[it->second].numbers.push_back(split->number);
  }
  std::string text;
  for (Group& group : groups) {
    if (!text.empty()) text += ',';
    std::sort(group.numbers.begin(), group.numbers.end());
    group.numbers.erase(std::unique(group.numbers.begin(), group.numbers.end()), group.numbers.end());
    text += group.key ? GroupText(*group.key, group.numbers) : group.plain;
  }
  return text;
}

}  // namespace msa
