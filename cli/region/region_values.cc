#include "region/region_values.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "options/values.h"

namespace msa::cli {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
// A user database may hold long lists of members.
constexpr std::size_t kDatabaseBuffer = std::size_t{1} << 20;

bool IsNameCharacter(char c, bool first) {
  const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alphanumeric || (!first && (c == '.' || c == '_' || c == '-'));
}

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > wire::kMaxNamName || !IsNameCharacter(text[0], true)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsNameCharacter(c, false); });
}

std::optional<std::uint32_t> Number32(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As it may be shown on a terminal.
std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

// The highest number means "none" to the system.
Result<std::uint32_t> RealId(std::uint32_t id, std::string_view what) {
  if (id != std::numeric_limits<std::uint32_t>::max()) return id;
  return Error(Code::kInvalidArgument, "{} {} is nobody's; expected 0 to {}", what, id, id - 1);
}

struct Subject {
  wire::NamAclEntry entry;
  std::string_view rest;  // after "user:NAME"
};

Result<Subject> ParseSubject(std::string_view text, std::string_view expected) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (colon == std::string_view::npos || (kind != "user" && kind != "group"))
    return Error(Code::kInvalidArgument, "'{}' names no user or group; expected {}", Printable(text),
                 expected);
  const std::string_view rest = text.substr(colon + 1);
  const std::size_t end = rest.find(':');
  Subject out;
  out.rest = end == std::string_view::npos ? "" : rest.substr(end);
  out.entry.kind = kind == "user" ? wire::NamAclKind::kUser : wire::NamAclKind::kGroup;
  auto id = kind == "user" ? UserId(rest.substr(0, end)) : GroupId(rest.substr(0, end));
  if (!id.ok()) return id.status();
  out.entry.id = *id;
  return out;
}

}  // namespace

Result<Bytes> ParseRegionSize(std::string_view text) {
  if (text.size() > 1 && text.back() == 'B') {
    const auto bytes = ParseNumber(text.substr(0, text.size() - 1), {0, kMax >> 1});
    if (bytes.ok()) return Bytes(*bytes);
  }
  auto size = ParseMemory(text);
  if (size.ok()) return size;
  return Error(
      Code::kInvalidArgument,
      "'{}' is not a region's size; expected a number of MiB, or one with K, M, G or T, as 512M, or of "
      "bytes with B, as 4096B, up to {}B",
      Printable(text), kMax >> 1);
}

Result<std::uint64_t> ParseByteCount(std::string_view text) {
  const auto plain = ParseNumber(text, {0, kMax >> 1});
  if (plain.ok()) return *plain;
  const auto size = ParseMemory(text);
  if (size.ok()) return size->value;
  return Error(Code::kInvalidArgument,
               "'{}' is not a number of bytes; expected a number, or one with K, M, G or T, as 4096 or 512M",
               text);
}

Result<std::string> ParseRegionName(std::string_view text) {
  std::string_view name = text;
  if (name.starts_with(kNamPortPrefix)) {
    if (ParseRegionUuid(name.substr(kNamPortPrefix.size()))) return std::string(text);
    name = "";
  }
  if (IsName(name)) return std::string(text);
  return Error(Code::kInvalidArgument,
               "'{}' is not a region's name, port name or uuid; see 'msactl region list'", Printable(text));
}

Result<std::string> ParseNewRegionName(std::string_view text) {
  if (IsName(text)) return std::string(text);
  return Error(Code::kInvalidArgument,
               "'{}' cannot name a region; expected at most {} letters, digits, '.', '_' and '-', the first "
               "one a letter or a digit",
               Printable(text), wire::kMaxNamName);
}

Result<wire::NamSegmentSpec> ParseSegment(std::string_view text) {
  const std::size_t colon = text.find(':');
  MSA_ASSIGN_OR_RETURN(const Bytes bytes, ParseRegionSize(text.substr(0, colon)));
  wire::NamSegmentSpec out{bytes, 1};
  if (colon == std::string_view::npos) return out;
  const auto unit = ParseNumber(text.substr(colon + 1), {1, std::numeric_limits<std::int32_t>::max()});
  if (!unit.ok()) return unit.status().WithContext(fmt::format("'{}': displacement unit", text));
  out.disp_unit = static_cast<std::uint32_t>(*unit);
  return out;
}

std::vector<wire::NamSegmentSpec> EqualSegments(Bytes total, std::uint32_t count) {
  std::vector<wire::NamSegmentSpec> out(count, {Bytes(total.value / count), 1});
  out.back().bytes.value += total.value % count;
  return out;
}

