#pragma once
// The environment in which Debian's Open MPI 4.1 accepts our PMIx server and logical nodes may share one
// machine. Pure but for OnlyLoopback(). See docs in the functions; each variable's reason stands in
// open_mpi_env.cc.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msa::pmix {

enum class Network : std::uint8_t { kOrdinary, kOnlyLoopback };

struct OpenMpiEnvironmentOptions {
  std::string
      shm_directory;  // existing, of this job on this logical node alone: Open MPI's shared-memory files
  std::string topology_xml;  // hwloc XML of the real machine; empty: tasks look for themselves (50 ms slower)
  std::uint32_t world_size = 1;  // ranks of the namespace
  std::uint32_t tasks_on_machine =
      1;                            // that will run on this machine, other logical nodes of the job included
  std::uint32_t machine_cores = 1;  // real ones that this daemon may use (sched_getaffinity)
  Network network = Network::kOrdinary;
};

// `environment` ("K=V") with what a task of Open MPI needs here. Variables that name this launch (server,
// shared memory, topology, size) replace what is there, an inherited value of a parent's included; variables
// that only tune (yielding, interface) are added where the user has not set them. Other lines keep value and
// order.
std::vector<std::string> OpenMpiEnvironment(std::vector<std::string> environment,
                                            const OpenMpiEnvironmentOptions& options);

// Sets `name` in `environment`, in the place of the first earlier setting; later ones go.
void SetVariable(std::vector<std::string>& environment, std::string_view name, std::string_view value);
// The value of `name`, nullopt if it is not there.
std::optional<std::string> GetVariable(const std::vector<std::string>& environment, std::string_view name);

// The port that Open MPI's spawn hands to its children in an app's environment; keys of the store begin with
// it while parent and children meet. nullopt: not a spawn of Open MPI's.
std::optional<std::string> ParentPort(const std::vector<std::string>& app_environment);

// Whether loopback interfaces are the only ones up in this network namespace. Any thread.
Network DetectNetwork();

}  // namespace msa::pmix
