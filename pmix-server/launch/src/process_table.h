#pragma once
// What /proc says about processes. Any of them may end while it is looked at: then it is left out.

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace msa::launch {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';  // 'Z': ended, not yet collected
  std::string name;
};

// Every living process below `root`, itself and zombies left out; a zombie's children count.
std::vector<ProcessEntry> Descendants(pid_t root);

// Processes that have `pid` as their parent, by the kernel's list; cheap, and may miss one that starts right
// now. Sets `supported` to whether the kernel keeps such lists.
std::vector<pid_t> ChildrenOf(pid_t pid, bool& supported);

// Text of /proc/<pid>/<file>, at most `limit` bytes; empty if it cannot be read.
std::string ReadProcFile(pid_t pid, std::string_view file, std::size_t limit);

// Whether the process was exec'ed with this "K=V" (environ of /proc).
bool StartedWith(pid_t pid, std::string_view entry);

}  // namespace msa::launch
