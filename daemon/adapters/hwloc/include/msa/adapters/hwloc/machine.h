#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// What this machine offers to this process: cores outside its cgroup's cpuset or its CPU affinity do not
// count.
struct MachineDescription {
  std::uint32_t cores = 0;    // with at least one usable hardware thread
  std::uint32_t threads = 0;  // usable hardware threads (CPUs as the kernel numbers them)
  std::uint32_t packages = 1;
  std::uint32_t numa_nodes = 1;
  std::uint32_t gpus = 0;
  Bytes memory;           // of the usable NUMA nodes, or the cgroup's limit if that is lower
  std::string cpu_model;  // "AMD EPYC 7763 64-Core Processor", "" if unknown
};

// CPU numbers of the kernel, ascending.
using CpuSet = std::vector<std::uint32_t>;

// "0-3,8"
std::string FormatCpuSet(const CpuSet& cpus);

// The topology of a machine. Immutable; any thread.
class Machine {
 public:
  // Discovers this machine by hwloc (about 5 ms; once per process). kInternal: hwloc failed.
  static Result<Machine> Measure();
  // From a file written by WriteXml on this machine: spares the discovery. kNotFound, kInvalidArgument: the
  // file.
  static Result<Machine> FromXml(const std::string& path);
  Machine(Machine&&) noexcept;
  Machine& operator=(Machine&&) noexcept;
  ~Machine();

  const MachineDescription& description() const noexcept;

  // Replaces `path` atomically by the whole topology as hwloc's XML: what libpmix takes as PMIX_TOPOLOGY2 or
  // what HWLOC_XMLFILE names for MPI tasks (with HWLOC_THISSYSTEM=1). It holds CPUs that this process may not
  // use, marked so. kResourceExhausted: disk full; kPermissionDenied, kNotFound: the directory.
  Status WriteXml(const std::string& path) const;

  // The usable CPUs of logical cores (0 to description().cores - 1, in hwloc's order), all hardware threads
  // of each. kOutOfRange: no such core, with its number and how many there are.
  Result<CpuSet> CpusOf(const std::vector<std::uint16_t>& cores) const;

 private:
  class Impl;
  explicit Machine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa
