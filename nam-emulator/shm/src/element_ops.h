#pragma once
// MPI's predefined operations as functions of two elements. Integers wrap.

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace msa::nam {

enum class ElementClass : std::uint8_t { kInteger, kReal, kComplex, kPair, kByte };

template <class T>
struct Complex {
  T re;
  T im;
};

// MPI's pair types: a value and where it stands.
template <class T>
struct Pair {
  T value;
  int index;
};

struct Updates {
  static constexpr bool kReads = true;
  static constexpr bool kWrites = true;
};

struct Replace : Updates {};
struct NoOp : Updates {
  static constexpr bool kWrites = false;
};

struct Sum : Updates {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return {a.re + b.re, a.im + b.im};
  }
};

struct Prod : Updates {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

struct Min : Updates {
  template <class T>
  static T Of(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max : Updates {
  template <class T>
  static T Of(T a, T b) {
    return a < b ? b : a;
  }
};

struct LogicalAnd : Updates {
  template <class T>
  static T Of(T a, T b) {
    return static_cast<T>(a != 0 && b != 0);
  }
};
struct LogicalOr : Updates {
  template <class T>
  static T Of(T a, T b) {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct LogicalXor : Updates {
  template <class T>
  static T Of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

struct BitAnd : Updates {
  template <class T>
  static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr : Updates {
  template <class T>
  static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor : Updates {
  template <class T>
  static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Of equal values the lower index.
struct MinLoc : Updates {
  template <class T>
  static T Of(T a, T b) {
    if (a.value == b.value) a.index = std::min(a.index, b.index);
    return b.value < a.value ? b : a;
  }
};
struct MaxLoc : Updates {
  template <class T>
  static T Of(T a, T b) {
    if (a.value == b.value) a.index = std::min(a.index, b.index);
    return a.value < b.value ? b : a;
  }
};

}  // namespace msa::nam
