#pragma once
// The checks of 'msactl doctor'. Each looks and changes nothing, and needs no running system. Blocking; a
// program that is asked for its version gets 5 s, a name that is looked up 2 s, a controller 2 s.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/types.h"
#include "doctor/finding.h"

namespace msa::cli {

// The local system that is meant; the machine's own if `machine`.
struct DoctorScope {
  std::string dir;        // canonical
  std::string flag;       // " --dir DIR" as the user gave it
  std::string asked_dir;  // --dir, else ""
  bool machine = false;
};

// Existence, mode, owner and room of the system's directory.
Finding CheckDirectory(const DoctorScope& scope);
// Room below `path`, which is called `check`; `use` says for what.
Finding CheckRoom(const std::string& check, const std::string& path, const std::string& use);
Finding CheckSharedMemory(const std::string& path);
// Every socket of the topology in use, or of the default one, has a path that fits.
Finding CheckSockets(const DoctorScope& scope);
// nofile, nproc, memlock, core. `fabrics`: directory of RDMA devices, /sys/class/infiniband.
Findings CheckLimits(const std::string& fabrics);
Finding CheckLoopback();
// Sockets of the system's directory: who listens, what is stale.
Finding CheckListeners(const DoctorScope& scope);
// TCP over 127.0.0.1, which PMIx servers and Open MPI use, and the ports that there are. `proc`: /proc;
// `environment` gives variables, "" if not set.
Finding CheckPorts(const std::string& proc, const std::function<std::string(const char*)>& environment);
Finding CheckHostname();

// The daemons' executables beside msactl, their libraries, and the libpmix that a job daemon will load.
Findings CheckExecutables();
// Open MPI, MPICH, Slurm: those that are found, with their versions.
Findings CheckPrograms();

// Controller, nodes, clocks.
Findings CheckSystem(const DoctorScope& scope);
// Heartbeats were stamped by the controller: `now_ms` is this machine's clock.
Finding CheckClocks(const std::vector<NodeInfo>& nodes, std::int64_t now_ms);
// What dead systems of this user left: run directories, daemons, shared memory.
Findings CheckLeftovers(const DoctorScope& scope);

}  // namespace msa::cli
