#include "program.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "msa/base/unique_fd.h"

#include "elf_needed.h"

namespace msa::launch {
namespace {

constexpr std::size_t kMaxNamesRead = 20'000;  // of one directory, for a hint only

std::string Join(std::string_view directory, std::string_view name) {
  if (name.starts_with('/') || directory.empty()) return std::string(name);
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

std::vector<std::string> Names(const std::string& directory) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), ::closedir);
  if (!dir) return out;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
    if (out.size() >= kMaxNamesRead) break;
  }
  return out;
}

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view part = path.substr(0, colon);
    out.emplace_back(part.empty() ? std::string_view(".")
                                  : part);  // POSIX: an empty entry is the working directory
    if (colon == std::string_view::npos) return out;
    path.remove_prefix(colon + 1);
  }
}

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string In(const std::string& name, const std::string& cwd) {
  return name.starts_with('/') || cwd.empty() ? "" : " in " + cwd;
}

// `path` exists or an errno says why it cannot be seen.
ProgramError DescribeUnusable(const std::string& name, const std::string& path, const std::string& cwd) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    return {fmt::format(
                "program '{}'{} cannot be reached: {}; make every directory of its path searchable for you",
                name, In(name, cwd), ::strerror(error)),
            126};
  }
  if (S_ISDIR(status.st_mode))
    return {
        fmt::format("'{}'{} is a directory, not a program; name the program inside it", name, In(name, cwd)),
        126};
  if (!S_ISREG(status.st_mode))
    return {fmt::format("'{}'{} is not a regular file; name a program", name, In(name, cwd)), 126};
  return {fmt::format("program '{}'{} is not executable (mode {:04o}); run 'chmod +x {}'", name,
                      In(name, cwd), status.st_mode & 07777U, path),
          126};
}

ProgramError DescribeMissing(const ProgramQuery& query) {
  if (query.name.find('/') != std::string::npos) {
    const std::size_t slash = query.name.rfind('/');
    const std::string directory = query.name.substr(0, slash + 1);
    const std::string near = NearestName(query.name.substr(slash + 1), Names(Join(query.cwd, directory)));
    return {
        fmt::format("program '{}' not found{}; {}", query.name, In(query.name, query.cwd),
                    near.empty()
                        ? std::string("check the name, and that the file is there on every node of the job")
                        : fmt::format("did you mean '{}{}'?", directory, near)),
        127};
  }
  const std::string local = Join(query.cwd, query.name);
  if (::access(local.c_str(), X_OK) == 0)
    return {
        fmt::format("program '{}' not found in PATH ({}); a file of that name is in {}: start it as './{}'",
                    query.name, query.path, query.cwd.empty() ? "." : query.cwd, query.name),
        127};
  std::vector<std::string> names;
  for (const std::string& directory : SplitPath(query.path)) {
    std::vector<std::string> more = Names(Join(query.cwd, directory));
    names.insert(names.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  const std::string near = NearestName(query.name, names);
  return {fmt::format("program '{}' not found in PATH ({}); {}", query.name, query.path,
                      near.empty() ? std::string("give its path or extend PATH")
                                   : fmt::format("did you mean '{}'?", near)),
          127};
}

bool IsRunnable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

ProgramError DescribeDirectory(const std::string& cwd, int error) {
  switch (error) {
    case ENOENT:
      return {
          fmt::format(
              "working directory '{}' does not exist on this node; create it or give another with --chdir",
              cwd),
          126};
    case ENOTDIR:
      return {fmt::format("working directory '{}' is not a directory; give another with --chdir", cwd), 126};
    case EACCES:
      return {
          fmt::format(
              "working directory '{}' may not be entered: permission denied; run 'chmod u+x' on it or give "
              "another with --chdir",
              cwd),
          126};
    default:
      return {fmt::format("working directory '{}' cannot be entered: {}; give another with --chdir", cwd,
                          ::strerror(error)),
              126};
  }
}

// First line of a script without "#!" and blanks, up to the interpreter's end; empty if the file is no
// script.
std::string ScriptInterpreter(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> head{};
  const ssize_t n = fd ? ::read(fd.get(), head.data(), head.size()) : -1;
  if (n < 2 || head[0] != '#' || head[1] != '!') return "";
  std::string_view line(head.data() + 2, static_cast<std::size_t>(n) - 2);
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

ProgramError DescribeExec(const TaskSpec& spec, const std::string& path, int error) {
  const std::string& name = spec.argv[0];
  const std::string script = ScriptInterpreter(path);
  if (error == ENOENT || error == EACCES) {
    if (!script.empty()) {
      const bool carriage_return = script.ends_with('\r');
      return {
          fmt::format("program '{}' cannot be started: its interpreter '{}' {}; {}", name,
                      carriage_return ? script.substr(0, script.size() - 1) + "\\r" : script,
                      error == ENOENT ? "does not exist" : "is not executable",
                      carriage_return ? fmt::format("remove the carriage returns: sed -i 's/\\r$//' {}", path)
                                      : std::string("correct the first line of the script")),
          126};
    }
    const std::string loader = ElfInterpreter(path);
    if (!loader.empty() && ::access(loader.c_str(), X_OK) != 0)
      return {fmt::format(
                  "program '{}' cannot be started: its loader '{}' does not exist; it was built for another "
                  "system: build it here",
                  name, loader),
              126};
    if (::access(path.c_str(), F_OK) != 0)
      return {fmt::format("program '{}' is no longer there ({}); build it again", name, path), 127};
    return DescribeUnusable(name, path, spec.cwd);
  }
  if (error == ENOEXEC)
    return {
        fmt::format("program '{}' has a format that this machine cannot run: it is neither a program built "
                    "for it nor "
                    "a script that begins with '#!'; build it here, or add a first line such as '#!/bin/sh'",
                    name),
        126};
  if (error == E2BIG) {
    std::size_t bytes = 0;
    for (const std::string& s : spec.argv) bytes += s.size() + 1;
    for (const std::string& s : spec.env) bytes += s.size() + 1;
    return {
        fmt::format(
            "arguments and environment of '{}' are {} bytes; the kernel takes at most 131072 for one of them "
            "and a quarter of the stack limit (ulimit -s) for all: shorten them or raise the limit",
            name, bytes),
        126};
  }
  return {fmt::format("program '{}' ({}) cannot be started: {}", name, path, ::strerror(error)),
          error == ETXTBSY || error == EPERM || error == ELOOP ? 126 : 125};
}

std::string CpuList(const std::vector<std::uint16_t>& cpus) {
  return fmt::format("{}", fmt::join(cpus, ","));
}

}  // namespace

const char* FindVariable(const std::vector<std::string>& env, std::string_view name) {
  for (const std::string& entry : env)
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name))
      return entry.c_str() + name.size() + 1;
  return nullptr;
}

