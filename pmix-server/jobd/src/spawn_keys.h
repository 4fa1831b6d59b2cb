#pragma once
// The info keys of MPI_Comm_spawn that libmsampi carries (task_messages.h). Pure, but for the reading of
// `file` and the look for programs, which the caller does.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/jobd/task_messages.h"

#include "peer_messages.h"

namespace msa::jobd {

// The members of MPI's `soft` set that MPI_Comm_spawn may start (MPI-4.1, 11.8.4 "Reserved Keys"): triplets
// "a", "a:b", "a:b:c" as Fortran's, c not 0, negative to count down; numbers below 0 or above maxprocs are
// ignored. Descending, each once. Empty text: maxprocs alone. kInvalidArgument: syntax, stride 0, or no
// number within 0 to maxprocs.
Result<std::vector<std::uint32_t>> ParseSoftSet(std::string_view text, std::uint32_t maxprocs);

// "90" (seconds), "10ms", "5m", "1h30m", "2d". kInvalidArgument: anything else, or more than a year.
Result<Millis> ParseDuration(std::string_view text);

// "64M", "2G", "1GiB", "1048576": bytes, or with K, M, G, T in steps of 1,024. kInvalidArgument: anything
// else, 0, or more than 2^63 - 1.
Result<Bytes> ParseBytes(std::string_view text);

// The keys of `command`, with those of its `file` where the info has none. `read_file`: text of a path.
// kInvalidArgument names the key, the value and what was expected; else what read_file answers.
struct ParsedCommand {
  PlanCommand plan;                 // without program
  std::string program;              // as given
  std::vector<std::string> search;  // of `path`
  std::string wdir;
  Millis wait{0};
  Millis time{0};
  Bytes nam;  // beyond the job's allotment
};
Result<ParsedCommand> ParseSpawnCommand(
    wire::SpawnCommand command, const std::function<Result<std::string>(const std::string& path)>& read_file);

}  // namespace msa::jobd
