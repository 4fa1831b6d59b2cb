#pragma once
// Finding a task's program, and the texts for users when it cannot be started.

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"
#include "msa/launch/task.h"

#include "exec_spec.h"

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

ProgramQuery QueryOf(const TaskSpec& spec);

// Looks as a shell would that stands in `cwd`. On success `path` is what to exec, absolute unless cwd is
// empty.
struct Lookup {
  std::string path;  // empty: see error
  ProgramError error;
};
Lookup FindProgram(const ProgramQuery& query);

// The user's text for a failure that the trampoline reported.
ProgramError DescribeExecFailure(const TaskSpec& spec, const std::string& path, const ExecFailure& failure);

// Value of `name` in "K=V" strings, the first one as getenv takes it; null if there is none.
const char* FindVariable(const std::vector<std::string>& env, std::string_view name);

// Name in `candidates` that is at most a third of its letters, and at most 2, edits away from `name`; empty
// if none.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace msa::launch
