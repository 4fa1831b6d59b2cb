#include "msa/nam/atomics.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace msa::nam {
namespace {

constexpr std::size_t kCount = 37;

// The plain computation, written anew from MPI's text.
template <class T>
T Expected(AtomicOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case AtomicOp::kSum:
        return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
      case AtomicOp::kProd:
        return static_cast<T>(static_cast<U>(std::uint64_t{static_cast<U>(a)} * static_cast<U>(b)));
      case AtomicOp::kLogicalAnd:
        return (a && b) ? 1 : 0;
      case AtomicOp::kLogicalOr:
        return (a || b) ? 1 : 0;
      case AtomicOp::kLogicalXor:
        return (!a != !b) ? 1 : 0;
      case AtomicOp::kBitAnd:
        return static_cast<T>(a & b);
      case AtomicOp::kBitOr:
        return static_cast<T>(a | b);
      case AtomicOp::kBitXor:
        return static_cast<T>(a ^ b);
      default:
        break;
    }
  }
  switch (op) {
    case AtomicOp::kReplace:
      return b;
    case AtomicOp::kSum:
      return static_cast<T>(a + b);
    case AtomicOp::kProd:
      return static_cast<T>(a * b);
    case AtomicOp::kMin:
      return a < b ? a : b;
    case AtomicOp::kMax:
      return a > b ? a : b;
    default:
      return a;
  }
}

struct Ways {
  std::size_t misalign;
  Access access;
};
constexpr Ways kWays[] = {
    {0, Access::kConcurrent}, {1, Access::kConcurrent}, {0, Access::kExclusive}, {1, Access::kExclusive}};

template <class T>
class Fixture {
 public:
  explicit Fixture(Ways way)
      : way_(way), target_(kCount * sizeof(T) + 64), operand_(target_), result_(target_) {
    at_ = static_cast<std::byte*>(target_.data());
    while (reinterpret_cast<std::uintptr_t>(at_) % 32 != way.misalign) ++at_;
  }
  T Target(std::size_t i) const { return Get(at_, i); }
  T Result(std::size_t i) const { return Get(result_.data() + 1, i); }
  void Set(std::size_t i, T target, T operand) {
    std::memcpy(at_ + i * sizeof(T), &target, sizeof(T));
    std::memcpy(operand_.data() + 1 + i * sizeof(T), &operand, sizeof(T));
  }
  Status Run(AtomicOp op, ElementType type, bool fetch) {
    AtomicCall call{op, type, way_.access, 3, &lock_};
    const Status done = Accumulate(call, at_, op == AtomicOp::kNoOp ? nullptr : operand_.data() + 1,
                                   fetch ? result_.data() + 1 : nullptr, kCount);
    EXPECT_EQ(lock_.elements.load(), 0u);
    return done;
  }

 private:
  static T Get(const std::byte* from, std::size_t i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    return value;
  }
  Ways way_;
  SegmentLock lock_{};
  std::vector<std::byte> target_;
  std::vector<std::byte> operand_;
  std::vector<std::byte> result_;
  std::byte* at_;
};

template <class T>
void CheckScalar(ElementType type, const std::vector<AtomicOp>& ops) {
  ASSERT_EQ(ElementBytes(type), sizeof(T));
  std::minstd_rand random(5);
  for (const AtomicOp op : ops) {
    ASSERT_TRUE(IsValid(op, type)) << static_cast<int>(op) << " with " << static_cast<int>(type);
    for (const Ways way : kWays) {
      for (const bool fetch : {false, true}) {
        Fixture<T> f(way);
        std::vector<T> before(kCount), operand(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          before[i] = static_cast<T>(static_cast<int>(random() % 401) - 200);
          operand[i] = static_cast<T>(i % 5 == 0 ? 0 : static_cast<int>(random() % 401) - 200);
          f.Set(i, before[i], operand[i]);
        }
        ASSERT_TRUE(f.Run(op, type, fetch).ok());
        for (std::size_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(f.Target(i), Expected(op, before[i], operand[i]))
              << "op " << static_cast<int>(op) << " type " << static_cast<int>(type) << " element " << i;
          if (fetch) {
            ASSERT_EQ(f.Result(i), before[i]);
          }
        }
      }
    }
  }
}

const std::vector<AtomicOp> kAlways = {AtomicOp::kReplace, AtomicOp::kNoOp};
const std::vector<AtomicOp> kReal = {AtomicOp::kReplace, AtomicOp::kNoOp, AtomicOp::kSum,
                                     AtomicOp::kProd,    AtomicOp::kMin,  AtomicOp::kMax};
const std::vector<AtomicOp> kInteger = {AtomicOp::kReplace,    AtomicOp::kNoOp,      AtomicOp::kSum,
                                        AtomicOp::kProd,       AtomicOp::kMin,       AtomicOp::kMax,
                                        AtomicOp::kLogicalAnd, AtomicOp::kLogicalOr, AtomicOp::kLogicalXor,
                                        AtomicOp::kBitAnd,     AtomicOp::kBitOr,     AtomicOp::kBitXor};
const std::vector<AtomicOp> kByte = {AtomicOp::kReplace, AtomicOp::kNoOp, AtomicOp::kBitAnd, AtomicOp::kBitOr,
                                     AtomicOp::kBitXor};

TEST(Accumulate, IntegersAreAsPlainCodeComputesThem) {
  CheckScalar<std::int8_t>(ElementType::kInt8, kInteger);
  CheckScalar<std::uint8_t>(ElementType::kUint8, kInteger);
  CheckScalar<std::int16_t>(ElementType::kInt16, kInteger);
  CheckScalar<std::uint16_t>(ElementType::kUint16, kInteger);
  CheckScalar<std::int32_t>(ElementType::kInt32, kInteger);
  CheckScalar<std::uint32_t>(ElementType::kUint32, kInteger);
  CheckScalar<std::int64_t>(ElementType::kInt64, kInteger);
  CheckScalar<std::uint64_t>(ElementType::kUint64, kInteger);
  CheckScalar<std::uint8_t>(ElementType::kByte, kByte);
}

TEST(Accumulate, RealNumbersAreAsPlainCodeComputesThem) {
  CheckScalar<float>(ElementType::kFloat, kReal);
  CheckScalar<double>(ElementType::kDouble, kReal);
  CheckScalar<long double>(ElementType::kLongDouble, kReal);
}

template <class R>
struct Number {
  R re, im;
};

template <class R>
void CheckComplex(ElementType type) {
  using T = Number<R>;
  ASSERT_EQ(ElementBytes(type), sizeof(T));
  for (const AtomicOp op : {AtomicOp::kReplace, AtomicOp::kNoOp, AtomicOp::kSum, AtomicOp::kProd}) {
    ASSERT_TRUE(IsValid(op, type));
    for (const Ways way : kWays) {
      Fixture<T> f(way);
      for (std::size_t i = 0; i < kCount; ++i)
        f.Set(i, {static_cast<R>(i), R{2}}, {R{3}, -static_cast<R>(i)});
      ASSERT_TRUE(f.Run(op, type, true).ok());
      for (std::size_t i = 0; i < kCount; ++i) {
        const R n = static_cast<R>(i);
        Number<R> want{n, 2};
        if (op == AtomicOp::kReplace) want = {3, -n};
        if (op == AtomicOp::kSum) want = {n + 3, 2 - n};
        if (op == AtomicOp::kProd) want = {n * 3 + 2 * n, 6 - n * n};
        ASSERT_EQ(f.Target(i).re, want.re) << i;
        ASSERT_EQ(f.Target(i).im, want.im) << i;
        ASSERT_EQ(f.Result(i).re, n);
        ASSERT_EQ(f.Result(i).im, R{2});
      }
    }
  }
}

TEST(Accumulate, ComplexNumbersAreAddedAndMultipliedAsSuch) {
  CheckComplex<float>(ElementType::kFloatComplex);
  CheckComplex<double>(ElementType::kDoubleComplex);
  CheckComplex<long double>(ElementType::kLongDoubleComplex);
}

template <class V>
struct Place {
  V value;
  int index;
};

template <class V>
void CheckPair(ElementType type) {
  using T = Place<V>;
  ASSERT_EQ(ElementBytes(type), sizeof(T));
  for (const AtomicOp op : {AtomicOp::kReplace, AtomicOp::kNoOp, AtomicOp::kMinLoc, AtomicOp::kMaxLoc}) {
    ASSERT_TRUE(IsValid(op, type));
    for (const Ways way : kWays) {
      Fixture<T> f(way);
      for (std::size_t i = 0; i < kCount; ++i)
        f.Set(i, {static_cast<V>(i % 3), 10}, {V{1}, static_cast<int>(i)});
      ASSERT_TRUE(f.Run(op, type, true).ok());
      for (std::size_t i = 0; i < kCount; ++i) {
        const int index = static_cast<int>(i);
        const V value = static_cast<V>(i % 3);
        Place<V> want{value, 10};
        const bool mine = op == AtomicOp::kReplace || (op == AtomicOp::kMinLoc && 1 < value) ||
                          (op == AtomicOp::kMaxLoc && 1 > value);
        if (mine) want = {1, index};
        if ((op == AtomicOp::kMinLoc || op == AtomicOp::kMaxLoc) && value == 1)
          want.index = std::min(10, index);
        ASSERT_EQ(f.Target(i).value, want.value) << i;
        ASSERT_EQ(f.Target(i).index, want.index) << i;
        ASSERT_EQ(f.Result(i).value, value);
        ASSERT_EQ(f.Result(i).index, 10);
      }
    }
  }
}

TEST(Accumulate, PairsKeepTheLowerIndexOfEqualValues) {
  CheckPair<float>(ElementType::kFloatInt);
  CheckPair<double>(ElementType::kDoubleInt);
  CheckPair<long>(ElementType::kLongInt);
  CheckPair<int>(ElementType::kTwoInt);
  CheckPair<short>(ElementType::kShortInt);
  CheckPair<long double>(ElementType::kLongDoubleInt);
}

TEST(Accumulate, RefusesWhatMpiDoesNotKnow) {
  const std::pair<AtomicOp, ElementType> wrong[] = {
      {AtomicOp::kMin, ElementType::kFloatComplex},  {AtomicOp::kLogicalAnd, ElementType::kDouble},
      {AtomicOp::kBitOr, ElementType::kFloat},       {AtomicOp::kSum, ElementType::kByte},
      {AtomicOp::kMinLoc, ElementType::kInt32},      {AtomicOp::kSum, ElementType::kTwoInt},
      {AtomicOp::kCompareSwap, ElementType::kInt32}, {static_cast<AtomicOp>(99), ElementType::kInt32},
      {AtomicOp::kSum, static_cast<ElementType>(21)}};
  for (const auto& [op, type] : wrong) {
    SegmentLock lock{};
    std::uint64_t target[4] = {1, 2, 3, 4}, operand[4] = {};
    const Status refused = Accumulate({op, type, Access::kConcurrent, 1, &lock}, target, operand, nullptr, 1);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << static_cast<int>(op);
    EXPECT_EQ(target[0], 1u);
  }
  EXPECT_EQ(ElementBytes(static_cast<ElementType>(21)), 0u);
  EXPECT_FALSE(IsValid(AtomicOp::kSum, static_cast<ElementType>(255)));
}

TEST(Accumulate, NoElementsAreNoWork) {
  SegmentLock lock{};
  EXPECT_TRUE(Accumulate({AtomicOp::kSum, ElementType::kDouble, Access::kConcurrent, 1, &lock}, &lock, &lock,
                         nullptr, 0)
                  .ok());
}

TEST(Accumulate, GivesUpAtTheDeadlineAndLeavesTheElementsAlone) {
  SegmentLock lock{};
  lock.elements.store(2);
  long double target = 1, operand = 2;
  AtomicCall call{AtomicOp::kSum, ElementType::kLongDouble, Access::kConcurrent, 1, &lock};
  call.deadline = SteadyNow() + Millis(5);
  const Status status = Accumulate(call, &target, &operand, nullptr, 1);
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_NE(status.message().find("owner 2"), std::string::npos) << status.message();
  EXPECT_EQ(target, 1);
  EXPECT_EQ(lock.elements.load(), 2u);
}

template <class T>
void CheckSwap(ElementType type) {
  for (const Ways way : kWays) {
    alignas(8) std::byte memory[16] = {};
    SegmentLock lock{};
    const AtomicCall call{AtomicOp::kCompareSwap, type, way.access, 1, &lock};
    std::byte* target = memory + way.misalign;
    const T first = 7, second = 9;
    T result = 1;
    const T zero = 0;
    ASSERT_TRUE(CompareAndSwap(call, target, &zero, &first, &result).ok());
    EXPECT_EQ(result, 0);
    EXPECT_EQ(std::memcmp(target, &first, sizeof first), 0);
    ASSERT_TRUE(CompareAndSwap(call, target, &second, &second, &result).ok());
    EXPECT_EQ(result, first) << "no match, no swap";
    EXPECT_EQ(std::memcmp(target, &first, sizeof first), 0);
  }
}

TEST(CompareAndSwap, SwapsWhatIsEqualAndTellsWhatWasThere) {
  CheckSwap<std::int8_t>(ElementType::kInt8);
  CheckSwap<std::uint16_t>(ElementType::kUint16);
  CheckSwap<std::int32_t>(ElementType::kInt32);
  CheckSwap<std::uint64_t>(ElementType::kUint64);
  CheckSwap<std::uint8_t>(ElementType::kByte);
  double numbers[4] = {};
  SegmentLock lock{};
  EXPECT_EQ(CompareAndSwap({AtomicOp::kCompareSwap, ElementType::kDouble, Access::kConcurrent, 1, &lock},
                           numbers, numbers + 1, numbers + 2, numbers + 3)
                .code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa::nam
