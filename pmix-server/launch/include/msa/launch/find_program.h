#pragma once
// Finding a program as the tasks' shell would, and the text for users when it is not there. Any thread.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace msa::launch {

// Why a program cannot be started; exit_code 127: not found, 126: there but unusable, 125: other.
struct ProgramError {
  std::string message;
  std::int32_t exit_code = 127;
};

// What the lookup depends on, apart from the file system.
struct ProgramQuery {
  std::string name;  // argv[0]
  std::string path;  // value of PATH; kDefaultPath if the task's environment has none
  std::string cwd;
  friend auto operator<=>(const ProgramQuery&, const ProgramQuery&) = default;
};
inline constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Looks as a shell would that stands in `cwd`. On success `path` is what to exec, absolute unless cwd is
// empty.
struct Lookup {
  std::string path;  // empty: see error
  ProgramError error;
};
Lookup FindProgram(const ProgramQuery& query);

}  // namespace msa::launch
