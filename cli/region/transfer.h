#pragma once
// Moves bytes between a file and a region, or between regions, so that it can be gone on with after an
// interruption, and checks what arrived.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "msa/base/clock.h"
#include "msa/base/status.h"

#include "region/part_file.h"
#include "region/progress.h"

namespace msa::cli {

// Where bytes come from or go to; positions count from 0. One thread.
class TransferSide {
 public:
  TransferSide() = default;
  virtual ~TransferSide() = default;
  TransferSide(const TransferSide&) = delete;
  TransferSide& operator=(const TransferSide&) = delete;

  virtual std::string name() const = 0;  // "file 'a.bin'", "region 'fields'"
  virtual PartSide identity() const = 0;
  virtual bool can_seek() const = 0;  // false: each position once, in order
  // Fewer bytes than asked only at the end.
  virtual Result<std::size_t> Read(std::uint64_t at, std::span<std::byte> to) = 0;
  virtual Status Write(std::uint64_t at, std::span<const std::byte> from) = 0;
};

struct TransferOptions {
  std::uint64_t length = 0;         // bytes to be moved; at most so many if `until_end`
  bool until_end = false;           // the source's end decides
  std::string state_path = {};      // empty: no state is kept
  bool resume = false;              // go on from the state, if there is one
  bool verify = true;               // read the target again
  std::string what = {};            // for the progress: "put a.bin"
  std::function<bool()> stop = {};  // true: leave off after the chunk under way
  std::function<SteadyTime()> now = &SteadyNow;
};

struct TransferResult {
  std::uint64_t bytes = 0;    // moved in all, by earlier runs too
  std::uint64_t resumed = 0;  // of them by earlier runs
  Checksum checksum;
  bool interrupted = false;  // by `stop`; the state is kept
};

// The state is written before the first byte, then at least every 16 MiB or second, and goes when all is done
// and checked. kFailedPrecondition: the source or the target is not what it was at the interruption, or the
// state is of another transfer; kDataLoss: the target holds something else than was moved, or the state is
// torn; kOutOfRange: the source has more than `length` (`until_end`), or less; errors of both sides, with
// their state kept.
Result<TransferResult> RunTransfer(TransferSide& source, TransferSide& target, const TransferOptions& options,
                                   Progress& progress);

}  // namespace msa::cli
