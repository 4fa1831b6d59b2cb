#include "output/listing.h"

#include <algorithm>
#include <array>

#include "msa/topology/suggest.h"

#include "output/text.h"

namespace msa::cli {
namespace {

struct FormatName {
  std::string_view name;
  Format format;
};
constexpr std::array<FormatName, 6> kFormats = {{{"table", Format::kTable},
                                                 {"wide", Format::kWide},
                                                 {"json", Format::kJson},
                                                 {"yaml", Format::kYaml},
                                                 {"csv", Format::kCsv},
                                                 {"name", Format::kName}}};

std::string CsvKey(std::string_view header) {
  std::string out;
  for (const char c : header)
    out += c == ' ' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

// RFC 4180: quoted where needed, quotes doubled.
std::string CsvCell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string RenderCsv(const Listing& listing, bool header) {
  std::string out;
  if (header) {
    for (std::size_t i = 0; i < listing.columns.size(); ++i)
      out += (i > 0 ? "," : "") + CsvKey(listing.columns[i].header);
    out += "\n";
  }
  for (const auto& row : listing.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      out += (i > 0 ? "," : "") + CsvCell(row.cells[i].raw.value_or(row.cells[i].text));
    out += "\n";
  }
  return out;
}

void PutCell(std::string& line, const std::string& text, std::size_t width, bool right) {
  const std::size_t have = DisplayWidth(text);
  const std::string pad(width > have ? width - have : 0, ' ');
  line += right ? pad + text : text + pad;
}

std::string RenderTable(const Listing& listing, const FormatOptions& options) {
  if (listing.rows.empty() && !listing.empty_text.empty()) return listing.empty_text + "\n";
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < listing.columns.size(); ++i)
    if (!listing.columns[i].wide_only || options.format == Format::kWide) shown.push_back(i);
  std::vector<std::vector<std::string>> lines;
  if (!options.no_header) {
    std::vector<std::string>& header = lines.emplace_back();
    for (const std::size_t i : shown) header.push_back(listing.columns[i].header);
  }
  for (const auto& row : listing.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const std::size_t i : shown)
      line.push_back(row.cells[i].text.empty() ? "-" : Printable(row.cells[i].text));
  }
  std::vector<std::size_t> widths(shown.size(), 0);
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(line[i]));
  std::string out;
  for (const auto& cells : lines) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      PutCell(line, cells[i], widths[i], listing.columns[shown[i]].right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

Result<Format> ParseFormat(std::string_view text) {
  std::vector<std::string> names;
  for (const FormatName& known : kFormats) {
    if (known.name == text) return known.format;
    names.emplace_back(known.name);
  }
  return Error(Code::kInvalidArgument, "'{}' is no format; {}expected {}", text, DidYouMean(text, names),
               ListNames(names));
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const FormatName& known : kFormats) names.emplace_back(known.name);
  return names;
}

std::vector<std::string> FormatNames(Shows shows) {
  switch (shows) {
    case Shows::kOne:
      return {"table", "wide", "json", "yaml", "name"};
    case Shows::kPicture:
      return {"table", "json", "yaml"};
    case Shows::kList:
      break;
  }
  return FormatNames();
}

void AddFormatOptions(OptionParser& parser, Shows shows, FormatOptions* options) {
  const std::vector<std::string> names = FormatNames(shows);
  const std::string list = fmt::format("{}", fmt::join(names.begin(), names.end() - 1, ", "));
  parser.Add({.letter = 'f',
              .name = "format",
              .takes = Takes::kValue,
              .value_name = shows == Shows::kList ? "FORMAT" : fmt::format("{}", fmt::join(names, "|")),
              .help = fmt::format("{} or {} (default: table)", list, names.back()),
              .set = [options, names](std::string_view value) -> Status {
                MSA_ASSIGN_OR_RETURN(options->format, ParseFormat(value));
                if (std::find(names.begin(), names.end(), value) != names.end()) return Status::Ok();
                return Error(Code::kInvalidArgument, "'{}' is no format of this command; expected {}", value,
                             ListNames(names));
              }});
  if (shows == Shows::kList)
    parser.Flag(0, "no-header", "no line of column names in table, wide and csv", &options->no_header);
}

std::string Render(const Listing& listing, const FormatOptions& options) {
  if (options.format == Format::kCsv) return RenderCsv(listing, !options.no_header);
  if (options.format == Format::kTable || options.format == Format::kWide)
    return RenderTable(listing, options);
  if (options.format == Format::kName) {
    std::string out;
    for (const auto& row : listing.rows)
      if (!row.name.empty()) out += Printable(row.name) + "\n";
    return out;
  }
  Document::Array items;
  for (const auto& row : listing.rows) items.push_back(row.item);
  const Document whole = Envelope(listing.kind, {{"items", Document(std::move(items))}});
  return options.format == Format::kJson ? whole.ToJson() : whole.ToYaml();
}

Result<std::string> Render(const Details& details, const FormatOptions& options) {
  switch (options.format) {
    case Format::kCsv:
      return Error(Code::kInvalidArgument,
                   "--format: csv cannot show one {}; expected table, wide, json, yaml or name",
                   details.kind);
    case Format::kName:
      return Printable(details.name) + "\n";
    case Format::kJson:
      return Envelope(details.kind, details.fields).ToJson();
    case Format::kYaml:
      return Envelope(details.kind, details.fields).ToYaml();
    default:
      break;
  }
  std::size_t width = 0;
  for (const auto& [label, text] : details.lines) width = std::max(width, label.size());
  std::string out;
  for (const auto& [label, text] : details.lines) {
    std::string line;
    PutCell(line, label.empty() ? "" : label + ":", width + 1, false);
    line += " " + Printable(text);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace msa::cli
