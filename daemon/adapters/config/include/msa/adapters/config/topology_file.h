#pragma once
// The topology file: TOML that says which modules and nodes a system has.
//
//   [system]
//   name = "local"
//   [[module]]
//   name = "cluster"        # required, unique, [a-z][a-z0-9_-]{0,62}
//   id = 0                  # required, unique
//   kind = "cluster"        # default: the name
//     [[module.node]]
//     names = "cn[0-1]"     # required, unique in the system, at most 63 characters each
//     cores = 4             # 1 to 65536; required unless real = true
//     memory = "8G"         # bytes, or with K, M, G, T (powers of 1024); default: as measured
//     packages = 1          # default 1
//     numa = 1              # default 1
//     gpus = 0              # default 0
//     nam = "1G"            # capacity of network attached memory; default none
//     real = true           # the machine's own cores and memory as hwloc measures them, instead of a
//     description

#include <cstddef>
#include <string>
#include <string_view>

#include "msa/base/status.h"
#include "msa/topology/topology.h"

namespace msa {

// A description of 65,536 nodes one by one has 3 MiB.
inline constexpr std::size_t kMaxTopologyFileBytes = std::size_t{4} << 20;

// Reads and checks a topology file. kNotFound, kPermissionDenied: the file; kInvalidArgument: its text, as
// "topology file small.toml:14: key 'cores' of node 'bn0' is -4; expected 1 to 65536". Any thread.
Result<SystemTopology> LoadTopologyFile(const std::string& path);

// As LoadTopologyFile for a text that is there already; `name` stands for the path in messages.
Result<SystemTopology> ParseTopology(std::string_view text, const std::string& name);

// The topology of a local system that was given none: modules cluster, booster, dam and nam.
std::string_view DefaultTopologyText();

}  // namespace msa
