#include "output/document.h"

#include <cmath>

#include <fmt/format.h>

#include "output/text.h"

namespace msa::cli {
namespace {

void Quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char32_t c : DecodeUtf8(text)) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        // Controls of both sets and the line separators: YAML takes them escaped only.
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff) {
          out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
        } else {
          AppendUtf8(out, c);
        }
    }
  }
  out += '"';
}

void NewLine(std::string& out, int indent) {
  out += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
}

}  // namespace

void Document::Scalar(std::string& out) const {
  if (std::holds_alternative<std::monostate>(value_)) {
    out += "null";
  } else if (const bool* flag = std::get_if<bool>(&value_)) {
    out += *flag ? "true" : "false";
  } else if (const auto* whole = std::get_if<std::int64_t>(&value_)) {
    out += fmt::format("{}", *whole);
  } else if (const auto* count = std::get_if<std::uint64_t>(&value_)) {
    out += fmt::format("{}", *count);
  } else if (const double* number = std::get_if<double>(&value_)) {
    out += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    Quoted(out, *text);
  } else {
    out += std::holds_alternative<Array>(value_) ? "[]" : "{}";
  }
}

void Document::Json(std::string& out, int indent) const {
  const Array* array = std::get_if<Array>(&value_);
  const Object* object = std::get_if<Object>(&value_);
  if (array != nullptr && !array->empty()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      out += i == 0 ? "[" : ",";
      NewLine(out, indent + 2);
      (*array)[i].Json(out, indent + 2);
    }
    NewLine(out, indent);
    out += ']';
  } else if (object != nullptr && !object->empty()) {
    for (std::size_t i = 0; i < object->size(); ++i) {
      out += i == 0 ? "{" : ",";
      NewLine(out, indent + 2);
      Quoted(out, (*object)[i].first);
      out += ": ";
      (*object)[i].second.Json(out, indent + 2);
    }
    NewLine(out, indent);
    out += '}';
  } else {
    Scalar(out);
  }
}

void Document::Yaml(std::string& out, int indent) const {
  const Array* array = std::get_if<Array>(&value_);
  const Object* object = std::get_if<Object>(&value_);
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const auto nested = [](const Document& d) {
    const Array* a = std::get_if<Array>(&d.value_);
    const Object* o = std::get_if<Object>(&d.value_);
    return (a != nullptr && !a->empty()) || (o != nullptr && !o->empty());
  };
  if (array != nullptr) {
    for (const Document& item : *array) {
      out += margin + "-";
      if (nested(item)) {
        // The item's first line stands behind the dash.
        std::string text;
        item.Yaml(text, indent + 2);
        out += " " + text.substr(static_cast<std::size_t>(indent) + 2);
      } else {
        out += ' ';
        item.Scalar(out);
        out += '\n';
      }
    }
  } else if (object != nullptr) {
    for (const auto& [key, item] : *object) {
      out += margin + key + ":";
      if (nested(item)) {
        out += '\n';
        item.Yaml(out, indent + 2);
      } else {
        out += ' ';
        item.Scalar(out);
        out += '\n';
      }
    }
  }
}

std::string Document::ToJson() const {
  std::string out;
  Json(out, 0);
  return out + "\n";
}

std::string Document::ToYaml() const {
  std::string out;
  Yaml(out, 0);
  if (out.empty()) {
    Scalar(out);
    out += '\n';
  }
  return out;
}

Document Envelope(std::string_view kind, Document::Object fields) {
  Document::Object out{{"apiVersion", "msa/v1"}, {"kind", kind}};
  for (auto& field : fields) out.push_back(std::move(field));
  return Document(std::move(out));
}

}  // namespace msa::cli
