#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "msa/base/status.h"
#include "msa/base/unique_fd.h"
#include "msa/nam/layout.h"
#include "msa/namd/attachments.h"
#include "msa/namd/extent_name.h"

#include "bus_guard.h"

namespace msa::namd {

// An extent's file, open and mapped. The header in it is the client's to spoil: positions are computed from
// the shape that was checked when the file was opened or made. Any thread; the words in it are atomic.
class ExtentFile {
 public:
  // A new file: exclusively created, wholly backed, zeroed, its header written. On failure nothing is left.
  // kAlreadyExists; kResourceExhausted: the file system is full, with numbers. `page`: of the file system.
  static Result<std::shared_ptr<ExtentFile>> Create(const std::string& path, const ExtentKey& key,
                                                    ExtentShape shape, std::size_t page);
  // kDataLoss: what is there is not the whole extent `key`.
  static Result<std::shared_ptr<ExtentFile>> Open(const std::string& path, const ExtentKey& key,
                                                  std::size_t page);
  ~ExtentFile();
  ExtentFile(const ExtentFile&) = delete;
  ExtentFile& operator=(const ExtentFile&) = delete;

  const ExtentShape& shape() const { return shape_; }
  std::uint64_t header_bytes() const { return nam::HeaderBytes(shape_.segments); }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t data_bytes() const { return file_bytes_ - header_bytes(); }
  std::byte* data() const { return base_ + header_bytes(); }
  // slot < shape().segments; 1 <= number <= kMaxOwners.
  nam::SegmentLock& lock(std::uint32_t slot) const;
  nam::OwnerSlot& owner(std::uint32_t number) const;
  std::atomic<std::uint32_t>& highest_owner() const;

  // "truncated to 0 of 8192 bytes", "removed"; empty: it is whole.
  std::string Damage() const;
  // Gives back what lies beyond its end. Whether there was anything.
  bool Trim() const;
  // For a client: a descriptor of its own open file description.
  enum class Access { kRead, kReadWrite };
  Result<UniqueFd> OpenFor(Access access) const;
  int fd() const { return fd_.get(); }

 private:
  ExtentFile(UniqueFd fd, ExtentShape shape, std::uint64_t file_bytes)
      : fd_(std::move(fd)), shape_(shape), file_bytes_(file_bytes) {}
  Status Map(std::size_t page);

  UniqueFd fd_;
  ExtentShape shape_;
  std::uint64_t file_bytes_ = 0;
  std::byte* base_ = nullptr;
  BusGuard guard_;
};

// Of an extent's file: header and data, rounded up to whole pages. kOutOfRange: more than a file can have.
Result<std::uint64_t> ExtentFileBytes(ExtentShape shape, std::size_t page);

}  // namespace msa::namd
