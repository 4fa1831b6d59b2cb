#pragma once
// A value as JSON and YAML know it, with object keys in the order in which they were added.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace msa::cli {

class Document {
 public:
  using Object = std::vector<std::pair<std::string, Document>>;
  using Array = std::vector<Document>;

  Document() = default;                                             // null
  Document(bool value) : value_(value) {}                           // NOLINT(google-explicit-constructor)
  Document(std::int64_t value) : value_(value) {}                   // NOLINT(google-explicit-constructor)
  Document(std::uint64_t value) : value_(value) {}                  // NOLINT(google-explicit-constructor)
  Document(std::int32_t value) : value_(std::int64_t{value}) {}     // NOLINT(google-explicit-constructor)
  Document(std::uint32_t value) : value_(std::uint64_t{value}) {}   // NOLINT(google-explicit-constructor)
  Document(double value) : value_(value) {}                         // NOLINT(google-explicit-constructor)
  Document(std::string value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Document(std::string_view value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Document(const char* value) : value_(std::string(value)) {}       // NOLINT(google-explicit-constructor)
  Document(Array value) : value_(std::move(value)) {}               // NOLINT(google-explicit-constructor)
  Document(Object value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor)

  // Strings, integers or documents of a list.
  template <class List>
  static Document ListOf(const List& list) {
    Array out;
    for (const auto& item : list) out.emplace_back(item);
    return Document(std::move(out));
  }

  // Indented by two, ends with a newline. Bytes that are not UTF-8 become U+FFFD; infinities become null.
  std::string ToJson() const;
  // One YAML document without the leading "---"; all strings are quoted, so that none turns into a date or a
  // boolean.
  std::string ToYaml() const;

 private:
  void Json(std::string& out, int indent) const;
  void Yaml(std::string& out, int indent) const;
  // Of everything but non-empty objects and arrays: the same in both.
  void Scalar(std::string& out) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

// {"apiVersion": "msa/v1", "kind": kind, ...fields}
Document Envelope(std::string_view kind, Document::Object fields);

}  // namespace msa::cli
