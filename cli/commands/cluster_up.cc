#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>

#include "msa/adapters/process/child_process.h"

#include "commands/cluster_directory.h"
#include "commands/invocation.h"
#include "commands/print.h"
#include "local/bring_up.h"
#include "local/take_down.h"
#include "options/values.h"
#include "output/job_texts.h"
#include "output/text.h"

namespace msa::cli {
namespace {

std::string Summary(const RunningSystem& system, const ClusterDirectory& directory) {
  return fmt::format(
      "system '{}' runs in {} (supervisor pid {})\n\n{}\ntry: msactl run{} -n 2 hostname\nstop it: msactl "
      "cluster down{}\n",
      system.topology.system_name, directory.path, system.supervisor,
      Render(ModuleListing(system.modules), FormatOptions()), directory.flag, directory.flag);
}

// Until Ctrl-C or SIGTERM, or the supervisor's end; then everything is taken down.
Result<int> StayInForeground(const RunningSystem& system, const ClusterDirectory& directory,
                             const UniqueFd& signals) {
  MSA_ASSIGN_OR_RETURN(const ProcessHandle supervisor, OpenProcess(system.supervisor));
  pollfd entries[2] = {{signals.get(), POLLIN, 0}, {supervisor.pidfd.get(), POLLIN, 0}};
  while (::poll(entries, 2, -1) < 0 && errno == EINTR) {
  }
  const bool told = (entries[0].revents & POLLIN) != 0;
  MSA_ASSIGN_OR_RETURN(const DownReport report, TakeDown({.dir = directory.path}));
  if (told) return 0;
  return Error(Code::kAborted,
               "the supervisor with pid {} has ended; the system in '{}' is stopped, {} cancelled",
               system.supervisor, directory.path, Count(report.jobs_cancelled, "job"));
}

Result<UniqueFd> BlockSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return ErrnoError(errno, "block signals");
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!fd) return ErrnoError(errno, "watch signals");
  return fd;
}

}  // namespace

Result<int> ClusterUp(const Args& args) {
  Invocation call({"msactl cluster up", "[OPTIONS]",
                   "Start a whole local system as an ordinary user: a controller and a node daemon for each "
                   "node of the topology.\n"
                   "A supervisor starts again whichever of them dies. One user's jobs are not protected from "
                   "each other."});
  call.options().Epilogue(
      "The topology file is described in the manual page msa-topology(5); examples/topology.toml in msa's "
      "documentation\n(deploy/examples/topology.toml in its source) is one to begin with.");
  UpOptions options;
  bool foreground = false;
  bool quiet = false;
  call.options()
      .Text(0, "topology", "FILE",
            "modules and nodes, in TOML (default: cluster cn[0-1], booster bn[0-1], dam dn0, nam nam0)",
            &options.topology)
      .Flag(0, "foreground", "stay, and take the system down at Ctrl-C or SIGTERM", &foreground)
      .Add(
          {.name = "timeout",
           .takes = Takes::kValue,
           .value_name = "TIME",
           .help = "how long nodes may take to come up; else what was started is stopped again (default: 30)",
           .set = [&options](std::string_view value) -> Status {
             MSA_ASSIGN_OR_RETURN(options.timeout, ParseDuration(value));
             return Status::Ok();
           }})
      .Flag('q', "quiet", "print nothing", &quiet);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  const ClusterDirectory directory = WhichDirectory(call.dir());
  options.dir = directory.path;
  options.flag = directory.flag;
  UniqueFd signals;
  if (foreground) {
    MSA_ASSIGN_OR_RETURN(signals, BlockSignals());
  }
  MSA_ASSIGN_OR_RETURN(const RunningSystem system, BringUp(options));
  if (!quiet) MSA_RETURN_IF_ERROR(Print(Summary(system, directory)));
  return foreground ? StayInForeground(system, directory, signals) : Result<int>(0);
}

}  // namespace msa::cli
