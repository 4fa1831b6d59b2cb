#include "msa/nam/atomics.h"

#include <array>
#include <cstring>
#include <thread>
#include <type_traits>

#include "element_ops.h"

namespace msa::nam {
namespace {

constexpr std::size_t kTypes = 21;
constexpr std::size_t kOps = 15;

struct Elements {
  std::byte* target;
  const std::byte* operand;
  std::byte* result;
  std::size_t count;
};

template <class To, class From>
To Cast(const From& from) {
  To to;
  std::memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}
// At any address, and whatever type the memory was written as.
template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), at, sizeof value);
  return value;
}

// ------------------------------------------------------------------ nobody else may touch the elements

template <class T, class Op>
void Plain(const Elements& e) noexcept {
  if constexpr (Op::kReads) {
    if (e.result != nullptr) std::memcpy(e.result, e.target, e.count * sizeof(T));
  }
  if constexpr (std::is_same_v<Op, Replace>) {
    std::memcpy(e.target, e.operand, e.count * sizeof(T));
  } else if constexpr (!std::is_same_v<Op, NoOp>) {
    std::byte* __restrict target = e.target;
    const std::byte* __restrict operand = e.operand;
    const std::size_t bytes = e.count * sizeof(T);
    for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
      const T updated = Op::template Of<T>(Load<T>(target + i), Load<T>(operand + i));
      std::memcpy(target + i, static_cast<const void*>(&updated), sizeof updated);
    }
  }
}

// -------------------------------------------------------------- elements as large as a machine's word

template <std::size_t kBytes>
using Word =
    std::conditional_t<kBytes == 1, std::uint8_t,
                       std::conditional_t<kBytes == 2, std::uint16_t,
                                          std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
constexpr bool kIsWord = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8;

// The word as it was.
template <class T, class Op>
Word<sizeof(T)> UpdateWord(Word<sizeof(T)>* word, const std::byte* operand) noexcept {
  using W = Word<sizeof(T)>;
  if constexpr (std::is_same_v<Op, NoOp>) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  } else if constexpr (std::is_same_v<Op, Replace>) {
    return __atomic_exchange_n(word, Load<W>(operand), __ATOMIC_ACQ_REL);
  } else if constexpr (std::is_same_v<Op, Sum> && std::is_integral_v<T>) {
    return __atomic_fetch_add(word, Load<W>(operand), __ATOMIC_ACQ_REL);
  } else {
    const T mine = Load<T>(operand);
    W old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, Cast<W>(Op::template Of<T>(Cast<T>(old), mine)),
                                        /*weak=*/true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return old;
  }
}

template <class T, class Op>
void ByWords(const Elements& e) noexcept {
  using W = Word<sizeof(T)>;
  auto* words = reinterpret_cast<W*>(e.target);
  if (e.result == nullptr) {
    if constexpr (Op::kWrites)
      for (std::size_t i = 0; i < e.count; ++i) UpdateWord<T, Op>(words + i, e.operand + i * sizeof(T));
    return;
  }
  for (std::size_t i = 0; i < e.count; ++i) {
    const W old = UpdateWord<T, Op>(words + i, e.operand + (Op::kWrites ? i * sizeof(T) : 0));
    std::memcpy(e.result + i * sizeof(T), &old, sizeof old);
  }
}

// ----------------------------------------------------------------------------- which one does what

using Handler = void (*)(const Elements&) noexcept;
struct Handlers {
  Handler plain = nullptr;  // null: op and type do not go together
  Handler words = nullptr;  // null: no word holds such an element
};

template <class T, class Op>
constexpr Handlers HandlersOf() {
  if constexpr (kIsWord<T>)
    return {&Plain<T, Op>, &ByWords<T, Op>};
  else
    return {&Plain<T, Op>, nullptr};
}

using Row = std::array<Handlers, kOps>;

