#pragma once
// Files, streams and stretches of regions as sides of a transfer.

#include <memory>

#include "msa/base/unique_fd.h"

#include "region/region_io.h"
#include "region/region_path.h"
#include "region/transfer.h"

namespace msa::cli {

// `io` outlives it.
class RegionSide : public TransferSide {
 public:
  RegionSide(RegionIo& io, RegionRange range) : io_(io), range_(range) {}
  std::string name() const override;
  PartSide identity() const override;
  bool can_seek() const override { return true; }
  Result<std::size_t> Read(std::uint64_t at, std::span<std::byte> to) override;
  Status Write(std::uint64_t at, std::span<const std::byte> from) override;

 private:
  RegionIo& io_;
  const RegionRange range_;
};

// A regular file, or, without seeking, a pipe, a device or a terminal.
class FileSide : public TransferSide {
 public:
  // kNotFound, kPermissionDenied; kInvalidArgument: a directory. "-" is standard input.
  static Result<std::unique_ptr<FileSide>> OpenSource(const std::string& path);
  enum class Old { kDrop, kKeep };  // what a file that is there holds
  // "-" is standard output.
  static Result<std::unique_ptr<FileSide>> OpenTarget(const std::string& path, Old old);

  // nullopt: not known before its end.
  std::optional<std::uint64_t> size() const { return size_; }
  std::string name() const override;
  PartSide identity() const override { return identity_; }
  bool can_seek() const override { return size_.has_value(); }
  Result<std::size_t> Read(std::uint64_t at, std::span<std::byte> to) override;
  Status Write(std::uint64_t at, std::span<const std::byte> from) override;

 private:
  FileSide(std::string path, UniqueFd own, int fd) : path_(std::move(path)), own_(std::move(own)), fd_(fd) {}
  enum class Direction { kRead, kWrite };
  Status Look(Direction direction);

  const std::string path_;
  UniqueFd own_;
  const int fd_;
  std::optional<std::uint64_t> size_;
  PartSide identity_;
};

}  // namespace msa::cli
