#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/choice.h"
#include "client/system_client.h"
#include "commands/command.h"
#include "options/parser.h"
#include "output/listing.h"

namespace msa::cli {

// What most commands share: --dir, --backend, -f/--format, operands, a connection.
class Invocation {
 public:
  struct Text {
    std::string command;  // "msactl job list"
    std::string usage;    // "[OPTIONS] [JOB...]"
    std::string summary;
  };
  explicit Invocation(Text text);
  // Adds -f/--format, and --no-header of a list.
  Invocation& WithFormat(Shows shows = Shows::kList);

  OptionParser& options() { return parser_; }
  const std::string& dir() const { return dir_; }
  // Who schedules the jobs that the command speaks of. kInvalidArgument: --backend, MSA_BACKEND, or the
  // client file's word.
  Result<BackendChoice> Choice() const;

  struct Expect {
    std::size_t min = 0;
    std::size_t max = 0;
    std::string what;  // "a job's id", for the message
  };
  // False: the help was asked for and printed; the command is done. kInvalidArgument: options, or the number
  // of operands.
  Result<bool> Parse(const Args& args, const Expect& expect);
  const Args& operands() const { return operands_; }

  // Errors as FindEndpoint and SystemClient::Connect.
  Result<std::unique_ptr<SystemClient>> Connect() const;
  Status Show(const Listing& listing) const;
  Status Show(const Details& details) const;
  bool people() const { return format_.format == Format::kTable || format_.format == Format::kWide; }
  const FormatOptions& format() const { return format_; }

 private:
  OptionParser parser_;
  std::string dir_;
  std::string backend_;
  FormatOptions format_;
  Args operands_;
};

inline constexpr std::size_t kAnyNumber = 100000;

}  // namespace msa::cli