template <class T, ElementClass kClass>
constexpr Row RowOf() {
  Row row{};
  const auto set = [&row](AtomicOp op, Handlers handlers) { row[static_cast<std::size_t>(op)] = handlers; };
  set(AtomicOp::kReplace, HandlersOf<T, Replace>());
  set(AtomicOp::kNoOp, HandlersOf<T, NoOp>());
  if constexpr (kClass == ElementClass::kInteger || kClass == ElementClass::kReal ||
                kClass == ElementClass::kComplex) {
    set(AtomicOp::kSum, HandlersOf<T, Sum>());
    set(AtomicOp::kProd, HandlersOf<T, Prod>());
  }
  if constexpr (kClass == ElementClass::kInteger || kClass == ElementClass::kReal) {
    set(AtomicOp::kMin, HandlersOf<T, Min>());
    set(AtomicOp::kMax, HandlersOf<T, Max>());
  }
  if constexpr (kClass == ElementClass::kInteger) {
    set(AtomicOp::kLogicalAnd, HandlersOf<T, LogicalAnd>());
    set(AtomicOp::kLogicalOr, HandlersOf<T, LogicalOr>());
    set(AtomicOp::kLogicalXor, HandlersOf<T, LogicalXor>());
  }
  if constexpr (kClass == ElementClass::kInteger || kClass == ElementClass::kByte) {
    set(AtomicOp::kBitAnd, HandlersOf<T, BitAnd>());
    set(AtomicOp::kBitOr, HandlersOf<T, BitOr>());
    set(AtomicOp::kBitXor, HandlersOf<T, BitXor>());
  }
  if constexpr (kClass == ElementClass::kPair) {
    set(AtomicOp::kMinLoc, HandlersOf<T, MinLoc>());
    set(AtomicOp::kMaxLoc, HandlersOf<T, MaxLoc>());
  }
  return row;
}

struct TypeInfo {
  std::size_t bytes;
  ElementClass kind;
  Row row;
};
template <class T, ElementClass kClass>
constexpr TypeInfo InfoOf() {
  return {sizeof(T), kClass, RowOf<T, kClass>()};
}

constexpr std::array<TypeInfo, kTypes> kInfo = {
    InfoOf<std::int8_t, ElementClass::kInteger>(),
    InfoOf<std::uint8_t, ElementClass::kInteger>(),
    InfoOf<std::int16_t, ElementClass::kInteger>(),
    InfoOf<std::uint16_t, ElementClass::kInteger>(),
    InfoOf<std::int32_t, ElementClass::kInteger>(),
    InfoOf<std::uint32_t, ElementClass::kInteger>(),
    InfoOf<std::int64_t, ElementClass::kInteger>(),
    InfoOf<std::uint64_t, ElementClass::kInteger>(),
    InfoOf<float, ElementClass::kReal>(),
    InfoOf<double, ElementClass::kReal>(),
    InfoOf<long double, ElementClass::kReal>(),
    InfoOf<Complex<float>, ElementClass::kComplex>(),
    InfoOf<Complex<double>, ElementClass::kComplex>(),
    InfoOf<Complex<long double>, ElementClass::kComplex>(),
    InfoOf<Pair<float>, ElementClass::kPair>(),
    InfoOf<Pair<double>, ElementClass::kPair>(),
    InfoOf<Pair<long>, ElementClass::kPair>(),
    InfoOf<Pair<int>, ElementClass::kPair>(),
    InfoOf<Pair<short>, ElementClass::kPair>(),
    InfoOf<Pair<long double>, ElementClass::kPair>(),
    InfoOf<std::uint8_t, ElementClass::kByte>(),
};

const TypeInfo* Find(ElementType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kTypes ? &kInfo[index] : nullptr;
}

bool IsAligned(const void* at, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
}

// ------------------------------------------------------------------------- the lock of all other elements

class ElementsGuard {
 public:
  explicit ElementsGuard(const AtomicCall& call) : word_(call.lock->elements) {
    held_ = Take(call.owner) || Wait(call);
  }
  ~ElementsGuard() {
    if (held_) word_.store(0, std::memory_order_release);
  }
  ElementsGuard(const ElementsGuard&) = delete;
  ElementsGuard& operator=(const ElementsGuard&) = delete;
  bool held() const { return held_; }

