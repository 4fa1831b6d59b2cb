#include "msa/job/port_name.h"

#include <charconv>

namespace msa {
namespace {

// Takes a decimal number off the front of `text`.
std::optional<std::uint32_t> TakeNumber(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

// Jenkins' one-at-a-time hash, without the bit that Open MPI keeps for itself.
std::uint32_t PortOwnerOf(std::string_view nspace) {
  std::uint32_t hash = 0;
  for (const char c : nspace) {
    hash += static_cast<unsigned char>(c);
    hash += hash << 10;
    hash ^= hash >> 6;
  }
  hash += hash << 3;
  hash ^= hash >> 11;
  hash += hash << 15;
  return hash & ~std::uint32_t{0x8000};
}

std::optional<PortKey> ParsePortKey(std::string_view key) {
  std::string_view rest = key;
  const auto owner = TakeNumber(rest);
  if (!owner || !TakeChar(rest, '.') || !TakeNumber(rest) || !TakeChar(rest, ':') || !TakeNumber(rest))
    return std::nullopt;
  const std::string_view port = key.substr(0, key.size() - rest.size());
  if (!TakeChar(rest, ':') || rest.empty()) return std::nullopt;
  return PortKey{*owner, std::string(port), rest};
}

}  // namespace msa
