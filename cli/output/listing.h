#pragma once
// What `-f table|wide|json|yaml|csv|name` makes of a list of things, and of one thing.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msa/base/status.h"

#include "options/parser.h"
#include "output/document.h"

namespace msa::cli {

enum class Format { kTable, kWide, kJson, kYaml, kCsv, kName };

// kInvalidArgument names the nearest format and those that exist.
Result<Format> ParseFormat(std::string_view text);

std::vector<std::string> FormatNames();

struct FormatOptions {
  Format format = Format::kTable;
  bool no_header = false;
};
// What a command shows decides about its formats.
enum class Shows {
  kList,     // all of them
  kOne,      // no csv: a thing with nested parts is no row
  kPicture,  // table (the picture itself), json and yaml
};
std::vector<std::string> FormatNames(Shows shows);
// Adds -f/--format, which refuses what `shows` has not, and --no-header where there is a header.
void AddFormatOptions(OptionParser& parser, Shows shows, FormatOptions* options);

struct Column {
  std::string header;      // "CPUS USED"; in csv lower-case with '_'
  bool wide_only = false;  // in wide and csv only
  bool right = false;      // numbers
};

// What people read, and what csv gives to machines where that differs.
struct Cell {
  Cell(const char* shown) : text(shown) {}             // NOLINT(google-explicit-constructor)
  Cell(std::string shown) : text(std::move(shown)) {}  // NOLINT(google-explicit-constructor)
  Cell(std::string shown, std::string for_csv) : text(std::move(shown)), raw(std::move(for_csv)) {}
  std::string text;
  std::optional<std::string> raw;
};

// A list: cells for people, and the whole of each item as a document.
struct Listing {
  std::string kind;  // "NodeList"
  std::vector<Column> columns;
  struct Row {
    std::string name;  // for -f name: what other commands take; empty: it has none
    std::vector<Cell> cells;
    Document item;
  };
  std::vector<Row> rows;
  std::string empty_text;  // instead of an empty table: "no jobs"
};
std::string Render(const Listing& listing, const FormatOptions& options);

// One thing: pairs of a label and a text, and its document. Labels of "" continue the one above.
struct Details {
  std::string kind;
  std::string name;
  std::vector<std::pair<std::string, std::string>> lines;
  Document::Object fields;
};
// csv is refused (kInvalidArgument): a thing with nested parts is no row.
Result<std::string> Render(const Details& details, const FormatOptions& options);

}  // namespace msa::cli
