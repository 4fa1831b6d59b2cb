#include "doctor/finding.h"

#include <algorithm>

#include "output/text.h"

namespace msa::cli {
namespace {

std::size_t Number(const Findings& findings, Finding::Level level) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.level == level; }));
}

}  // namespace

std::string_view LevelWord(Finding::Level level) {
  return level == Finding::Level::kOk ? "OK" : level == Finding::Level::kWarn ? "WARN" : "FAIL";
}

std::string ShowFindings(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& f : findings) width = std::max(width, f.check.size());
  std::string out;
  for (const Finding& f : findings) {
    out += fmt::format("{:<4}  {:<{}}  {}\n", LevelWord(f.level), f.check, width, Printable(f.found));
    if (!f.remedy.empty()) out += fmt::format("{:>{}}  -> {}\n", "", width + 6, Printable(f.remedy));
  }
  const std::size_t warnings = Number(findings, Finding::Level::kWarn);
  const std::size_t failures = Number(findings, Finding::Level::kFail);
  return out + fmt::format("\n{}: {} ok, {}, {}\n", Count(findings.size(), "check"),
                           findings.size() - warnings - failures, Count(warnings, "warning"),
                           Count(failures, "failure"));
}

Listing FindingListing(const Findings& findings) {
  Listing out;
  out.kind = "FindingList";
  out.columns = {{"LEVEL"}, {"CHECK"}, {"FOUND"}, {"REMEDY"}};
  for (const Finding& f : findings) {
    const std::string level(LevelWord(f.level));
    out.rows.push_back({f.check,
                        {level, f.check, f.found, f.remedy},
                        Document::Object{{"level", level},
                                         {"check", f.check},
                                         {"found", f.found},
                                         {"remedy", f.remedy.empty() ? Document() : Document(f.remedy)}}});
  }
  return out;
}

bool AnyFailed(const Findings& findings) { return Number(findings, Finding::Level::kFail) > 0; }

}  // namespace msa::cli
