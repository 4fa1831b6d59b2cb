#include "msa/pmix/open_mpi_env.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <memory>

namespace msa::pmix {
namespace {

bool Names(const std::string& line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == '=' && line.starts_with(name);
}

void SetDefault(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  if (!GetVariable(environment, name)) SetVariable(environment, name, value);
}

}  // namespace

void SetVariable(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  std::string line;
  line.reserve(name.size() + 1 + value.size());
  line.append(name).append("=").append(value);
  const auto named = [&](const std::string& other) { return Names(other, name); };
  const auto first = std::find_if(environment.begin(), environment.end(), named);
  if (first == environment.end()) {
    environment.push_back(std::move(line));
    return;
  }
  *first = std::move(line);
  environment.erase(std::remove_if(std::next(first), environment.end(), named), environment.end());
}

std::optional<std::string> GetVariable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& line : environment)
    if (Names(line, name)) return line.substr(name.size() + 1);
  return std::nullopt;
}

std::vector<std::string> OpenMpiEnvironment(std::vector<std::string> environment,
                                            const OpenMpiEnvironmentOptions& options) {
  const auto set = [&](std::string_view name, std::string_view value) {
    SetVariable(environment, name, value);
  };
  // Open MPI 4.1 looks for a manager only where it knows one; IBM's JSM is the one it takes for plain PMIx.
  // Without it every rank silently becomes a world of its own.
  set("JSM_JSRUN_PORT", "1");
  // Segment files are named by host, user and rank: two logical nodes of one machine would open each other's.
  set("OMPI_MCA_btl_vader_backing_directory", options.shm_directory);
  // A spawned child inherits its parent's number and would believe in a world of that size.
  set("OMPI_MCA_orte_ess_num_procs", std::to_string(options.world_size));
  // The hash store of libpmix needs no shared files; must be the server's.
  set("PMIX_MCA_gds", "hash");
  if (!options.topology_xml.empty()) {
    // The machine as noded saw it: spares each task its own discovery. THISSYSTEM keeps binding possible,
    // ALLOWED_RESOURCES applies the task's own cgroup, and no plugin (GPU, X11, ...) is needed to read XML.
    set("HWLOC_XMLFILE", options.topology_xml);
    set("HWLOC_THISSYSTEM", "1");
    set("HWLOC_THISSYSTEM_ALLOWED_RESOURCES", "1");
    set("HWLOC_PLUGINS_PATH", "/none");
  }
  // mpirun does the same for itself: a spinning rank would take the core of the one it waits for.
  if (options.tasks_on_machine > options.machine_cores)
    SetDefault(environment, "OMPI_MCA_mpi_yield_when_idle", "1");
  // btl/tcp leaves out lo by default; where nothing else is up it would have no interface at all.
  if (options.network == Network::kOnlyLoopback) SetDefault(environment, "OMPI_MCA_btl_tcp_if_include", "lo");
  return environment;
}

std::optional<std::string> ParentPort(const std::vector<std::string>& app_environment) {
  auto port = GetVariable(app_environment, "OMPI_PARENT_PORT");
  if (port && port->empty()) return std::nullopt;
  return port;
}

Network DetectNetwork() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return Network::kOrdinary;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> addresses(raw, &freeifaddrs);
  for (const ifaddrs* it = addresses.get(); it != nullptr; it = it->ifa_next) {
    const bool has_address = it->ifa_addr != nullptr &&
                             (it->ifa_addr->sa_family == AF_INET || it->ifa_addr->sa_family == AF_INET6);
    if (has_address && (it->ifa_flags & IFF_UP) != 0 && (it->ifa_flags & IFF_LOOPBACK) == 0)
      return Network::kOrdinary;
  }
  return Network::kOnlyLoopback;
}

}  // namespace msa::pmix
