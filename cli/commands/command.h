#pragma once
// The commands of msactl. Each stands in a file of its own, <noun>_<verb>.cc.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

using Args = std::vector<std::string>;

struct Command {
  std::string_view noun;
  std::string_view verb;     // "" for a noun that is a command itself
  std::string_view summary;  // for `msactl help`
  // The exit code, or an error, whose text is printed and whose code decides (ExitCodeOf).
  Result<int> (*run)(const Args& args);
};

std::span<const Command> Commands();

// Of msactl as of the daemons: msa/base/exit_code.h.
int ExitCodeOf(Code code) noexcept;
// Some of several operations failed.
inline constexpr int kPartialExitCode = 9;

Result<int> ClusterUp(const Args& args);
Result<int> ClusterDown(const Args& args);
Result<int> ClusterStatus(const Args& args);
Result<int> ClusterLogs(const Args& args);
Result<int> ClusterSupervise(const Args& args);
Result<int> JobRun(const Args& args);
Result<int> JobAlloc(const Args& args);
Result<int> JobSubmit(const Args& args);
Result<int> JobList(const Args& args);
Result<int> JobHistory(const Args& args);
Result<int> JobShow(const Args& args);
Result<int> JobWhy(const Args& args);
Result<int> JobCancel(const Args& args);
Result<int> JobSignal(const Args& args);
Result<int> JobWait(const Args& args);
Result<int> JobLogs(const Args& args);
Result<int> JobAttach(const Args& args);
Result<int> JobLint(const Args& args);
Result<int> AllocList(const Args& args);
Result<int> AllocShow(const Args& args);
Result<int> AllocRelease(const Args& args);
Result<int> SpawnList(const Args& args);
Result<int> ModuleList(const Args& args);
Result<int> ModuleShow(const Args& args);
Result<int> ModuleTopology(const Args& args);
Result<int> NodeList(const Args& args);
Result<int> NodeShow(const Args& args);
Result<int> NodeDrain(const Args& args);
Result<int> NodeResume(const Args& args);
Result<int> RegionCreate(const Args& args);
Result<int> RegionList(const Args& args);
Result<int> RegionShow(const Args& args);
Result<int> RegionPut(const Args& args);
Result<int> RegionGet(const Args& args);
Result<int> RegionCopy(const Args& args);
Result<int> RegionResize(const Args& args);
Result<int> RegionAcl(const Args& args);
Result<int> RegionRm(const Args& args);
Result<int> RegionDf(const Args& args);
Result<int> RegionFsck(const Args& args);
Result<int> RegionSnapshot(const Args& args);
Result<int> RegionRestore(const Args& args);
Result<int> CompletionBash(const Args& args);
Result<int> CompletionZsh(const Args& args);
Result<int> CompletionFish(const Args& args);
Result<int> CompletionWords(const Args& args);
Result<int> AdminJobSubmit(const Args& args);
Result<int> Doctor(const Args& args);
Result<int> SystemStatus(const Args& args);
Result<int> Version(const Args& args);

}  // namespace msa::cli
