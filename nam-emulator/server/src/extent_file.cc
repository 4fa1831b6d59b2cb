#include "extent_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fmt/format.h>

#include "msa/base/nam_messages.h"

namespace msa::namd {
namespace {

// The magic comes last: a file that has it is whole.
void WriteHeader(nam::ExtentHeader& header, const ExtentKey& key, ExtentShape shape) {
  header.version = nam::kExtentVersion;
  header.generation = key.generation.value;
  header.uuid_high = key.uuid.high;
  header.uuid_low = key.uuid.low;
  header.segments = shape.segments;
  header.owners = nam::kMaxOwners;
  header.locks_at = nam::kPageBytes;
  header.owners_at = nam::kPageBytes + shape.segments * sizeof(nam::SegmentLock);
  header.data_at = nam::HeaderBytes(shape.segments);
  header.data_bytes = shape.data.value;
  std::atomic_ref(header.magic).store(nam::kExtentMagic);
}

Status Full(int fd, const std::string& path, std::uint64_t bytes, int error) {
  struct statvfs fs {};
  if (::fstatvfs(fd, &fs) != 0) return ErrnoError(error, "allocate '" + path + "'");
  return Error(
      Code::kResourceExhausted,
      "file system of '{}' has {} bytes free, the extent needs {} ({}); remove regions or give the NAM "
      "node a larger directory",
      path, static_cast<std::uint64_t>(fs.f_bavail) * fs.f_frsize, bytes,
      ErrnoError(error, "allocate").message());
}

Status Allocate(int fd, const std::string& path, std::uint64_t bytes) {
  int error = 0;
  do {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return Status::Ok();
  if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM)
    return Full(fd, path, bytes, error);
  return ErrnoError(error, fmt::format("allocate {} bytes for '{}'", bytes, path));
}

// What a header must be for the file to be extent `key`; the shape is its own to say.
Result<ExtentShape> CheckHeader(const nam::ExtentHeader& header, const ExtentKey& key,
                                std::uint64_t file_bytes) {
  if (header.magic != nam::kExtentMagic)
    return Status(Code::kDataLoss, "its header is not that of an extent");
  if (header.version != nam::kExtentVersion)
    return Error(Code::kDataLoss, "its format has version {}, this daemon knows {}", header.version,
                 nam::kExtentVersion);
  const ExtentKey own{{header.uuid_high, header.uuid_low}, Generation(header.generation)};
  if (own != key) return Error(Code::kDataLoss, "its header is that of extent {}", ToText(own));
  const ExtentShape shape{header.segments, Bytes(header.data_bytes)};
  const auto expected = ExtentFileBytes(shape, nam::kPageBytes);
  if (header.segments > wire::kMaxNamSegments || header.data_at != nam::HeaderBytes(header.segments) ||
      !expected.ok() || *expected > file_bytes)
    return Error(Code::kDataLoss, "it has {} bytes; its header says {} segments and {} bytes of data",
                 file_bytes, header.segments, header.data_bytes);
  return shape;
}

}  // namespace

Result<std::uint64_t> ExtentFileBytes(ExtentShape shape, std::size_t page) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t header = nam::HeaderBytes(shape.segments);
  if (shape.data.value > kMost - header - page)
    return Error(Code::kOutOfRange, "extent of {} bytes is larger than a file can be", shape.data);
  // An extent of empty segments has a page all the same: there is something to map and to register.
  return nam::RoundUp(header + std::max<std::uint64_t>(shape.data.value, 1), page);
}

Result<std::shared_ptr<ExtentFile>> ExtentFile::Create(const std::string& path, const ExtentKey& key,
                                                       ExtentShape shape, std::size_t page) {
  MSA_ASSIGN_OR_RETURN(const std::uint64_t bytes, ExtentFileBytes(shape, page));
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoError(errno, "create extent '" + path + "'");
  Status status = Allocate(fd.get(), path, bytes);
  std::shared_ptr<ExtentFile> file(new ExtentFile(std::move(fd), shape, bytes));
  if (status.ok()) status = file->Map(page);
  if (!status.ok()) {
    ::unlink(path.c_str());
    return status;
  }
  WriteHeader(*reinterpret_cast<nam::ExtentHeader*>(file->base_), key, shape);
  return file;
}

