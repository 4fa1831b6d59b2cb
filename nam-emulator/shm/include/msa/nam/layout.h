#pragma once
// How an extent lies in its file: what namd makes and every process that maps it reads. All integers as the
// machine has them (a file does not travel). Version in the header; a namd refuses files of another one.
//
//   0                 ExtentHeader, one page
//   header.locks_at   SegmentLock[header.segments]
//   header.owners_at  OwnerSlot[kMaxOwners]; slot n - 1 belongs to owner number n
//   header.data_at    the data, page aligned; segment s begins at data_at + segment_offset[s]
//
// A process that may write and maps the file has all of it writable: what stands in front of the data is
// trusted by nobody but the owner's own processes; namd checks every index and offset against its own books.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace msa::nam {

inline constexpr std::uint64_t kExtentMagic = 0x31746e6574786d6e;  // "nmxtent1"
inline constexpr std::uint32_t kExtentVersion = 1;
inline constexpr std::size_t kPageBytes = 4096;
// Segments begin at multiples of a cache line, so that two of them never share one.
inline constexpr std::size_t kSegmentAlign = 64;
// Processes attached to one extent at a time: one bit each in every lock.
inline constexpr std::uint32_t kMaxOwners = 1024;
inline constexpr std::size_t kOwnerWords = kMaxOwners / 64;

struct ExtentHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t generation;
  std::uint64_t uuid_high;
  std::uint64_t uuid_low;
  std::uint32_t segments;
  std::uint32_t owners;  // kMaxOwners
  std::uint64_t locks_at;
  std::uint64_t owners_at;
  std::uint64_t data_at;
  std::uint64_t data_bytes;
  // Highest owner number ever given in this file, so that few words of the locks are looked at.
  std::atomic<std::uint32_t> highest_owner;
  std::uint32_t reserved;
};
static_assert(sizeof(ExtentHeader) <= kPageBytes);

// A passive-target lock. Exclusive: `exclusive` holds the owner's number. Shared: the owner's bit is set in
// `shared`. Also the lock of elements that no atomic instruction can hold (msa/nam/atomics.h). Every step of
// taking it can be undone by knowing the owner alone: FreeLocksOf.
struct alignas(64) SegmentLock {
  std::atomic<std::uint32_t> exclusive;  // 0: free
  std::atomic<std::uint32_t> elements;   // owner that updates elements one by one, 0: none
  std::uint32_t reserved[14];
  std::atomic<std::uint64_t> shared[kOwnerWords];
};
static_assert(sizeof(SegmentLock) == 192);

// Who holds an owner number, for people: written by namd alone, and everybody who maps the file reads it.
struct OwnerSlot {
  std::atomic<std::uint64_t> process;  // its pid, or one of these; 0: free
};
inline constexpr std::uint64_t kRemoteProcess = ~std::uint64_t{0};
// All its leases have ended, though it still maps the file: it has no rights and holds no locks any more.
inline constexpr std::uint64_t kRevokedProcess = ~std::uint64_t{1};

constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// Bytes in front of the data, page aligned, of an extent with so many segments.
constexpr std::uint64_t HeaderBytes(std::uint64_t segments) {
  return RoundUp(kPageBytes + segments * sizeof(SegmentLock) + kMaxOwners * sizeof(OwnerSlot), kPageBytes);
}

// Pointers into a mapping of at least HeaderBytes(segments); the caller has checked it.
class ExtentView {
 public:
  ExtentView() = default;
  explicit ExtentView(void* base) : base_(static_cast<std::byte*>(base)) {}
  ExtentHeader& header() const { return *reinterpret_cast<ExtentHeader*>(base_); }
  SegmentLock& lock(std::uint32_t slot) const {
    return reinterpret_cast<SegmentLock*>(base_ + header().locks_at)[slot];
  }
  OwnerSlot& owner(std::uint32_t number) const {
    return reinterpret_cast<OwnerSlot*>(base_ + header().owners_at)[number - 1];
  }
  std::byte* data() const { return base_ + header().data_at; }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  std::byte* base_ = nullptr;
};

}  // namespace msa::nam
