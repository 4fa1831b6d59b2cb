#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>

#include "msa/adapters/process/child_process.h"

#include "doctor/checks.h"

namespace msa::cli {
namespace {

using Level = Finding::Level;

constexpr int kToolMillis = 5000;
constexpr std::size_t kMaxToolOutput = std::size_t{64} << 10;

struct ToolOutput {
  std::string text;  // of both streams
  bool ok = false;   // it ended with code 0 in time
};

ToolOutput RunTool(const std::vector<std::string>& argv, const std::vector<std::string>& more_env = {}) {
  UniqueFd file(::memfd_create("tool", MFD_CLOEXEC));
  if (!file) return {};
  SpawnSpec spec;
  spec.argv = argv;
  spec.env = CurrentEnvironment();
  spec.env.insert(spec.env.end(), more_env.begin(), more_env.end());
  spec.out = file.get();
  spec.err = file.get();
  const Result<ProcessHandle> process = Spawn(spec);
  if (!process.ok()) return {};
  pollfd entry{process->pidfd.get(), POLLIN, 0};
  if (::poll(&entry, 1, kToolMillis) != 1) {
    SignalProcess(*process, SIGKILL);
    ::poll(&entry, 1, kToolMillis);
  }
  const std::optional<int> how = ReapChild(process->pid);
  ToolOutput out;
  out.ok = how && WIFEXITED(*how) && WEXITSTATUS(*how) == 0;
  out.text.resize(kMaxToolOutput);
  const ssize_t size = ::pread(file.get(), out.text.data(), out.text.size(), 0);
  out.text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return out;
}

std::string FindInPath(const std::string& name) {
  const char* path = ::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

struct Program {
  std::string check;
  std::vector<std::string> tools;  // the first that is found and whose text matches
  std::regex version;              // of `TOOL --version`; group 1
  std::string without;             // what goes without it; empty: nobody misses it
};

Finding CheckProgram(const Program& program) {
  std::string mute;
  for (const std::string& tool : program.tools) {
    const std::string path = FindInPath(tool);
    if (path.empty()) continue;
    const ToolOutput output = RunTool({path, "--version"});
    std::smatch match;
    if (output.ok && std::regex_search(output.text, match, program.version))
      return {Level::kOk, program.check, fmt::format("version {} ({})", match[1].str(), path), ""};
    if (!output.ok) mute = path;
  }
  if (!mute.empty())
    return {Level::kWarn, program.check, fmt::format("'{} --version' fails", mute),
            fmt::format("run it by hand, and install {} again", program.check)};
  if (program.without.empty()) return {Level::kOk, program.check, "not there; a local system needs none", ""};
  return {Level::kWarn, program.check, fmt::format("none of {} is in PATH", fmt::join(program.tools, ", ")),
          program.without};
}

// "libpmix.so.2 => /usr/lib/.../libpmix.so.2 (0x...)" of what the loader would do with an executable.
struct Libraries {
  std::vector<std::string> missing;
  std::string pmix;  // path
};

Libraries LibrariesOf(const std::string& executable) {
  Libraries out;
  // As ldd does it.
  std::istringstream lines(RunTool({executable}, {"LD_TRACE_LOADED_OBJECTS=1"}).text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string arrow;
    std::string path;
    if (!(words >> name >> arrow >> path) || arrow != "=>") continue;
    if (path == "not") out.missing.push_back(name);
    if (name.starts_with("libpmix.so") && path.starts_with('/')) out.pmix = path;
  }
  return out;
}

// "4.2.2" of "OpenPMIx 4.2.2rc1 (PMIx Standard: ...)"; the text itself if it has no digits.
std::string Digits(const std::string& text) {
  std::smatch match;
  return std::regex_search(text, match, std::regex("[0-9]+(\\.[0-9]+)+")) ? match[0].str() : text;
}

Finding CheckPmix(const std::string& path) {
  void* library = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get = library == nullptr
                       ? nullptr
                       : reinterpret_cast<const char* (*)()>(::dlsym(library, "PMIx_Get_version"));
  if (get == nullptr)
    return {Level::kFail, "libpmix",
            path.empty() ? "msa-jobd finds no libpmix.so.2" : fmt::format("'{}' cannot be loaded", path),
            "install it: apt-get install libpmix2"};
  const std::string version = Digits(get());
  const std::string built = Digits(MSA_PMIX_VERSION);
  const std::string found = fmt::format("version {} ({}), built with {}", version, path, built);
  if (version == built) return {Level::kOk, "libpmix", found, ""};
  const bool same_major = version.substr(0, version.find('.')) == built.substr(0, built.find('.'));
  return {same_major ? Level::kWarn : Level::kFail, "libpmix", found,
          "build msa anew with this one, or take the other one out of LD_LIBRARY_PATH"};
}

}  // namespace

Findings CheckExecutables() {
  const std::string remedy = "build or install all of msa into one directory";
  const Result<std::string> bin = ExecutableDirectory();
  if (!bin.ok()) return {{Level::kFail, "executables", bin.status().message(), remedy}};
  Findings out;
  std::string pmix;
  for (const char* name : {"msa-controllerd", "msa-noded", "msa-namd", "msa-jobd", "msa-exec"}) {
    const std::string path = *bin + "/" + name;
    if (::access(path.c_str(), X_OK) != 0) {
      out.push_back(
          {Level::kFail, "executables", fmt::format("'{}' is not there or not executable", path), remedy});
      continue;
    }
    const Libraries libraries = LibrariesOf(path);
    if (!libraries.pmix.empty()) pmix = libraries.pmix;
    if (!libraries.missing.empty())
      out.push_back({Level::kFail, "executables",
                     fmt::format("{} lacks {}", name, fmt::join(libraries.missing, ", ")),
                     "install the packages of these libraries; 'deploy/quickstart' does"});
  }
  if (out.empty())
    out.push_back({Level::kOk, "executables", fmt::format("all daemons are in '{}'", *bin), ""});
  out.push_back(CheckPmix(pmix));
  return out;
}

Findings CheckPrograms() {
  const Program programs[] = {
      {"openmpi",
       {"mpirun.openmpi", "mpirun", "ompi_info"},
       std::regex("(?:Open MPI|OpenRTE)\\)?:? v?([0-9][0-9A-Za-z.]*)"),
       "programs of Open MPI will not run; install it: apt-get install openmpi-bin"},
      {"mpich",
       {"mpiexec.hydra", "mpichversion.mpich", "mpichversion"},
       std::regex("Version:[ \t]+([0-9][0-9A-Za-z.]*)"),
       "programs of MPICH will not run, others do; install it: apt-get install mpich"},
      {"slurm", {"sinfo"}, std::regex("slurm[a-z-]* ([0-9][0-9A-Za-z.]*)"), ""},
  };
  Findings out;
  for (const Program& program : programs) out.push_back(CheckProgram(program));
  return out;
}

}  // namespace msa::cli
