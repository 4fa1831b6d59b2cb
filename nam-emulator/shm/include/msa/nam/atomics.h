#pragma once
// Element-wise atomic updates of shared memory, as MPI's accumulate calls need them (MPI 4.0, 12.3.4
// and 12.7.1). Used by mapping clients and by namd for all others, so that both are atomic against each
// other.
//
// What is atomic against what: updates of the same elements with the same ElementType. Elements of 1, 2, 4
// and 8 bytes at addresses that are multiples of their size (float complex and small pairs among them) use
// the machine's compare-and-swap; all others are updated under the segment's `elements` lock. A caller that
// holds the segment's exclusive lock may use plain stores (Access::kExclusive): every other update needs at
// least the shared lock meanwhile, taken for the call where its caller holds none. Any thread; no system call
// but a short sleep while another owner holds `elements`.

#include <cstddef>
#include <cstdint>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/nam/layout.h"

namespace msa::nam {

enum class AtomicOp : std::uint8_t {
  kReplace = 0,
  kNoOp = 1,
  kSum = 2,
  kProd = 3,
  kMin = 4,
  kMax = 5,
  kLogicalAnd = 6,
  kLogicalOr = 7,
  kLogicalXor = 8,
  kBitAnd = 9,
  kBitOr = 10,
  kBitXor = 11,
  kMinLoc = 12,
  kMaxLoc = 13,
  kCompareSwap = 14,
};

enum class ElementType : std::uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt16 = 2,
  kUint16 = 3,
  kInt32 = 4,
  kUint32 = 5,
  kInt64 = 6,
  kUint64 = 7,
  kFloat = 8,
  kDouble = 9,
  kLongDouble = 10,  // x87, 16 bytes
  kFloatComplex = 11,
  kDoubleComplex = 12,
  kLongDoubleComplex = 13,
  kFloatInt = 14,  // MPI's pairs, laid out as the C structs { float; int }
  kDoubleInt = 15,
  kLongInt = 16,
  kTwoInt = 17,
  kShortInt = 18,
  kLongDoubleInt = 19,
  kByte = 20,  // MPI_BYTE: bit operations, replace
};

// 0: no such type.
std::size_t ElementBytes(ElementType type) noexcept;
// As MPI's table of operations and types (MPI 4.0, 6.9.2) has it; kReplace and kNoOp go with all.
bool IsValid(AtomicOp op, ElementType type) noexcept;

enum class Access : std::uint8_t {
  kConcurrent = 0,  // others may update the same elements
  kExclusive = 1,   // the caller holds the segment's exclusive lock
};

struct AtomicCall {
  AtomicOp op = AtomicOp::kSum;
  ElementType type = ElementType::kInt64;
  Access access = Access::kConcurrent;
  std::uint32_t owner = 0;      // for `elements`
  SegmentLock* lock = nullptr;  // of the segment
  // Until when to wait for `elements`: its holder may be stopped.
  SteadyTime deadline = SteadyTime::max();
};

// target[i] = target[i] op operand[i] for `count` elements; result (unless null): the elements before.
// operand is null for kNoOp. None of them need be aligned; result and operand do not overlap target.
// kInvalidArgument: op and type do not go together. Not kCompareSwap. kDeadlineExceeded: nothing was touched.
Status Accumulate(const AtomicCall& call, void* target, const void* operand, void* result,
                  std::size_t count) noexcept;

// If *target equals *compare (bytes), it becomes *operand; *result: as it was. Types of MPI_Compare_and_swap:
// integers, logical, byte.
Status CompareAndSwap(const AtomicCall& call, void* target, const void* compare, const void* operand,
                      void* result) noexcept;

}  // namespace msa::nam
