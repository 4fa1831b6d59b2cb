#pragma once

#include <string>
#include <string_view>

#include "msa/base/messages.h"
#include "msa/base/status.h"
#include "msa/job/stdio_pattern.h"

namespace msa::jobd {

// Where one standard stream of the tasks goes.
enum class SinkKind : std::uint8_t {
  kCarry,    // to the attached msactl
  kDrop,     // nowhere
  kFile,     // one file, written by the head
  kPerTask,  // a file for each task (or node), opened where the task runs
};

struct Sink {
  SinkKind kind = SinkKind::kCarry;
  std::string path;  // kFile: absolute and expanded; kPerTask: absolute, not expanded
};

struct StdioPlan {
  Sink out;
  Sink err;
};

// What StdioSpec means; relative names are below `cwd`. kInvalidArgument: a pattern's letter that does not
// exist.
Result<StdioPlan> PlanStdio(const wire::StdioSpec& spec, const std::string& cwd, const PatternValues& values);

// Writes all of it. kResourceExhausted: the disk is full; the message names the file.
Status WriteAll(int fd, const std::string& path, std::string_view data);

}  // namespace msa::jobd
