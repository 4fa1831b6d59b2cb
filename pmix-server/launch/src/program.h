#pragma once
// The texts for users when a task's program cannot be started. How it is found: msa/launch/find_program.h.

#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"
#include "msa/launch/find_program.h"
#include "msa/launch/task.h"

#include "exec_spec.h"

namespace msa::launch {

ProgramQuery QueryOf(const TaskSpec& spec);

// The user's text for a failure that the trampoline reported.
ProgramError DescribeExecFailure(const TaskSpec& spec, const std::string& path, const ExecFailure& failure);

// Value of `name` in "K=V" strings, the first one as getenv takes it; null if there is none.
const char* FindVariable(const std::vector<std::string>& env, std::string_view name);

// Name in `candidates` that is at most a third of its letters, and at most 2, edits away from `name`; empty
// if none.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace msa::launch
