#include "owner_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/files.h"
#include "msa/base/unique_fd.h"
#include "msa/nam/layout.h"

namespace msa::namd {

struct OwnerNotes::Record {
  std::uint64_t client = 0;
  std::uint64_t lease = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t start = 0;
};

std::uint64_t StartOfProcess(pid_t pid) {
  if (pid <= 0) return 0;
  const auto text = ReadFile(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text.ok()) return 0;
  // proc(5): field 22; the second one is the name in brackets and may hold anything.
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return 0;
  std::string_view rest = std::string_view(*text).substr(name_end + 1);
  constexpr int kFieldsBetween = 20;
  for (int field = 0; field < kFieldsBetween; ++field) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return 0;
    rest.remove_prefix(space + 1);
  }
  std::uint64_t start = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), start);
  return start;
}

void OwnerNotes::Put(const ExtentKey& extent, std::uint32_t owner, const Record& record) {
  const std::string path = PathOf(extent);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const auto at = static_cast<off_t>((owner - 1) * sizeof record);
  if (!fd || ::pwrite(fd.get(), &record, sizeof record, at) != static_cast<ssize_t>(sizeof record))
    spdlog::warn("owner {} of extent {} is not noted: {}; its locks would not survive a restart", owner,
                 ToText(extent), ErrnoError(errno, "write '" + path + "'").message());
}

void OwnerNotes::Write(const ExtentKey& extent, const Note& note) {
  Put(extent, note.owner.owner,
      {note.owner.client.value, note.owner.lease.value, static_cast<std::uint32_t>(note.pid), note.owner.uid,
       note.start});
}

void OwnerNotes::Clear(const ExtentKey& extent, std::uint32_t owner) {
  if (::access(PathOf(extent).c_str(), F_OK) == 0) Put(extent, owner, {});
}

std::vector<OwnerNotes::Note> OwnerNotes::Read(const ExtentKey& extent) const {
  std::vector<Note> notes;
  const auto text = ReadFile(PathOf(extent), nam::kMaxOwners * sizeof(Record));
  if (!text.ok()) return notes;
  for (std::size_t at = 0; at + sizeof(Record) <= text->size(); at += sizeof(Record)) {
    Record record;
    std::memcpy(&record, text->data() + at, sizeof record);
    if (record.client == 0) continue;
    const auto number = static_cast<std::uint32_t>(at / sizeof(Record) + 1);
    notes.push_back({{number, NamClientId(record.client), LeaseId(record.lease), record.uid},
                     static_cast<pid_t>(record.pid),
                     record.start});
  }
  return notes;
}

void OwnerNotes::Remove(const ExtentKey& extent) { ::unlink(PathOf(extent).c_str()); }

void OwnerNotes::RemoveOthers(const std::vector<ExtentKey>& kept) {
  std::set<std::string> names;
  for (const ExtentKey& key : kept) names.insert(ToText(key));
  const auto there = ListDirectory(directory_);
  if (!there.ok()) return;
  for (const std::string& name : *there)
    if (!names.contains(name)) ::unlink((directory_ + "/" + name).c_str());
}

}  // namespace msa::namd
