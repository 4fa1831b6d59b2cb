#include "extent_store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "msa/adapters/process/files.h"

namespace msa::namd {

Result<std::unique_ptr<ExtentStore>> ExtentStore::Open(const std::string& directory) {
  MSA_RETURN_IF_ERROR(TakeDirectory(directory));
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open directory '" + directory + "'");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return Error(Code::kAlreadyExists,
                 "backing directory '{}' is used by another NAM daemon; give each its own by --backing",
                 directory);
  struct statfs fs {};
  if (::fstatfs(fd.get(), &fs) != 0) return ErrnoError(errno, "look at file system of '" + directory + "'");
  // hugetlbfs tells its page size as its block size.
  const std::size_t page =
      fs.f_type == HUGETLBFS_MAGIC ? static_cast<std::size_t>(fs.f_bsize) : nam::kPageBytes;
  const bool in_memory = fs.f_type == HUGETLBFS_MAGIC || fs.f_type == TMPFS_MAGIC;
  return std::unique_ptr<ExtentStore>(new ExtentStore(directory, std::move(fd), page, in_memory));
}

Result<ExtentStore::Listing> ExtentStore::Scan() const {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory_));
  Listing listing;
  std::set<ExtentKey> seen;
  // "extent" sorts before "pending": of two files of one extent the committed one counts.
  for (const std::string& name : names) {
    if (name == kSystemFact || name == kPortFact) continue;
    const auto parsed = ParseExtentName(name);
    if (!parsed || !seen.insert(parsed->key).second) {
      listing.foreign.push_back(name);
      continue;
    }
    Found found{.key = parsed->key, .stage = parsed->stage};
    const std::string path = directory_ + "/" + name;
    auto file = ExtentFile::Open(path, found.key, page_);
    if (file.ok()) {
      found.file = std::move(*file);
    } else {
      found.fault = file.status().message();
      struct stat st {};
      if (::lstat(path.c_str(), &st) == 0) found.bytes = static_cast<std::uint64_t>(st.st_size);
    }
    listing.extents.push_back(std::move(found));
  }
  return listing;
}

Result<ExtentStore::Listing> ExtentStore::Survey() const {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory_));
  Listing listing;
  for (const std::string& name : names) {
    if (name == kSystemFact || name == kPortFact) continue;
    const auto parsed = ParseExtentName(name);
    struct stat st {};
    if (!parsed)
      listing.foreign.push_back(name);
    else if (::lstat((directory_ + "/" + name).c_str(), &st) == 0)
      listing.extents.push_back(
          {parsed->key, parsed->stage, nullptr, {}, static_cast<std::uint64_t>(st.st_size)});
  }
  return listing;
}

Result<std::shared_ptr<ExtentFile>> ExtentStore::Create(const ExtentKey& key, ExtentShape shape) const {
  const std::string path = PathOf(key, Stage::kPending);
  if (::access(PathOf(key, Stage::kCommitted).c_str(), F_OK) == 0)
    return Error(Code::kAlreadyExists, "extent {} is there already, and of another shape", ToText(key));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove '" + path + "'");
  return ExtentFile::Create(path, key, shape, page_);
}

Status ExtentStore::Commit(const ExtentKey& key, const ExtentFile& file) const {
  // On a disk the name must not survive a power failure without what it names.
  if (::fsync(file.fd()) != 0 && errno != EINVAL)
    return ErrnoError(errno, "write extent " + ToText(key) + " to its disk");
  const std::string pending = PathOf(key, Stage::kPending);
  const std::string committed = PathOf(key, Stage::kCommitted);
  if (::rename(pending.c_str(), committed.c_str()) != 0) {
    const int error = errno;
    if (error != ENOENT || ::access(committed.c_str(), F_OK) != 0)
      return ErrnoError(error, "rename '" + pending + "'");
  }
  if (::fsync(fd_.get()) != 0 && errno != EINVAL)
    return ErrnoError(errno, "write directory '" + directory_ + "' to its disk");
  return Status::Ok();
}

Status ExtentStore::Remove(const ExtentKey& key) const {
  for (const Stage stage : {Stage::kPending, Stage::kCommitted})
    if (const std::string path = PathOf(key, stage); ::unlink(path.c_str()) != 0 && errno != ENOENT)
      return ErrnoError(errno, "remove '" + path + "'");
  return Status::Ok();
}

std::optional<std::uint64_t> ExtentStore::Fact(const std::string& name) const {
  std::array<char, 32> text{};
  const ssize_t n = ::readlinkat(fd_.get(), name.c_str(), text.data(), text.size());
  if (n <= 0) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + n, value, 16);
  if (error != std::errc() || end != text.data() + n) return std::nullopt;
  return value;
}

Status ExtentStore::SetFact(const std::string& name, std::uint64_t value) const {
  if (Fact(name) == value) return Status::Ok();
  const std::string fresh = name + ".new";
  ::unlinkat(fd_.get(), fresh.c_str(), 0);
  if (::symlinkat(fmt::format("{:x}", value).c_str(), fd_.get(), fresh.c_str()) != 0 ||
      ::renameat(fd_.get(), fresh.c_str(), fd_.get(), name.c_str()) != 0)
    return ErrnoError(errno, "note '" + name + "' in directory '" + directory_ + "'");
  return Status::Ok();
}

std::uint64_t ExtentStore::Room(std::uint64_t most) const {
  struct statfs fs {};
  if (::fstatfs(fd_.get(), &fs) != 0 || fs.f_blocks == 0) return most;
  return std::min<std::uint64_t>(
      most, static_cast<std::uint64_t>(fs.f_bavail) * static_cast<std::uint64_t>(fs.f_bsize));
}

}  // namespace msa::namd
