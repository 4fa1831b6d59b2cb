// msa_nam.h: atomics. A mapped segment is updated here, with the routines that namd uses for all others.

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>

#include "errors.h"
#include "region.h"

using msa::Code;
using msa::Error;
using msa::Millis;
using msa::NamRights;
using msa::Result;
using msa::Status;
using msa::SteadyNow;
using msa::SteadyTime;
using msa::nam::Access;
using msa::nam::AtomicCall;
using msa::nam::AtomicOp;
using msa::nam::ElementBytes;
using msa::nam::ElementType;
using msa::nam::Finish;
using msa::nam::Gate;
using msa::nam::LockWords;
using msa::nam::Segment;

static_assert(static_cast<int>(AtomicOp::kMaxLoc) == MSA_NAM_MAXLOC);
static_assert(static_cast<int>(ElementType::kByte) == MSA_NAM_BYTE);

namespace {

// Of one request to namd: operands and results each. Elements are atomic one by one.
constexpr std::size_t kRequestBytes = std::size_t{32} << 10;

struct Update {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  AtomicOp op = AtomicOp::kSum;
  ElementType type = ElementType::kInt64;
  const void* operand = nullptr;
  const void* compare = nullptr;
  void* result = nullptr;
  std::size_t count = 1;
  int given_op = 0, given_type = 0;  // as the program gave them
};

constexpr const char* kOps[] = {"MSA_NAM_REPLACE", "MSA_NAM_NO_OP",  "MSA_NAM_SUM",         "MSA_NAM_PROD",
                                "MSA_NAM_MIN",     "MSA_NAM_MAX",    "MSA_NAM_LAND",        "MSA_NAM_LOR",
                                "MSA_NAM_LXOR",    "MSA_NAM_BAND",   "MSA_NAM_BOR",         "MSA_NAM_BXOR",
                                "MSA_NAM_MINLOC",  "MSA_NAM_MAXLOC", "msa_nam_compare_swap"};
static_assert(std::size(kOps) == static_cast<std::size_t>(AtomicOp::kCompareSwap) + 1);
constexpr const char* kTypes[] = {"MSA_NAM_INT8",
                                  "MSA_NAM_UINT8",
                                  "MSA_NAM_INT16",
                                  "MSA_NAM_UINT16",
                                  "MSA_NAM_INT32",
                                  "MSA_NAM_UINT32",
                                  "MSA_NAM_INT64",
                                  "MSA_NAM_UINT64",
                                  "MSA_NAM_FLOAT",
                                  "MSA_NAM_DOUBLE",
                                  "MSA_NAM_LONG_DOUBLE",
                                  "MSA_NAM_FLOAT_COMPLEX",
                                  "MSA_NAM_DOUBLE_COMPLEX",
                                  "MSA_NAM_LONG_DOUBLE_COMPLEX",
                                  "MSA_NAM_FLOAT_INT",
                                  "MSA_NAM_DOUBLE_INT",
                                  "MSA_NAM_LONG_INT",
                                  "MSA_NAM_TWO_INT",
                                  "MSA_NAM_SHORT_INT",
                                  "MSA_NAM_LONG_DOUBLE_INT",
                                  "MSA_NAM_BYTE"};
static_assert(std::size(kTypes) == static_cast<std::size_t>(ElementType::kByte) + 1);

// What stands for a value that C programs may not give: it goes with nothing.
constexpr auto kUnknownOp = static_cast<AtomicOp>(0xff);
constexpr auto kUnknownType = static_cast<ElementType>(0xff);

Status WhyNot(const Update& update) {
  if (update.op == kUnknownOp)
    return Error(Code::kInvalidArgument, "operation {} does not exist; expected {} ({}) to {} ({})",
                 update.given_op, kOps[MSA_NAM_REPLACE], static_cast<int>(MSA_NAM_REPLACE),
                 kOps[MSA_NAM_MAXLOC], static_cast<int>(MSA_NAM_MAXLOC));
  if (update.type == kUnknownType)
    return Error(Code::kInvalidArgument, "element type {} does not exist; expected {} ({}) to {} ({})",
                 update.given_type, kTypes[MSA_NAM_INT8], static_cast<int>(MSA_NAM_INT8),
                 kTypes[MSA_NAM_BYTE], static_cast<int>(MSA_NAM_BYTE));
  return Error(Code::kInvalidArgument,
               "operation {} does not go with element type {}; see the table of MPI 4.0, 6.9.2",
               kOps[static_cast<int>(update.op)], kTypes[static_cast<int>(update.type)]);
}

Status Check(const msa_nam_region* region, const Update& update) {
  if (region == nullptr) return Status(Code::kInvalidArgument, "region is a null pointer");
  const std::size_t bytes = ElementBytes(update.type);
  if (!IsValid(update.op, update.type)) return WhyNot(update);
  // More than any segment has, instead of a product that has overflowed.
  const std::uint64_t all =
      update.count > ~std::uint64_t{0} / bytes ? ~std::uint64_t{0} : update.count * bytes;
  const bool only_reads = update.op == AtomicOp::kNoOp;
  MSA_RETURN_IF_ERROR(
      region->Check(update.segment, update.offset, all, only_reads ? NamRights::kRead : NamRights::kWrite));
  const bool swaps = update.op == AtomicOp::kCompareSwap;
  if (update.count != 0 && ((!only_reads && update.operand == nullptr) ||
                            (swaps && (update.compare == nullptr || update.result == nullptr))))
    return Status(Code::kInvalidArgument, "operand, compare or result is a null pointer");
  return Status::Ok();
}

// ----------------------------------------------------------------------------------------- mapped memory

// A word of the machine never waits for the segment's lock of elements.
bool IsWord(const Update& update, const void* target) {
  const std::size_t bytes = ElementBytes(update.type);
  return bytes <= 8 && reinterpret_cast<std::uintptr_t>(target) % bytes == 0;
}

Status UpdateMapped(msa_nam_region& region, const Segment& segment, std::byte* base, const Update& update) {
  const LockWords words = segment.extent->words(segment.slot);
  Gate& gate = segment.extent->gate(segment.slot);
  std::byte* target = base + update.offset;
  MSA_ASSIGN_OR_RETURN(const Access access, gate.Enter(words, region.timeout()));
  AtomicCall call{update.op, update.type, access, words.owner, words.lock};
  if (!IsWord(update, target)) call.deadline = region.Deadline();
  Status done = update.op == AtomicOp::kCompareSwap
                    ? CompareAndSwap(call, target, update.compare, update.operand, update.result)
                    : Accumulate(call, target, update.operand, update.result, update.count);
  gate.Leave(words);
  return done;
}

// -------------------------------------------------------------------------------------------------- by namd

Status UpdateRemote(msa_nam_region& region, const Segment& segment, const Update& update) {
  const std::size_t bytes = ElementBytes(update.type);
  const std::size_t batch = std::max<std::size_t>(1, kRequestBytes / bytes);
  const SteadyTime deadline = region.TransferDeadline();
  for (std::size_t at = 0; at < update.count; at += batch) {
    const std::size_t count = std::min(batch, update.count - at);
    msa::wire::NamAtomic atomic;
    atomic.slot = segment.slot;
    atomic.offset = segment.extent_offset + update.offset + at * bytes;
    atomic.op = static_cast<std::uint8_t>(update.op);
    atomic.type = static_cast<std::uint8_t>(update.type);
    atomic.fetch = update.result != nullptr;
    atomic.count = static_cast<std::uint32_t>(count);
    if (update.op != AtomicOp::kNoOp)
      atomic.operand.assign(static_cast<const char*>(update.operand) + at * bytes, count * bytes);
    if (update.compare != nullptr) atomic.compare.assign(static_cast<const char*>(update.compare), bytes);
    MSA_ASSIGN_OR_RETURN(const std::string result, segment.extent->AskAtomic(std::move(atomic), deadline));
    if (update.result == nullptr) continue;
    if (result.size() != count * bytes)
      return Error(Code::kInternal, "NAM daemon answered with {} bytes, expected {}", result.size(),
                   count * bytes);
    std::memcpy(static_cast<std::byte*>(update.result) + at * bytes, result.data(), result.size());
  }
  return Status::Ok();
}

int Do(const char* what, msa_nam_region_t region, const Update& update) noexcept {
  try {
    Status done = Check(region, update);
    if (done.ok() && update.count != 0) {
      Segment& segment = region->segments[update.segment];
      std::byte* base = segment.put_base.load(std::memory_order_acquire);
      done = base != nullptr ? UpdateMapped(*region, segment, base, update)
                             : UpdateRemote(*region, segment, update);
    }
    return Finish(what, done);
  } catch (const std::exception& e) {
    return Finish(what, Status(Code::kInternal, e.what()));
  }
}

AtomicOp OpOf(msa_nam_op op) {
  // kCompareSwap is none of theirs.
  return op >= MSA_NAM_REPLACE && op <= MSA_NAM_MAXLOC ? static_cast<AtomicOp>(op) : kUnknownOp;
}
ElementType TypeOf(msa_nam_type type) {
  return type >= MSA_NAM_INT8 && type <= MSA_NAM_BYTE ? static_cast<ElementType>(type) : kUnknownType;
}

}  // namespace

