#include "commands/command.h"
#include "commands/print.h"
#include "options/parser.h"
#include "output/listing.h"

namespace msa::cli {

Result<int> Version(const Args& args) {
  OptionParser parser("msactl version", "[OPTIONS]",
                      "Print the version of msactl; 'msactl status' tells the controller's.");
  FormatOptions format;
  AddFormatOptions(parser, Shows::kOne, &format);
  // As every command takes it.
  std::string dir;
  parser.Text(0, "dir", "DIR", "not needed: the version is that of this program", &dir);
  MSA_ASSIGN_OR_RETURN(const Args operands, parser.Parse(args));
  if (parser.help_asked()) {
    MSA_RETURN_IF_ERROR(Print(parser.Help()));
    return 0;
  }
  if (!operands.empty())
    return Error(Code::kInvalidArgument, "msactl version: '{}' is too much; expected options only",
                 operands[0]);
  if (format.format == Format::kTable || format.format == Format::kWide) {
    MSA_RETURN_IF_ERROR(Print("msactl " MSA_VERSION "\n"));
    return 0;
  }
  MSA_ASSIGN_OR_RETURN(
      const std::string text,
      Render(
          Details{.kind = "Version", .name = MSA_VERSION, .lines = {}, .fields = {{"version", MSA_VERSION}}},
          format));
  MSA_RETURN_IF_ERROR(Print(text));
  return 0;
}

}  // namespace msa::cli
