#include "msa/support/json.h"

#include <cctype>
#include <cstdlib>

namespace msa::support {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  std::optional<Json> Whole() {
    Json value;
    if (!Value(value)) return std::nullopt;
    Blanks();
    if (!rest_.empty()) return std::nullopt;
    return value;
  }

 private:
  void Blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }

  bool Take(std::string_view token) {
    Blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool String(std::string& out) {
    if (!Take("\"")) return false;
    while (!rest_.empty() && rest_[0] != '"') {
      char c = rest_[0];
      rest_.remove_prefix(1);
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        if (rest_.empty()) return false;
        c = rest_[0];
        rest_.remove_prefix(1);
        if (c == 'u') {
          if (rest_.size() < 4) return false;
          out += static_cast<char>(std::strtol(std::string(rest_.substr(0, 4)).c_str(), nullptr, 16) & 0x7f);
          rest_.remove_prefix(4);
          continue;
        }
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
      out += c;
    }
    return Take("\"");
  }

  bool List(Json& value) {
    value.kind_ = Json::Kind::kList;
    if (Take("]")) return true;
    do {
      if (!Value(value.list_.emplace_back())) return false;
    } while (Take(","));
    return Take("]");
  }

  bool Object(Json& value) {
    value.kind_ = Json::Kind::kObject;
    if (Take("}")) return true;
    do {
      std::string key;
      Blanks();
      if (!String(key) || !Take(":") || !Value(value.members_[key])) return false;
    } while (Take(","));
    return Take("}");
  }

  bool Value(Json& value) {
    Blanks();
    if (rest_.empty()) return false;
    if (Take("{")) return Object(value);
    if (Take("[")) return List(value);
    if (rest_[0] == '"') {
      value.kind_ = Json::Kind::kString;
      return String(value.text_);
    }
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!Take(word)) continue;
      value.kind_ = word == "null" ? Json::Kind::kNull : Json::Kind::kBool;
      if (word != "null") value.text_ = word;
      return true;
    }
    const std::size_t length = std::min(rest_.find_first_not_of("+-0123456789.eE"), rest_.size());
    value.kind_ = Json::Kind::kNumber;
    value.text_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return length > 0;
  }

  std::string_view rest_;
};

std::optional<Json> Json::Parse(std::string_view text) { return JsonReader(text).Whole(); }

double Json::number() const { return std::strtod(text_.c_str(), nullptr); }

const Json& Json::operator[](std::string_view key) const {
  static const Json none;
  const auto it = members_.find(key);
  return it == members_.end() ? none : it->second;
}

}  // namespace msa::support
