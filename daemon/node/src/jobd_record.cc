#include "jobd_record.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "msa/adapters/process/files.h"
#include "msa/base/unique_fd.h"

namespace msa::node {
namespace {

// A launch message with 1 MiB of environment and thousands of members stays far below.
constexpr std::size_t kMaxRecordBytes = std::size_t{64} << 20;

// "w12" or "w12.jobd" -> 12
std::optional<std::uint64_t> Sequence(std::string_view name) {
  if (!name.starts_with('w')) return std::nullopt;
  name.remove_prefix(1);
  if (name.ends_with(".jobd")) name.remove_suffix(5);
  std::uint64_t seq = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seq);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return seq;
}

// The newest whole version. What a write that was cut short by SIGKILL left behind it goes, so that the next
// version can be read.
Result<JobdRecord> LoadRecord(const std::string& path) {
  MSA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxRecordBytes));
  wire::FrameReader reader(kMaxRecordBytes);
  reader.Append(text);
  std::string newest;
  for (;;) {
    MSA_ASSIGN_OR_RETURN(std::optional<wire::Frame> frame, reader.Next());
    if (!frame) break;
    newest = std::move(frame->payload);
  }
  if (reader.buffered() > 0 &&
      ::truncate(path.c_str(), static_cast<off_t>(text.size() - reader.buffered())) != 0)
    return ErrnoError(errno, "shorten '" + path + "'");
  return wire::Decode<JobdRecord>(newest);
}

}  // namespace

Status SaveRecord(const NodePaths& paths, const JobdRecord& record) {
  const auto failed = [&](int error) {
    return ErrnoError(
        error, fmt::format("keep record of job daemon {} in '{}'", record.seq, paths.record(record.seq)));
  };
  const UniqueFd fd(
      ::open(paths.record(record.seq).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return failed(errno);
  const std::string frame = wire::Pack(record);
  const off_t before = ::lseek(fd.get(), 0, SEEK_END);
  ssize_t written = 0;
  do written = ::write(fd.get(), frame.data(), frame.size());
  while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(frame.size())) return Status::Ok();
  const int error = written < 0 ? errno : ENOSPC;
  // What follows a part of a version could not be read.
  if (::ftruncate(fd.get(), before) != 0) ::unlink(paths.record(record.seq).c_str());
  return failed(error);
}

Result<FoundRecords> LoadRecords(const NodePaths& paths) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(paths.base()));
  FoundRecords found;
  std::set<std::uint64_t> known;
  std::set<std::uint64_t> directories;
  for (const std::string& name : names) {
    const auto seq = Sequence(name);
    if (!seq) continue;
    found.highest = std::max(found.highest, *seq);
    if (!name.ends_with(".jobd")) {
      directories.insert(*seq);
      continue;
    }
    auto record = LoadRecord(paths.record(*seq));
    if (!record.ok() || record->seq != *seq || record->cookie.empty()) {
      MSA_RETURN_IF_ERROR(RemoveTree(paths.record(*seq)));
      continue;
    }
    known.insert(*seq);
    found.records.push_back(std::move(*record));
  }
  std::set_difference(directories.begin(), directories.end(), known.begin(), known.end(),
                      std::back_inserter(found.orphaned));
  return found;
}

std::uint64_t ProcessStart(std::uint32_t pid) {
  const auto text = ReadFile(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text.ok()) return 0;
  // Field 22, counted after the name, which may hold spaces and parentheses.
  std::string_view rest = *text;
  const auto name_end = rest.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  rest.remove_prefix(std::min(rest.size(), name_end + 2));
  if (rest.starts_with('Z') || rest.starts_with('X')) return 0;
  for (int field = 3; field < 22; ++field) rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  std::uint64_t start = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), start);
  return start;
}

std::string BootId() {
  auto text = ReadFile("/proc/sys/kernel/random/boot_id", 128);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

Result<std::string> MakeCookie() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return ErrnoError(errno, "read 32 random bytes");
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace msa::node
