#include "singleton.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "elf_needed.h"
#include "process_table.h"

namespace msa::launch {
namespace {

constexpr std::size_t kMapsBytes = 4U << 20;  // a big Python program has some 300 KiB
constexpr std::size_t kCommandBytes = 16U << 10;
constexpr std::size_t kProcessesPerTask =
    256;  // of a task that is a process farm, the first ones are looked at

bool IsMpich(std::string_view library) { return library.starts_with("libmpich."); }

// Another process manager has started it: an mpiexec inside the task.
bool HasPmi(pid_t pid) {
  const std::string text = '\0' + ReadProcFile(pid, "environ", kMapsBytes);
  using namespace std::string_literals;
  return text.find("\0PMI_FD="s) != std::string::npos || text.find("\0PMI_PORT="s) != std::string::npos;
}

// Open MPI starts it when it initialises as a singleton; statically linked programs show nothing else.
bool IsSingletonDaemon(pid_t pid) {
  const std::string command = ReadProcFile(pid, "cmdline", kCommandBytes);
  return command.find("orted") != std::string::npos &&
         command.find("--singleton-died-pipe") != std::string::npos;
}

}  // namespace

MpiEvidence ClassifyMaps(std::string_view maps) {
  MpiEvidence out;
  std::set<std::string_view>
      ess;  // mapped components of Open MPI's framework that finds its place in the job
  bool transports = false;
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::size_t slash = line.rfind('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view name = line.substr(slash + 1);
    if (out.library.empty()) out.library = MpiSoname(name);
    if (name.starts_with("mca_ess_")) ess.insert(name.substr(0, name.find('.')));
    transports = transports || name.starts_with("libuct_");
  }
  // All components are mapped for a moment before one is chosen, and throughout in ompi_info.
  const bool open_mpi = ess.size() == 1 && *ess.begin() == "mca_ess_singleton";
  out.initialised = IsMpich(out.library) ? transports : !out.library.empty() && open_mpi;
  return out;
}

MpiEvidence InspectProcesses(pid_t task) {
  MpiEvidence out;
  std::vector<pid_t> open{task};
  for (std::size_t i = 0; i < open.size() && i < kProcessesPerTask && !out.initialised; ++i) {
    const pid_t pid = open[i];
    MpiEvidence here = ClassifyMaps(ReadProcFile(pid, "maps", kMapsBytes));
    if (here.initialised && IsMpich(here.library) && HasPmi(pid)) here.initialised = false;
    if (out.library.empty() || here.initialised)
      out.library = here.library.empty() ? out.library : here.library;
    out.initialised = here.initialised || (i > 0 && IsSingletonDaemon(pid));
    bool supported = false;
    const std::vector<pid_t> children = ChildrenOf(pid, supported);
    open.insert(open.end(), children.begin(), children.end());
  }
  return out;
}

Millis InspectionDue(int n, std::string_view library) {
  static constexpr Millis kDense{4};
  static constexpr int kDenseLooks = 62;  // until 248 ms
  static constexpr std::array<int, 6> kDoubling{10, 20, 40, 80, 160, 320};
  if (IsMpich(library)) {
    if (n < kDenseLooks) return kDense * (n + 1);
    n = n - kDenseLooks + static_cast<int>(kDoubling.size());
  }
  if (n < static_cast<int>(kDoubling.size())) return Millis(kDoubling[n]);
  n -= static_cast<int>(kDoubling.size());
  return n < 20 ? Millis(500) * (n + 1) : Millis(10'000) + Millis(2'000) * (n - 19);
}

}  // namespace msa::launch