Result<SegmentSize> ParseSegmentSize(std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto segment = ParseNumber(text.substr(0, equals), {0, wire::kMaxNamSegments - 1});
  if (equals == std::string_view::npos || !segment.ok())
    return Error(Code::kInvalidArgument, "'{}' is not a segment's size; expected I=SIZE, as 0=512M", text);
  MSA_ASSIGN_OR_RETURN(const Bytes bytes, ParseRegionSize(text.substr(equals + 1)));
  return SegmentSize{static_cast<std::uint32_t>(*segment), bytes};
}

Result<std::uint32_t> ParseRegionMode(std::string_view text) {
  std::uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  const bool octal = !text.empty() && error == std::errc() && end == text.data() + text.size();
  if (octal && (mode & ~0666U) == 0) return mode;
  return Error(
      Code::kInvalidArgument,
      "'{}' is not a region's mode; expected octal digits with read and write bits of owner, group and "
      "others only, as 0640",
      text);
}

Result<wire::NamPlacement> ParsePlacement(std::string_view text) {
  if (text == "pack") return wire::NamPlacement::kPack;
  if (text == "spread") return wire::NamPlacement::kSpread;
  return Error(Code::kInvalidArgument, "'{}' is no placement; expected pack or spread", text);
}

Result<NamRights> ParseRights(std::string_view text) {
  NamRights out = NamRights::kNone;
  for (const char c : text) {
    const NamRights right = c == 'r'   ? NamRights::kRead
                            : c == 'w' ? NamRights::kWrite
                            : c == 'm' ? NamRights::kMap
                                       : NamRights::kNone;
    if (right == NamRights::kNone || Has(out, right)) return ParseRights("");
    out = out | right;
  }
  if (out != NamRights::kNone) return out;
  return Status(
      Code::kInvalidArgument,
      "rights are r (read), w (write) and m (map), at least one and each once; expected rwm, rw or r");
}

std::string ShowRights(NamRights rights) {
  std::string out;
  if (Has(rights, NamRights::kRead)) out += 'r';
  if (Has(rights, NamRights::kWrite)) out += 'w';
  if (Has(rights, NamRights::kMap)) out += 'm';
  return out.empty() ? "none" : out;
}

Result<std::uint32_t> UserId(std::string_view name_or_id) {
  if (const auto id = Number32(name_or_id)) return RealId(*id, "uid");
  const std::string name(name_or_id);
  std::string buffer(kDatabaseBuffer, '\0');
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return static_cast<std::uint32_t>(entry.pw_uid);
  return Error(Code::kNotFound, "no user '{}' on this machine; expected a user's name or uid",
               Printable(name));
}

Result<std::uint32_t> GroupId(std::string_view name_or_id) {
  if (const auto id = Number32(name_or_id)) return RealId(*id, "gid");
  const std::string name(name_or_id);
  std::string buffer(kDatabaseBuffer, '\0');
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return static_cast<std::uint32_t>(entry.gr_gid);
  return Error(Code::kNotFound, "no group '{}' on this machine; expected a group's name or gid",
               Printable(name));
}

Result<wire::NamAclEntry> ParseAclEntry(std::string_view text) {
  constexpr std::string_view kExpected = "user:NAME:RIGHTS or group:NAME:RIGHTS, as user:alice:rw";
  MSA_ASSIGN_OR_RETURN(Subject subject, ParseSubject(text, kExpected));
  if (subject.rest.empty())
    return Error(Code::kInvalidArgument, "'{}' has no rights; expected {}", text, kExpected);
  auto rights = ParseRights(subject.rest.substr(1));
  if (!rights.ok()) return rights.status().WithContext(fmt::format("'{}'", text));
  subject.entry.rights = *rights;
  return subject.entry;
}

Result<wire::NamAclEntry> ParseAclRemoval(std::string_view text) {
  constexpr std::string_view kExpected = "user:NAME or group:NAME";
  MSA_ASSIGN_OR_RETURN(const Subject subject, ParseSubject(text, kExpected));
  if (subject.rest.empty()) return subject.entry;
  return Error(Code::kInvalidArgument, "'{}' has '{}' too much; expected {}", text, subject.rest, kExpected);
}

std::string ShowAclSubject(const wire::NamAclEntry& entry) {
  std::string buffer(kDatabaseBuffer, '\0');
  if (entry.kind == wire::NamAclKind::kUser) {
    passwd user{};
    passwd* found = nullptr;
    if (::getpwuid_r(entry.id, &user, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
      return fmt::format("user:{}", user.pw_name);
    return fmt::format("user:{}", entry.id);
  }
  group group{};
  struct group* found = nullptr;
  if (::getgrgid_r(entry.id, &group, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return fmt::format("group:{}", group.gr_name);
  return fmt::format("group:{}", entry.id);
}

}  // namespace msa::cli
