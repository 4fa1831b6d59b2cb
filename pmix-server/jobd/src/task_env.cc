#include "task_env.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace msa::jobd {
namespace {

// An environment under construction: one line a name, in order of first appearance.
class Lines {
 public:
  void Put(const std::string& line) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || equals == 0) return;
    const auto [it, is_new] = at_.try_emplace(line.substr(0, equals), lines_.size());
    if (is_new)
      lines_.push_back(line);
    else
      lines_[it->second] = line;
  }
  std::string Get(const std::string& name) const {
    const auto it = at_.find(name);
    return it == at_.end() ? std::string() : lines_[it->second].substr(name.size() + 1);
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
  std::unordered_map<std::string, std::size_t> at_;
};

// What is inherited without `library`, behind `first`.
std::string Preloads(std::string first, const std::string& library, const std::string& inherited) {
  std::string list = std::move(first);
  for (std::size_t begin = 0; begin < inherited.size();) {
    const std::size_t end = std::min(inherited.find_first_of(": ", begin), inherited.size());
    const std::string entry = inherited.substr(begin, end - begin);
    if (!entry.empty() && entry != library) list += (list.empty() ? "" : ":") + entry;
    begin = end + 1;
  }
  return list;
}

// What names another launch: an outer job's, or the parent's in a spawn. One that ends with '_' stands for
// all that begin so.
constexpr std::string_view kForeignNames[] = {"MSA_JOB_ID",
                                              "MSA_STEP_ID",
                                              "MSA_NODE",
                                              "MSA_MODULE",
                                              "MSA_MODULE_ID",
                                              "MSA_MODULE_KIND",
                                              "MSA_COMPONENT",
                                              "MSA_RANK",
                                              "MSA_LOCAL_RANK",
                                              "MSA_WORLD_SIZE",
                                              "MSA_NODELIST",
                                              "MSA_JOB_SOCKET",
                                              "MSA_JOBD_COOKIE",
                                              "MSA_PARENT_NAMESPACE",
                                              "MSA_SPAWN_TICKET",
                                              "MSA_SPAWN_PART",
                                              "PSP_MSA_MODULE_ID",
                                              "PMIX_NAMESPACE",
                                              "PMIX_RANK",
                                              "PMIX_SERVER_",
                                              "PMIX_HOSTNAME",
                                              "PMIX_SECURITY_MODE",
                                              "PMIX_BFROP_BUFFER_TYPE",
                                              "PMIX_GDS_MODULE",
                                              "PMI_FD",
                                              "PMI_PORT",
                                              "PMI_ID",
                                              "PMI_RANK",
                                              "PMI_SIZE",
                                              "PMI_SPAWNED",
                                              "PMI_TOTALVIEW",
                                              "HYDI_CONTROL_FD",
                                              "MPI_LOCALRANKID",
                                              "MPI_LOCALNRANKS"};

// The servers that libpmix looks for: what "PMIX_SERVER_" stands for where names must be given. And what
// tells a program of a spawned process that it were one itself.
constexpr std::string_view kMoreForeignNames[] = {
    "PMIX_SERVER_URI",   "PMIX_SERVER_URI2",   "PMIX_SERVER_URI21", "PMIX_SERVER_URI3",   "PMIX_SERVER_URI4",
    "PMIX_SERVER_URI41", "PMIX_SERVER_NSPACE", "PMIX_SERVER_RANK",  "PMIX_SERVER_TMPDIR", "OMPI_PARENT_PORT"};

bool IsForeign(const std::string& line) {
  return std::any_of(std::begin(kForeignNames), std::end(kForeignNames), [&](std::string_view name) {
    return line.starts_with(name) && (name.ends_with('_') || line[name.size()] == '=');
  });
}

// What tells a program of an outer task, besides, that a launcher waits for it.
bool IsLaunchers(const std::string& line) {
  static constexpr std::string_view kNames[] = {"JSM_JSRUN_PORT=",
                                                "OMPI_COMM_WORLD_",
                                                "OMPI_MCA_orte_",
                                                "OMPI_MCA_ess",
                                                "OMPI_MCA_btl_vader_backing_directory=",
                                                "OMPI_PARENT_PORT=",
                                                "PRTE_",
                                                "PMIX_"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return line.starts_with(name); });
}