Result<std::shared_ptr<ExtentFile>> ExtentFile::Open(const std::string& path, const ExtentKey& key,
                                                     std::size_t page) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return ErrnoError(errno, "open extent '" + path + "'");
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "look at extent '" + path + "'");
  if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid())
    return Error(Code::kDataLoss, "it is no regular file of uid {}", ::geteuid());
  nam::ExtentHeader header{};
  if (::pread(fd.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
    return Error(Code::kDataLoss, "it has {} bytes, fewer than a header", st.st_size);
  const auto size = static_cast<std::uint64_t>(st.st_size);
  MSA_ASSIGN_OR_RETURN(const ExtentShape shape, CheckHeader(header, key, size));
  MSA_ASSIGN_OR_RETURN(const std::uint64_t bytes, ExtentFileBytes(shape, page));
  if (bytes > size) return Error(Code::kDataLoss, "it has {} of {} bytes", size, bytes);
  std::shared_ptr<ExtentFile> file(new ExtentFile(std::move(fd), shape, bytes));
  MSA_RETURN_IF_ERROR(file->Map(page));
  return file;
}

ExtentFile::~ExtentFile() {
  if (base_ == nullptr) return;
  guard_ = BusGuard();
  ::munmap(base_, file_bytes_);
}

Status ExtentFile::Map(std::size_t page) {
  void* const base = ::mmap(nullptr, file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (base == MAP_FAILED) return ErrnoError(errno, fmt::format("map extent of {} bytes", file_bytes_));
  base_ = static_cast<std::byte*>(base);
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return ErrnoError(errno, "look at an extent");
  guard_ = BusGuard({base, file_bytes_, page, st.st_ino});
  return Status::Ok();
}

nam::SegmentLock& ExtentFile::lock(std::uint32_t slot) const {
  return reinterpret_cast<nam::SegmentLock*>(base_ + nam::kPageBytes)[slot];
}

nam::OwnerSlot& ExtentFile::owner(std::uint32_t number) const {
  const std::uint64_t at = nam::kPageBytes + shape_.segments * sizeof(nam::SegmentLock);
  return reinterpret_cast<nam::OwnerSlot*>(base_ + at)[number - 1];
}

std::atomic<std::uint32_t>& ExtentFile::highest_owner() const {
  return reinterpret_cast<nam::ExtentHeader*>(base_)->highest_owner;
}

std::string ExtentFile::Damage() const {
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return "its file cannot be looked at";
  if (static_cast<std::uint64_t>(st.st_size) < file_bytes_)
    return fmt::format("its file was truncated to {} of {} bytes", st.st_size, file_bytes_);
  if (guard_.damaged()) return "its file was truncated for a while";
  if (st.st_nlink == 0) return "its file was removed";
  return {};
}

bool ExtentFile::Trim() const {
  // Beside fallocate(2) with FALLOC_FL_KEEP_SIZE; pages may be huge ones.
  constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;
  constexpr std::uint64_t kBlock = 512;
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return false;
  const auto blocks = static_cast<std::uint64_t>(st.st_blocks) * kBlock;
  if (static_cast<std::uint64_t>(st.st_size) <= file_bytes_ && blocks <= file_bytes_ + kSlack) return false;
  // Not one that was truncated: that is damaged, and stays what it is.
  if (static_cast<std::uint64_t>(st.st_size) < file_bytes_) return false;
  return ::ftruncate(fd_.get(), static_cast<off_t>(file_bytes_)) == 0;
}

Result<UniqueFd> ExtentFile::OpenFor(Access access) const {
  // By the descriptor: the file may be renamed at this moment.
  const std::string path = fmt::format("/proc/self/fd/{}", fd_.get());
  UniqueFd fd(::open(path.c_str(), (access == Access::kRead ? O_RDONLY : O_RDWR) | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open extent for a client");
  return fd;
}

}  // namespace msa::namd
