#include "process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "msa/base/unique_fd.h"

namespace msa::launch {
namespace {

constexpr std::size_t kStatBytes = 4096;
constexpr std::size_t kEnvironBytes = 4U << 20;  // the kernel's own limit with an 8 MiB stack is 2 MiB

std::string ReadAll(const std::string& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  if (!fd) return out;
  while (out.size() < limit) {
    const std::size_t at = out.size();
    out.resize(std::min(limit, at + 65536));
    const ssize_t n = ::read(fd.get(), out.data() + at, out.size() - at);
    out.resize(at + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0 || (n < 0 && errno != EINTR)) break;
  }
  return out;
}

std::vector<pid_t> Numbers(const std::string& directory) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), ::closedir);
  if (!dir) return out;
  while (const dirent* entry = ::readdir(dir.get())) {
    pid_t pid = 0;
    const std::string_view name = entry->d_name;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) out.push_back(pid);
  }
  return out;
}

std::optional<ProcessEntry> ReadEntry(pid_t pid) {
  const std::string text = ReadProcFile(pid, "stat", kStatBytes);
  // "pid (name) S ppid pgrp session ...": a name may hold anything, brackets and blanks included.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > text.size()) return std::nullopt;
  ProcessEntry entry;
  entry.pid = pid;
  entry.name = text.substr(open + 1, close - open - 1);
  entry.state = text[close + 2];
  const char* at = text.data() + close + 4;
  const char* const end = text.data() + text.size();
  for (pid_t* field : {&entry.parent, &entry.group, &entry.session}) {
    const auto [next, error] = std::from_chars(at, end, *field);
    if (error != std::errc() || next == end) return std::nullopt;
    at = next + 1;
  }
  return entry;
}

}  // namespace

std::string ReadProcFile(pid_t pid, std::string_view file, std::size_t limit) {
  return ReadAll(fmt::format("/proc/{}/{}", pid, file), limit);
}

std::vector<ProcessEntry> Descendants(pid_t root) {
  std::multimap<pid_t, ProcessEntry> by_parent;
  for (const pid_t pid : Numbers("/proc"))
    if (auto entry = ReadEntry(pid)) by_parent.emplace(entry->parent, std::move(*entry));
  std::vector<ProcessEntry> out;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = by_parent.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      open.push_back(it->second.pid);
      if (it->second.state != 'Z' && it->second.state != 'X') out.push_back(std::move(it->second));
    }
    by_parent.erase(first, last);
  }
  return out;
}

std::vector<pid_t> ChildrenOf(pid_t pid, bool& supported) {
  supported = false;
  std::vector<pid_t> out;
  for (const pid_t thread : Numbers(fmt::format("/proc/{}/task", pid))) {
    const std::string path = fmt::format("/proc/{}/task/{}/children", pid, thread);
    supported = supported || ::access(path.c_str(), R_OK) == 0;
    const std::string text = ReadAll(path, kEnvironBytes);
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      pid_t child = 0;
      const auto [next, error] = std::from_chars(at, end, child);
      if (error != std::errc()) break;
      out.push_back(child);
      at = next + 1;
    }
  }
  return out;
}

bool StartedWith(pid_t pid, std::string_view entry) {
  const std::string text = ReadProcFile(pid, "environ", kEnvironBytes);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    if (std::string_view(text).substr(at, end - at) == entry) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace msa::launch
