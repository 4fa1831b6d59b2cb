#include <algorithm>

#include "msa/adapters/process/files.h"
#include "msa/topology/suggest.h"

#include "commands/cluster_directory.h"
#include "commands/follow.h"
#include "commands/invocation.h"
#include "local/local_paths.h"
#include "options/values.h"

namespace msa::cli {
namespace {

// Names of daemons with a log: "controller", "noded-cn0", "namd-nam0", ...
Result<std::vector<std::string>> LoggedDaemons(const LocalPaths& paths, const ClusterDirectory& directory) {
  constexpr std::string_view kSuffix = ".log";
  const Result<std::vector<std::string>> files = ListDirectory(paths.log_directory());
  if (!files.ok())
    return Error(Code::kNotFound,
                 "there are no logs in '{}'; no local system was started there, 'msactl cluster up{}' does",
                 directory.path, directory.flag);
  std::vector<std::string> out;
  for (const std::string& file : *files)
    if (file.ends_with(kSuffix)) out.push_back(file.substr(0, file.size() - kSuffix.size()));
  return out;
}

}  // namespace

Result<int> ClusterLogs(const Args& args) {
  Invocation call({"msactl cluster logs", "[OPTIONS] [DAEMON]",
                   "Print the end of the logs of a local system: of all daemons, or of supervisor, "
                   "controller, noded-NODE, namd-NODE or jobd-NODE."});
  bool follow = false;
  std::uint64_t lines = 20;
  call.options()
      .Flag('F', "follow", "go on with what is logged from now on", &follow)
      .Add({.letter = 'n',
            .name = "lines",
            .takes = Takes::kValue,
            .value_name = "N",
            .help = "lines of each log (default: 20)",
            .set = [&lines](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(lines, ParseNumber(value, {0, 1'000'000}));
              return Status::Ok();
            }});
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 1}));
  if (!go) return 0;
  const ClusterDirectory directory = WhichDirectory(call.dir());
  const LocalPaths paths(directory.path);
  MSA_ASSIGN_OR_RETURN(std::vector<std::string> daemons, LoggedDaemons(paths, directory));
  if (!call.operands().empty()) {
    const std::string& wanted = call.operands()[0];
    if (std::find(daemons.begin(), daemons.end(), wanted) == daemons.end())
      return Error(Code::kNotFound, "no log of '{}'; {}there are {}", wanted, DidYouMean(wanted, daemons),
                   ListNames(daemons));
    daemons = {wanted};
  }
  std::vector<std::string> files;
  for (const std::string& daemon : daemons) files.push_back(paths.log(daemon));
  FileFollower follower(files);
  follower.SkipToLast(lines);
  MSA_RETURN_IF_ERROR(follower.PrintNew());
  while (follow) {
    PauseToFollow();
    MSA_RETURN_IF_ERROR(follower.PrintNew());
  }
  return 0;
}

}  // namespace msa::cli
