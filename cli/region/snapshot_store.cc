#include "region/snapshot_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "msa/adapters/process/files.h"
#include "msa/base/unique_fd.h"
#include "msa/topology/suggest.h"

namespace msa::cli {
namespace {

constexpr std::string_view kSuffix = ".manifest";
// 70 bytes a block of 1 MiB: of 30 TiB.
constexpr std::size_t kMaxManifest = std::size_t{2} << 30;

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// 0700 where it is made; one that is there is left as it is.
Status EnsureDirectory(const std::string& path) {
  if (IsDirectory(path)) return Status::Ok();
  return MakeDirectory(path);
}

Status SyncDirectory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open directory '" + path + "'");
  if (::fsync(fd.get()) != 0) return ErrnoError(errno, "write directory '" + path + "' to the disk");
  return Status::Ok();
}

}  // namespace

Result<SnapshotStore> SnapshotStore::OpenToRead(const std::string& dir) {
  if (!IsDirectory(dir + "/snapshots") || !IsDirectory(dir + "/blocks"))
    return Error(Code::kNotFound, "'{}' is no directory of snapshots; 'msactl region snapshot' makes one",
                 dir);
  return SnapshotStore(dir);
}

Result<SnapshotStore> SnapshotStore::OpenToWrite(const std::string& dir) {
  SnapshotStore out(dir);
  for (const char* part : {"", "/snapshots", "/blocks"}) MSA_RETURN_IF_ERROR(EnsureDirectory(dir + part));
  auto lock = LockFile::Acquire(dir + "/lock", "a snapshot to '" + dir + "'");
  if (!lock.ok()) return lock.status();
  out.lock_ = *std::move(lock);
  MSA_RETURN_IF_ERROR(RemoveTree(dir + "/tmp"));
  MSA_RETURN_IF_ERROR(EnsureDirectory(dir + "/tmp"));
  return out;
}

std::string SnapshotStore::BlockPath(Checksum checksum) const {
  const std::string name = ToText(checksum);
  return fmt::format("{}/blocks/{}/{}", dir_, name.substr(0, 2), name);
}

std::string SnapshotStore::ManifestPath(const std::string& tag) const {
  return fmt::format("{}/snapshots/{}{}", dir_, tag, kSuffix);
}

bool SnapshotStore::Has(const std::string& tag) const {
  struct stat info {};
  return ::lstat(ManifestPath(tag).c_str(), &info) == 0;
}

Result<std::vector<SnapshotStore::Entry>> SnapshotStore::List() const {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir_ + "/snapshots"));
  std::vector<Entry> out;
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    Entry& entry = out.emplace_back();
    entry.tag = name.substr(0, name.size() - kSuffix.size());
    auto manifest = Load(entry.tag);
    entry.status = manifest.status();
    if (manifest.ok()) entry.manifest = *std::move(manifest);
  }
  std::stable_sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) {
    if (a.status.ok() != b.status.ok()) return a.status.ok();
    return a.manifest.created_ms < b.manifest.created_ms;
  });
  return out;
}

Result<SnapshotManifest> SnapshotStore::Load(const std::string& tag) const {
  if (tag.empty()) {
    MSA_ASSIGN_OR_RETURN(std::vector<Entry> all, List());
    std::erase_if(all, [](const Entry& entry) { return !entry.status.ok(); });
    if (all.empty()) return Error(Code::kNotFound, "no whole snapshot in '{}'", dir_);
    for (const Entry& entry : all)
      if (entry.manifest.region != all[0].manifest.region)
        return Error(Code::kInvalidArgument,
                     "'{}' holds snapshots of several regions, '{}' and '{}' among them; name one: {}:{}",
                     dir_, all[0].manifest.region, entry.manifest.region, dir_, all.back().tag);
    return std::move(all.back().manifest);
  }
  const auto text = IsTag(tag) ? ReadFile(ManifestPath(tag), kMaxManifest)
                               : Result<std::string>(Status(Code::kNotFound, "no tag"));
  if (!text.ok()) {
    if (text.status().code() != Code::kNotFound) return text.status();
    std::vector<std::string> tags;
    if (const auto names = ListDirectory(dir_ + "/snapshots"); names.ok())
      for (const std::string& name : *names)
        if (name.ends_with(kSuffix)) tags.push_back(name.substr(0, name.size() - kSuffix.size()));
    return Error(Code::kNotFound, "no snapshot '{}' in '{}'; {}it holds {}", tag, dir_, DidYouMean(tag, tags),
                 tags.empty() ? "none" : ListNames(tags));
  }
  auto manifest = ParseManifest(*text);
  if (manifest.ok() && manifest->tag != tag)
    manifest = Error(Code::kDataLoss, "it is that of '{}'", manifest->tag);
  if (!manifest.ok()) return manifest.status().WithContext(fmt::format("snapshot '{}:{}'", dir_, tag));
  return manifest;
}

