#include "client/endpoint.h"
#include "commands/command.h"
#include "local/bring_up.h"
#include "options/parser.h"

namespace msa::cli {

// The process behind `cluster up`: hidden from the help.
Result<int> ClusterSupervise(const Args& args) {
  OptionParser parser("msactl cluster supervise", "--dir DIR", "Started by 'msactl cluster up'.");
  std::string dir;
  parser.Text(0, "dir", "DIR", "directory of the local system", &dir);
  MSA_RETURN_IF_ERROR(parser.Parse(args).status());
  if (dir.empty()) return Status(Code::kInvalidArgument, "--dir is missing; use 'msactl cluster up'");
  MSA_RETURN_IF_ERROR(Supervise(LocalPaths(CanonicalDirectory(dir))));
  return 0;
}

}  // namespace msa::cli
