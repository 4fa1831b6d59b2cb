#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "msa/adapters/config/topology_file.h"
#include "msa/base/unique_fd.h"
#include "msa/job/job_spec.h"

#include "commands/invocation.h"
#include "commands/print.h"
#include "lint/traps.h"

namespace msa::cli {
namespace {

Result<std::string> ReadScript(const std::string& path) {
  UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, fmt::format("open the script '{}'", path));
  std::string out;
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, fmt::format("read the script '{}'", path));
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > kMaxScriptBytes)
      return Error(Code::kInvalidArgument, "'{}' has more than {} bytes, the limit of a batch script", path,
                   kMaxScriptBytes);
  }
}

}  // namespace

Result<int> JobLint(const Args& args) {
  Invocation call(
      {"msactl job lint", "[OPTIONS] SCRIPT",
       "Look through a batch script for sbatch for what Slurm takes and does not do: options of the "
       "wrong\ncomponent, steps on the first component alone, jobs that wait for ever. Reads the text "
       "alone; '-' is\nstandard input. Exit code 1 if something is found."});
  call.WithFormat();
  std::string topology_file;
  call.options().Text(0, "topology", "FILE", "judge modules and numbers of nodes by this topology file",
                      &topology_file);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a script"}));
  if (!go) return 0;
  std::optional<SystemTopology> topology;
  if (!topology_file.empty()) {
    MSA_ASSIGN_OR_RETURN(topology, LoadTopologyFile(topology_file));
  }
  const std::string& path = call.operands().front();
  MSA_ASSIGN_OR_RETURN(const std::string script, ReadScript(path));
  const std::vector<LintFinding> findings = FindTraps(script, topology ? &*topology : nullptr);
  if (call.people()) {
    MSA_RETURN_IF_ERROR(Print(ShowLint(path, findings)));
  } else {
    MSA_RETURN_IF_ERROR(call.Show(LintListing(path, findings)));
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace msa::cli
