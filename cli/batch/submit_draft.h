#pragma once
// What the options of a submission are written to, in the order in which they count.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batch/directives.h"
#include "batch/submit_options.h"
#include "options/parser.h"

namespace msa::cli {

struct SubmitDraft {
  enum class From { kScript, kCommandLine };

  // Of one component, with who filled its lists: the command line replaces what the script says.
  struct Part {
    Component component;
    From nodelist_from = From::kScript;
    From exclude_from = From::kScript;
  };
  // A job-wide option that was given.
  struct Given {
    From from = From::kScript;
    std::string value;
    std::string where;
  };

  std::vector<Part> parts{1};
  std::size_t at = 0;  // the component whose options are being read
  From from = From::kCommandLine;
  Dialect dialect = Dialect::kMsa;
  std::string where;  // "job.sh:3", empty for the command line
  std::map<std::string, Given> given;

  JobSpec spec;
  From nam_regions_from = From::kScript;  // who filled the list
  std::string chdir;
  std::string export_expression = "ALL";
  std::string propagate = "ALL";
  std::string wrap;
  std::string from_file;
  bool verbose = false;
  SubmitRequest request;
  Instant now;

  Part& part() { return parts[at]; }
  void NextComponent() {
    ++at;
    if (at >= parts.size()) parts.emplace_back();
  }
  void Warn(const std::string& text) {
    request.warnings.push_back(where.empty() ? text : where + ": " + text);
  }
};

// For lines of `dialect`, or the command line (kMsa); `draft` outlives it.
OptionParser MakeSubmitParser(SubmitDraft& draft, Dialect dialect);

}  // namespace msa::cli