extern "C" {

size_t msa_nam_type_bytes(enum msa_nam_type type) { return ElementBytes(TypeOf(type)); }

int msa_nam_accumulate(msa_nam_region_t region, uint32_t segment, uint64_t offset, enum msa_nam_op op,
                       enum msa_nam_type type, const void* operand, size_t count) {
  return Do("msa_nam_accumulate", region,
            {segment, offset, OpOf(op), TypeOf(type), operand, nullptr, nullptr, count, op, type});
}
int msa_nam_get_accumulate(msa_nam_region_t region, uint32_t segment, uint64_t offset, enum msa_nam_op op,
                           enum msa_nam_type type, const void* operand, void* result, size_t count) {
  if (result == nullptr && count != 0)
    return Finish("msa_nam_get_accumulate", Status(Code::kInvalidArgument, "result is a null pointer"));
  return Do("msa_nam_get_accumulate", region,
            {segment, offset, OpOf(op), TypeOf(type), operand, nullptr, result, count, op, type});
}
int msa_nam_compare_swap(msa_nam_region_t region, uint32_t segment, uint64_t offset, enum msa_nam_type type,
                         const void* compare, const void* operand, void* result) {
  return Do("msa_nam_compare_swap", region,
            {segment, offset, AtomicOp::kCompareSwap, TypeOf(type), operand, compare, result, 1, 0, type});
}
int msa_nam_fetch_add(msa_nam_region_t region, uint32_t segment, uint64_t offset, int64_t operand,
                      int64_t* result) {
  return Do("msa_nam_fetch_add", region,
            {segment, offset, AtomicOp::kSum, ElementType::kInt64, &operand, nullptr, result, 1});
}
int msa_nam_swap(msa_nam_region_t region, uint32_t segment, uint64_t offset, int64_t operand,
                 int64_t* result) {
  return Do("msa_nam_swap", region,
            {segment, offset, AtomicOp::kReplace, ElementType::kInt64, &operand, nullptr, result, 1});
}
}
