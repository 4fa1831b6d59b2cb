#pragma once
// How records lie in the store: the scalars, strings and lists of msa/base/wire.h, but every struct, the
// record itself included, stands behind its length in bytes (u32). So fields may be appended to any struct: a
// record of an older build ends early and leaves the new fields at their defaults, one of a newer build has
// bytes behind the known fields that are passed over.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/wire.h"

namespace msa::sqlite {

class RecordEncoder {
 public:
  using Encodes = void;  // it only reads
  explicit RecordEncoder(std::string& out) : out_(out) {}
  template <class... Ts>
  void operator()(Ts&... fields) {
    (Put(fields), ...);
  }
  template <class T>
  void Put(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      PutInt<std::uint8_t>(v ? 1 : 0);
    } else if constexpr (std::is_enum_v<T>) {
      PutInt(static_cast<std::underlying_type_t<T>>(v));
    } else if constexpr (std::is_integral_v<T>) {
      PutInt(v);
    } else if constexpr (wire::IsStrong<T>::value) {
      PutInt(v.value);
    } else if constexpr (std::is_same_v<T, Instant>) {
      PutInt<std::int64_t>(v.time_since_epoch().count());
    } else if constexpr (std::is_same_v<T, std::string>) {
      PutInt(static_cast<std::uint32_t>(v.size()));
      out_.append(v);
    } else if constexpr (wire::IsVector<T>::value) {
      PutInt(static_cast<std::uint32_t>(v.size()));
      for (auto& e : v) Put(e);
    } else if constexpr (wire::IsOptional<T>::value) {
      PutInt<std::uint8_t>(v ? 1 : 0);
      if (v) Put(*v);
    } else {
      const std::size_t begin = out_.size();
      PutInt<std::uint32_t>(0);
      v.Fields(*this);
      const std::size_t length = out_.size() - begin - sizeof(std::uint32_t);
      for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i)
        out_[begin + i] = static_cast<char>(length >> (8 * i) & 0xff);
    }
  }

 private:
  template <class I>
  void PutInt(I v) {
    const auto u = static_cast<std::make_unsigned_t<I>>(v);
    char b[sizeof(I)];
    for (std::size_t i = 0; i < sizeof(I); ++i) b[i] = static_cast<char>(u >> (8 * i) & 0xff);
    out_.append(b, sizeof(I));
  }
  std::string& out_;
};

// Never reads past its input, never allocates more than a small multiple of it; ok() turns false at the first
// fault and stays so.
class RecordDecoder {
 public:
  explicit RecordDecoder(std::string_view in) : in_(in) {}
  // A field that the struct being read ends before keeps its value.
  template <class... Ts>
  void operator()(Ts&... fields) {
    ((in_.empty() ? void() : Get(fields)), ...);
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
    } else if constexpr (wire::IsStrong<T>::value) {
      GetInt(v.value);
    } else if constexpr (std::is_same_v<T, Instant>) {
      std::int64_t ms = 0;
      GetInt(ms);
      if (ok_) v = Instant(Millis(ms));
    } else if constexpr (std::is_same_v<T, std::string>) {
      v = Take();
    } else if constexpr (wire::IsVector<T>::value) {
      std::uint32_t n = 0;
      GetInt(n);
      // Every element takes at least a byte: a count beyond the rest is a lie told before memory is spent on
      // it.
      if (!ok_ || n > in_.size() || n > wire::kMaxListItems) {
        ok_ = false;
        return;
      }
      v.clear();
      for (std::uint32_t i = 0; i < n && ok_; ++i) Get(v.emplace_back());
    } else if constexpr (wire::IsOptional<T>::value) {
      bool has = false;
      Get(has);
      v.reset();
      if (ok_ && has) Get(v.emplace());
    } else {
      const std::string_view whole = Take();
      const std::string_view rest = std::exchange(in_, whole);
      if (ok_) v.Fields(*this);
      in_ = rest;
    }
  }
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return in_.empty(); }

 private:
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
  std::string_view in_;
  bool ok_ = true;
};

template <class Record>
std::string EncodeRecord(const Record& record) {
  std::string out;
  RecordEncoder encoder(out);
  encoder.Put(const_cast<Record&>(record));  // the encoder only reads
  return out;
}

// False: truncated, over-long or inconsistent.
template <class Record>
bool DecodeRecord(std::string_view blob, Record& out) {
  RecordDecoder decoder(blob);
  decoder.Get(out);
  return decoder.ok() && decoder.at_end();
}

}  // namespace msa::sqlite