 private:
  bool Take(std::uint32_t owner) {
    std::uint32_t free = 0;
    return word_.load(std::memory_order_relaxed) == 0 &&
           word_.compare_exchange_strong(free, owner, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // It is held for one call: microseconds, unless its owner is stopped or has died and waits for namd to say
  // so.
  bool Wait(const AtomicCall& call) {
    for (int i = 0; i < 200; ++i) {
      __builtin_ia32_pause();
      if (Take(call.owner)) return true;
    }
    auto pause = std::chrono::microseconds(20);
    while (SteadyNow() < call.deadline) {
      std::this_thread::sleep_for(pause);
      if (Take(call.owner)) return true;
      pause = std::min(pause * 2, std::chrono::microseconds(1000));
    }
    return false;
  }

  std::atomic<std::uint32_t>& word_;
  bool held_ = false;
};

Status ElementsHeld(const AtomicCall& call) {
  return Error(
      Code::kDeadlineExceeded,
      "element lock of the segment is held by owner {} until the deadline; expected a free one within "
      "microseconds: see whether that process is stopped",
      call.lock->elements.load());
}

template <class W>
void SwapWord(void* target, const void* compare, const void* operand, void* result) {
  W expected = Load<W>(static_cast<const std::byte*>(compare));
  const W wanted = Load<W>(static_cast<const std::byte*>(operand));
  __atomic_compare_exchange_n(static_cast<W*>(target), &expected, wanted, /*weak=*/false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  std::memcpy(result, &expected, sizeof expected);
}

void SwapPlain(void* target, const void* compare, const void* operand, void* result, std::size_t bytes) {
  const bool equal = std::memcmp(target, compare, bytes) == 0;
  std::memcpy(result, target, bytes);
  if (equal) std::memcpy(target, operand, bytes);
}

}  // namespace

std::size_t ElementBytes(ElementType type) noexcept {
  const TypeInfo* info = Find(type);
  return info != nullptr ? info->bytes : 0;
}

bool IsValid(AtomicOp op, ElementType type) noexcept {
  const TypeInfo* info = Find(type);
  if (info == nullptr) return false;
  if (op == AtomicOp::kCompareSwap)
    return info->kind == ElementClass::kInteger || info->kind == ElementClass::kByte;
  const auto index = static_cast<std::size_t>(op);
  return index < kOps && info->row[index].plain != nullptr;
}

Status Accumulate(const AtomicCall& call, void* target, const void* operand, void* result,
                  std::size_t count) noexcept {
  const TypeInfo* info = Find(call.type);
  const auto op = static_cast<std::size_t>(call.op);
  if (info == nullptr || op >= kOps || info->row[op].plain == nullptr)
    return Error(Code::kInvalidArgument,
                 "operation {} does not go with element type {}; see the table of MPI 4.0, 6.9.2", op,
                 static_cast<int>(call.type));
  const Elements elements{static_cast<std::byte*>(target), static_cast<const std::byte*>(operand),
                          static_cast<std::byte*>(result), count};
  const Handlers& handlers = info->row[op];
  if (call.access == Access::kExclusive) {
    handlers.plain(elements);
  } else if (handlers.words != nullptr && IsAligned(target, info->bytes)) {
    handlers.words(elements);
  } else {
    const ElementsGuard guard(call);
    if (!guard.held()) return ElementsHeld(call);
    handlers.plain(elements);
  }
  return Status::Ok();
}

Status CompareAndSwap(const AtomicCall& call, void* target, const void* compare, const void* operand,
                      void* result) noexcept {
  if (!IsValid(AtomicOp::kCompareSwap, call.type))
    return Error(Code::kInvalidArgument,
                 "compare and swap does not go with element type {}; expected an integer or byte",
                 static_cast<int>(call.type));
  const std::size_t bytes = ElementBytes(call.type);
  if (call.access == Access::kExclusive) {
    SwapPlain(target, compare, operand, result, bytes);
    return Status::Ok();
  }
  if (!IsAligned(target, bytes)) {
    const ElementsGuard guard(call);
    if (!guard.held()) return ElementsHeld(call);
    SwapPlain(target, compare, operand, result, bytes);
    return Status::Ok();
  }
  switch (bytes) {
    case 1:
      SwapWord<std::uint8_t>(target, compare, operand, result);
      break;
    case 2:
      SwapWord<std::uint16_t>(target, compare, operand, result);
      break;
    case 4:
      SwapWord<std::uint32_t>(target, compare, operand, result);
      break;
    default:
      SwapWord<std::uint64_t>(target, compare, operand, result);
  }
  return Status::Ok();
}

}  // namespace msa::nam
