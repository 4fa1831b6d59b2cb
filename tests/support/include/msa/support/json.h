#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msa::support {

// A JSON value as tests read it: missing members are null, numbers keep their text.
class Json {
 public:
  // nullopt unless `text` is one JSON value and nothing else.
  static std::optional<Json> Parse(std::string_view text);

  enum class Kind { kNull, kBool, kNumber, kString, kList, kObject };
  Kind kind() const noexcept { return kind_; }
  bool is_null() const noexcept { return kind_ == Kind::kNull; }
  // Text of a string, number or boolean; empty for the others.
  const std::string& text() const noexcept { return text_; }
  // 0 if it is no number.
  double number() const;
  const std::vector<Json>& list() const noexcept { return list_; }
  // The member, or null.
  const Json& operator[](std::string_view key) const;

 private:
  friend class JsonReader;
  Kind kind_ = Kind::kNull;
  std::string text_;
  std::vector<Json> list_;
  std::map<std::string, Json, std::less<>> members_;
};

}  // namespace msa::support
