#include "region/transfer_sides.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace msa::cli {

std::string RegionSide::name() const { return fmt::format("region '{}'", io_.info().name); }

PartSide RegionSide::identity() const {
  return {.kind = PartSide::Kind::kRegion,
          .uuid = io_.info().uuid,
          .generation = io_.info().generation,
          .begin = range_.begin};
}

Result<std::size_t> RegionSide::Read(std::uint64_t at, std::span<std::byte> to) {
  if (at > range_.length) return std::size_t{0};
  to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), range_.length - at)));
  std::size_t done = 0;
  MSA_RETURN_IF_ERROR(
      ForEachPiece(io_.info(), {range_.begin + at, to.size()}, [&](const SegmentPiece& piece) -> Status {
        MSA_RETURN_IF_ERROR(io_.Read(piece.segment, piece.offset, to.subspan(done, piece.bytes)));
        done += piece.bytes;
        return Status::Ok();
      }));
  return done;
}

Status RegionSide::Write(std::uint64_t at, std::span<const std::byte> from) {
  std::size_t done = 0;
  return ForEachPiece(io_.info(), {range_.begin + at, from.size()}, [&](const SegmentPiece& piece) -> Status {
    MSA_RETURN_IF_ERROR(io_.Write(piece.segment, piece.offset, from.subspan(done, piece.bytes)));
    done += piece.bytes;
    return Status::Ok();
  });
}

Result<std::unique_ptr<FileSide>> FileSide::OpenSource(const std::string& path) {
  UniqueFd own;
  if (path != "-") {
    own.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!own) return ErrnoError(errno, "open '" + path + "'");
  }
  const int fd = own ? own.get() : STDIN_FILENO;
  std::unique_ptr<FileSide> out(new FileSide(path, std::move(own), fd));
  MSA_RETURN_IF_ERROR(out->Look(Direction::kRead));
  return out;
}

Result<std::unique_ptr<FileSide>> FileSide::OpenTarget(const std::string& path, Old old) {
  UniqueFd own;
  if (path != "-") {
    own.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (old == Old::kDrop ? O_TRUNC : 0), 0666));
    // A pipe with a name, or a file that may be written only: without the check.
    if (!own && errno == EACCES)
      own.reset(::open(path.c_str(), O_WRONLY | O_CLOEXEC | (old == Old::kDrop ? O_TRUNC : 0)));
    if (!own) return ErrnoError(errno, "open '" + path + "' for writing");
  }
  const int fd = own ? own.get() : STDOUT_FILENO;
  std::unique_ptr<FileSide> out(new FileSide(path, std::move(own), fd));
  MSA_RETURN_IF_ERROR(out->Look(Direction::kWrite));
  return out;
}

Status FileSide::Look(Direction direction) {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return ErrnoError(errno, "look at " + name());
  if (S_ISDIR(info.st_mode)) return Error(Code::kInvalidArgument, "{} is a directory", name());
  const bool readable = (::fcntl(fd_, F_GETFL) & O_ACCMODE) != O_WRONLY;
  // Standard input and output may stand in the middle of a file, which is the caller's business.
  if (own_ && S_ISREG(info.st_mode) && readable) size_ = static_cast<std::uint64_t>(info.st_size);
  if (direction == Direction::kRead && size_) {
    identity_.bytes = *size_;
    identity_.mtime_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  return Status::Ok();
}

std::string FileSide::name() const {
  if (path_ != "-") return fmt::format("file '{}'", path_);
  return fd_ == STDIN_FILENO ? "standard input" : "standard output";
}

Result<std::size_t> FileSide::Read(std::uint64_t at, std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto rest = to.subspan(done);
    const ssize_t n = can_seek() ? ::pread(fd_, rest.data(), rest.size(), static_cast<off_t>(at + done))
                                 : ::read(fd_, rest.data(), rest.size());
    // A signal ends a wait for a pipe; the caller asks what it was.
    if (n < 0 && errno == EINTR && !can_seek()) break;
    if (n < 0 && errno != EINTR) return ErrnoError(errno, "read " + name());
    if (n == 0) break;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return done;
}

Status FileSide::Write(std::uint64_t at, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t n = can_seek() ? ::pwrite(fd_, from.data(), from.size(), static_cast<off_t>(at))
                                 : ::write(fd_, from.data(), from.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write " + name());
    from = from.subspan(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  return Status::Ok();
}

}  // namespace msa::cli
