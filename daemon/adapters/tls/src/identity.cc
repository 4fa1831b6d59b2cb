#include <array>
#include <charconv>

#include "msa/adapters/tls/certificates.h"

namespace msa {
namespace {

constexpr std::string_view kScheme = "msa://";
constexpr std::array<std::string_view, 3> kRoles{"controller", "node", "user"};

template <class T>
bool Number(std::string_view text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool IsNodeName(std::string_view text) {
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
          c == '_' || c == '.'))
      return false;
  return text.size() <= 253;
}

}  // namespace

std::string_view ToText(PeerRole role) { return kRoles[static_cast<std::size_t>(role)]; }

std::string ToUri(const PeerIdentity& identity) {
  return fmt::format("{}{:016x}/{}/{}/{}/{}", kScheme, identity.system, ToText(identity.role), identity.node,
                     identity.user.uid, identity.user.gid);
}

Result<PeerIdentity> ParseIdentityUri(std::string_view uri) {
  const Status bad = Error(Code::kInvalidArgument,
                           "'{}' names no member of a system; expected msa://SYSTEM/ROLE/NODE/UID/GID", uri);
  if (!uri.starts_with(kScheme)) return bad;
  std::string_view rest = uri.substr(kScheme.size());
  std::array<std::string_view, 5> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t slash = rest.find('/');
    if ((slash == std::string_view::npos) != (i + 1 == parts.size())) return bad;
    parts[i] = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
  PeerIdentity identity;
  std::size_t role = 0;
  while (role < kRoles.size() && kRoles[role] != parts[1]) ++role;
  if (parts[0].size() != 16 || !Number(parts[0], identity.system, 16) || role == kRoles.size() ||
      !IsNodeName(parts[2]) || !Number(parts[3], identity.user.uid, 10) ||
      !Number(parts[4], identity.user.gid, 10))
    return bad;
  identity.role = static_cast<PeerRole>(role);
  identity.node = parts[2];
  if ((identity.role == PeerRole::kNode) == identity.node.empty()) return bad;
  return identity;
}

}  // namespace msa
