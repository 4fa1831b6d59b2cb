#include <stdlib.h>

#include "commands/cluster_directory.h"
#include "commands/invocation.h"
#include "commands/print.h"
#include "doctor/checks.h"

namespace msa::cli {
namespace {

std::string Environment(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

Findings Examine(const DoctorScope& scope) {
  Findings out;
  const auto add = [&out](Findings more) { std::move(more.begin(), more.end(), std::back_inserter(out)); };
  add(CheckExecutables());
  add(CheckPrograms());
  if (!scope.machine)
    add({CheckDirectory(scope), CheckRoom("disk", scope.dir, "a full disk refuses jobs"), CheckSockets(scope),
         CheckListeners(scope)});
  add({CheckSharedMemory("/dev/shm")});
  add(CheckLimits("/sys/class/infiniband"));
  add({CheckLoopback(), CheckPorts("/proc", &Environment), CheckHostname()});
  add(CheckSystem(scope));
  add(CheckLeftovers(scope));
  return out;
}

}  // namespace

Result<int> Doctor(const Args& args) {
  Invocation call(
      {"msactl doctor", "[OPTIONS]",
       "Look for what keeps msa from working here: directories, sockets and ports, limits, libraries,\n"
       "daemons, leftovers, and say what to do. Changes nothing and needs no running system. Exit code 1 if "
       "something fails."});
  call.WithFormat();
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {}));
  if (!go) return 0;
  const ClusterDirectory directory = WhichDirectory(call.dir());
  DoctorScope scope{directory.path, directory.flag, call.dir()};
  // Without a local system msactl speaks to the machine's own, if there is one.
  const Result<Endpoint> endpoint = FindEndpoint(call.dir());
  scope.machine = endpoint.ok() && endpoint->dir.empty();
  const Findings findings = Examine(scope);
  if (call.people()) {
    MSA_RETURN_IF_ERROR(Print(ShowFindings(findings)));
  } else {
    MSA_RETURN_IF_ERROR(call.Show(FindingListing(findings)));
  }
  return AnyFailed(findings) ? 1 : 0;
}

}  // namespace msa::cli