Status SnapshotStore::WriteTemporary(const std::string& path, std::span<const std::byte> bytes,
                                     bool sync) const {
  std::string temporary = dir_ + "/tmp/XXXXXX";  // the X are mkostemp's: a name of its own
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "create a file in '" + dir_ + "/tmp'");
  Status status;
  while (status.ok() && !bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) status = ErrnoError(errno, "write '" + temporary + "'");
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  if (status.ok() && sync && ::fsync(fd.get()) != 0)
    status = ErrnoError(errno, "write '" + temporary + "' to the disk");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = ErrnoError(errno, "rename '" + temporary + "' to '" + path + "'");
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

Result<SnapshotStore::Stored> SnapshotStore::PutBlock(Checksum checksum, std::span<const std::byte> bytes) {
  const std::string path = BlockPath(checksum);
  const auto there = ReadFile(path, kBlockBytes);
  if (there.ok()) {
    if (there->size() == bytes.size() && std::memcmp(there->data(), bytes.data(), bytes.size()) == 0)
      return Stored::kReused;
    if (ChecksumOf(*there) == checksum)
      return Error(Code::kInternal, "two different blocks have the checksum {}; use another directory",
                   ToText(checksum));
  }
  MSA_RETURN_IF_ERROR(EnsureDirectory(path.substr(0, path.rfind('/'))));
  MSA_RETURN_IF_ERROR(WriteTemporary(path, bytes, false));
  return Stored::kWritten;
}

Status SnapshotStore::ReadBlock(Checksum checksum, std::span<std::byte> to) const {
  const std::string path = BlockPath(checksum);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return Error(Code::kNotFound, "block '{}' is missing", path);
  if (!fd) return ErrnoError(errno, "open block '" + path + "'");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoError(errno, "look at block '" + path + "'");
  if (static_cast<std::uint64_t>(info.st_size) != to.size())
    return Error(Code::kDataLoss, "block '{}' has {} bytes, expected {}", path, info.st_size, to.size());
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t n = ::pread(fd.get(), to.data() + done, to.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read block '" + path + "'");
    if (n == 0) return Error(Code::kDataLoss, "block '{}' was cut while it was read", path);
    done += static_cast<std::size_t>(n);
  }
  if (ChecksumOf(std::span<const std::byte>(to)) == checksum) return Status::Ok();
  return Error(Code::kDataLoss, "block '{}' is damaged: its checksum is {}", path,
               ToText(ChecksumOf(std::span<const std::byte>(to))));
}

Status SnapshotStore::Commit(const SnapshotManifest& manifest) {
  // One call for all blocks and their directories: a thousand single ones take seconds.
  const UniqueFd fd(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open directory '" + dir_ + "'");
  if (::syncfs(fd.get()) != 0) return ErrnoError(errno, "write '" + dir_ + "' to the disk");
  MSA_RETURN_IF_ERROR(WriteTemporary(ManifestPath(manifest.tag), BytesOf(ToText(manifest)), true));
  return SyncDirectory(dir_ + "/snapshots");
}

Result<SnapshotPath> ParseSnapshotPath(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || IsDirectory(text)) return SnapshotPath{text, ""};
  SnapshotPath out{text.substr(0, colon), text.substr(colon + 1)};
  if (IsTag(out.tag)) return out;
  return Error(Code::kInvalidArgument, "'{}' is not a directory, and '{}' is no tag; expected DIR or DIR:TAG",
               text, out.tag);
}

}  // namespace msa::cli