void PutPlace(const TaskEnvironmentOptions& o, Lines& lines) {
  lines.Put(fmt::format("MSA_JOB_ID={}", o.job));
  lines.Put("MSA_NODE=" + o.member->node);
  lines.Put("MSA_MODULE=" + o.member->module_name);
  lines.Put(fmt::format("MSA_MODULE_ID={}", o.member->module));
  lines.Put("MSA_MODULE_KIND=" + o.member->module_kind);
  lines.Put(fmt::format("MSA_NODELIST={}", fmt::join(o.nodes, ",")));
  if (!o.system.empty()) lines.Put("MSA_DIR=" + o.system);
}

}  // namespace

std::vector<std::string> TaskEnvironment(const TaskEnvironmentOptions& o) {
  Lines lines;
  for (const std::string& line : o.base)
    if (!IsForeign(line)) lines.Put(line);
  for (const std::string& line : o.app)
    if (!IsForeign(line)) lines.Put(line);
  PutPlace(o, lines);
  lines.Put(fmt::format("MSA_STEP_ID={}", o.step));
  lines.Put(fmt::format("MSA_COMPONENT={}", o.component));
  lines.Put(fmt::format("MSA_RANK={}", o.rank));
  lines.Put(fmt::format("MSA_LOCAL_RANK={}", o.local_rank));
  lines.Put(fmt::format("MSA_WORLD_SIZE={}", o.world_size));
  lines.Put("MSA_JOB_SOCKET=" + o.job_socket);
  lines.Put(fmt::format("PSP_MSA_MODULE_ID={}", o.member->module));
  // As MPICH's mpiexec does; the last two are for scripts that choose a device.
  lines.Put(fmt::format("PMI_FD={}", o.pmi_fd));
  lines.Put(fmt::format("PMI_RANK={}", o.rank));
  lines.Put(fmt::format("PMI_SIZE={}", o.world_size));
  lines.Put(fmt::format("MPI_LOCALRANKID={}", o.local_rank));
  lines.Put(fmt::format("MPI_LOCALNRANKS={}", o.local_size));
  if (!o.parent_nspace.empty()) lines.Put("MSA_PARENT_NAMESPACE=" + o.parent_nspace);
  // First, and once: a spawned child inherits its parent's list.
  if (!o.mpi_library.empty())
    lines.Put("LD_PRELOAD=" + Preloads(o.mpi_library, o.mpi_library, lines.Get("LD_PRELOAD")));
  Lines all;
  for (const std::string& line : pmix::OpenMpiEnvironment(lines.Take(), o.open_mpi)) all.Put(line);
  for (const std::string& line : o.pmix) all.Put(line);
  return all.Take();
}

std::vector<std::string> ScriptEnvironment(const TaskEnvironmentOptions& o) {
  Lines lines;
  for (const std::vector<std::string>* part : {&o.base, &o.app})
    for (const std::string& line : *part)
      if (!IsForeign(line) && !IsLaunchers(line)) lines.Put(line);
  PutPlace(o, lines);
  std::vector<std::string> all = lines.Take();
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (!it->starts_with("LD_PRELOAD=")) continue;
    const std::string list = Preloads({}, o.mpi_library, it->substr(11));
    if (list.empty())
      all.erase(it);
    else
      *it = "LD_PRELOAD=" + list;
    break;
  }
  return all;
}

std::vector<std::string> InheritedEnvironment(const std::vector<std::string>& parents) {
  std::vector<std::string> out;
  // MSA_ARCH is a key of a spawn where it stands among a command's own variables.
  for (const std::string& line : parents)
    if (!line.starts_with("SLURM") && !line.starts_with("OMPI_PARENT_PORT=") &&
        !line.starts_with("MSA_ARCH=") && !IsForeign(line))
      out.push_back(line);
  return out;
}

wire::SlurmTaskReady SlurmEnvironment(const std::vector<std::string>& lines,
                                      const std::vector<std::string>& own) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  wire::SlurmTaskReady out;
  std::unordered_set<std::string_view> set;
  for (const std::string& line : lines) {
    const std::string_view name = std::string_view(line).substr(0, line.find('=') + 1);
    set.insert(name.substr(0, name.size() - 1));
    const auto theirs =
        std::find_if(own.begin(), own.end(), [&](const std::string& one) { return one.starts_with(name); });
    if (theirs == own.end())
      out.set.push_back(line);
    else if (name == kPreload)
      out.set.push_back(std::string(kPreload) + Preloads(line.substr(kPreload.size()),
                                                         line.substr(kPreload.size()),
                                                         theirs->substr(kPreload.size())));
  }
  for (const std::string_view name : kForeignNames)
    if (!name.ends_with('_') && !set.contains(name)) out.unset.emplace_back(name);
  for (const std::string_view name : kMoreForeignNames)
    if (!set.contains(name)) out.unset.emplace_back(name);
  return out;
}

}  // namespace msa::jobd
