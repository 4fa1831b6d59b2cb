#pragma once
// How the fields of a struct become bytes and back: a part of the local wire format, see msa/base/wire.h.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "msa/base/ids.h"

namespace msa::wire {

// Elements of one list: a job of 2^20 tasks.
inline constexpr std::size_t kMaxListItems = std::size_t{1} << 20;

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsStrong : std::false_type {};
template <class G, class R>
struct IsStrong<Strong<G, R>> : std::true_type {};

// How a struct inside another lies: as its fields (messages), or behind its length in bytes as u32 (records
// that outlive a build: fields may be appended to any struct, and a reader passes over those it does not
// know).
enum class Nesting { kFields, kLength };

template <Nesting kNesting>
class BasicEncoder {
 public:
  using Encodes = void;  // it only reads
  explicit BasicEncoder(std::string& out) : out_(out) {}
  template <class... Ts>
  void operator()(Ts&... fields) {
    (Put(fields), ...);
  }

 private:
  template <class I>
  void PutInt(I v) {
    static_assert(std::is_integral_v<I>);
    auto u = static_cast<std::make_unsigned_t<I>>(v);
    char b[sizeof(I)];
    for (std::size_t i = 0; i < sizeof(I); ++i) b[i] = static_cast<char>(u >> (8 * i) & 0xff);
    out_.append(b, sizeof(I));
  }
  template <class T>
  void Put(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      PutInt<std::uint8_t>(v ? 1 : 0);
    } else if constexpr (std::is_enum_v<T>) {
      PutInt(static_cast<std::underlying_type_t<T>>(v));
    } else if constexpr (std::is_integral_v<T>) {
      PutInt(v);
    } else if constexpr (IsStrong<T>::value) {
      PutInt(v.value);
    } else if constexpr (std::is_same_v<T, Instant>) {
      PutInt<std::int64_t>(v.time_since_epoch().count());
    } else if constexpr (std::is_same_v<T, std::string>) {
      PutInt(static_cast<std::uint32_t>(v.size()));
      out_.append(v);
    } else if constexpr (IsVector<T>::value) {
      PutInt(static_cast<std::uint32_t>(v.size()));
      for (auto& e : v) Put(e);
    } else if constexpr (IsOptional<T>::value) {
      PutInt<std::uint8_t>(v ? 1 : 0);
      if (v) Put(*v);
    } else if constexpr (kNesting == Nesting::kFields) {
      v.Fields(*this);
    } else {
      const std::size_t begin = out_.size();
      PutInt<std::uint32_t>(0);
      v.Fields(*this);
      const std::size_t length = out_.size() - begin - sizeof(std::uint32_t);
      for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i)
        out_[begin + i] = static_cast<char>(length >> (8 * i) & 0xff);
    }
  }
  std::string& out_;
};
using Encoder = BasicEncoder<Nesting::kFields>;

// Never reads past its input, never allocates more than a small multiple of it; ok() turns false at the first
// fault and stays so.
template <Nesting kNesting>
class BasicDecoder {
 public:
  explicit BasicDecoder(std::string_view in) : in_(in) {}
  template <class... Ts>
  void operator()(Ts&... fields) {
    (GetField(fields), ...);
  }
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return in_.empty(); }

 private:
  template <class T>
  void GetField(T& v) {
    // Appended by a newer sender: an older one simply ends here.
    if ((depth_ == 0 || kNesting == Nesting::kLength) && ok_ && in_.empty()) return;
    Get(v);
  }
  template <class I>
  void GetInt(I& v) {
    if (!ok_ || in_.size() < sizeof(I)) {
      ok_ = false;
      return;
    }
    std::make_unsigned_t<I> u = 0;
    for (std::size_t i = 0; i < sizeof(I); ++i)
      u = static_cast<std::make_unsigned_t<I>>(
          u | static_cast<std::make_unsigned_t<I>>(static_cast<unsigned char>(in_[i])) << (8 * i));
    v = static_cast<I>(u);
    in_.remove_prefix(sizeof(I));
  }
  template <class T>
  void Get(T& v) {
    if (!ok_) return;
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t b = 0;
      GetInt(b);
      if (b > 1) ok_ = false;
      v = b == 1;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> i{};
      GetInt(i);
      v = static_cast<T>(i);
    } else if constexpr (std::is_integral_v<T>) {
      GetInt(v);
    } else if constexpr (IsStrong<T>::value) {
      GetInt(v.value);
    } else if constexpr (std::is_same_v<T, Instant>) {
      std::int64_t ms = 0;
      GetInt(ms);
      if (ok_) v = Instant(Millis(ms));
    } else if constexpr (std::is_same_v<T, std::string>) {
      v = Take();
    } else if constexpr (IsVector<T>::value) {
      std::uint32_t n = 0;
      GetInt(n);
      // Every element takes at least a byte: a count beyond the rest is a lie told before memory is spent on
      // it.
      if (!ok_ || n > in_.size() || n > kMaxListItems) {
        ok_ = false;
        return;
      }
      v.clear();
      for (std::uint32_t i = 0; i < n && ok_; ++i) Get(v.emplace_back());
    } else if constexpr (IsOptional<T>::value) {
      bool has = false;
      Get(has);
      if (!ok_) return;
      if (has)
        Get(v.emplace());
      else
        v.reset();
    } else if constexpr (kNesting == Nesting::kFields) {
      ++depth_;
      v.Fields(*this);
      --depth_;
    } else {
      const std::string_view whole = Take();
      const std::string_view rest = std::exchange(in_, whole);
      if (ok_) v.Fields(*this);
      in_ = rest;
    }
  }
  // As many bytes as a length in front of them says.
  std::string_view Take() {
    std::uint32_t n = 0;
    GetInt(n);
    if (!ok_ || n > in_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = in_.substr(0, n);
    in_.remove_prefix(n);
    return bytes;
  }
  std::string_view in_;
  int depth_ = 0;
  bool ok_ = true;
};
using Decoder = BasicDecoder<Nesting::kFields>;

}  // namespace msa::wire