std::string NearestName(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::min<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    if (longer - std::min(name.size(), candidate.size()) >= best_distance) continue;
    const std::size_t distance = EditDistance(name, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

ProgramQuery QueryOf(const TaskSpec& spec) {
  const char* const path = FindVariable(spec.env, "PATH");
  return {spec.argv.empty() ? "" : spec.argv[0], path == nullptr ? std::string(kDefaultPath) : path,
          spec.cwd};
}

Lookup FindProgram(const ProgramQuery& query) {
  if (query.name.empty()) return {"", {"no program was given; name one after the options", 127}};
  if (!query.cwd.empty()) {
    struct stat status {};
    if (::stat(query.cwd.c_str(), &status) != 0) return {"", DescribeDirectory(query.cwd, errno)};
    if (!S_ISDIR(status.st_mode)) return {"", DescribeDirectory(query.cwd, ENOTDIR)};
    if (::access(query.cwd.c_str(), X_OK) != 0) return {"", DescribeDirectory(query.cwd, errno)};
  }
  if (query.name.find('/') != std::string::npos) {
    std::string path = Join(query.cwd, query.name);
    if (IsRunnable(path)) return {std::move(path), {}};
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR))
      return {"", DescribeMissing(query)};
    return {"", DescribeUnusable(query.name, path, query.cwd)};
  }
  std::string unusable;
  for (const std::string& directory : SplitPath(query.path)) {
    std::string path = Join(query.cwd, Join(directory, query.name));
    if (IsRunnable(path)) return {std::move(path), {}};
    struct stat status {};
    if (unusable.empty() && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      unusable = std::move(path);
  }
  if (!unusable.empty()) return {"", DescribeUnusable(unusable, unusable, query.cwd)};
  return {"", DescribeMissing(query)};
}

ProgramError DescribeExecFailure(const TaskSpec& spec, const std::string& path, const ExecFailure& failure) {
  switch (failure.stage) {
    case kExecStageDirectory:
      return DescribeDirectory(spec.cwd, failure.error);
    case kExecStageExec:
      return DescribeExec(spec, path, failure.error);
    case kExecStageBind:
      return {
          fmt::format(
              "rank {} of '{}' cannot be bound to CPUs {}: {}; the node daemon may use none of them: give it "
              "more with taskset or the service's CPU set, or run without binding",
              spec.rank.value, spec.argv[0], CpuList(spec.cpus), ::strerror(failure.error)),
          125};
    case kExecStageLimit:
      return {fmt::format(
                  "resource limit {} of '{}' cannot be set: {}; change it with ulimit before the submission",
                  failure.detail, spec.argv[0], ::strerror(failure.error)),
              125};
    default:
      return {
          fmt::format(
              "rank {} of '{}' cannot be started: msa-exec failed: {}; is it of the same version as the job "
              "daemon?",
              spec.rank.value, spec.argv[0], ::strerror(failure.error)),
          125};
  }
}

}  // namespace msa::launch
