#pragma once
// What Slurm alone says of jobs, nodes and modules, beside what they have in common with msa's.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace msa::cli {

struct SlurmComponent {
  std::uint64_t job = 0;  // of Slurm
  std::string partition;
  std::string state;   // Slurm's word
  std::string reason;  // likewise; empty: none
  std::uint32_t nodes = 0;
  std::uint32_t tasks = 0;
  std::vector<std::string> node_list;
};

// A job of Slurm's by which another one grows: deploy/doc/companions.md.
struct SlurmCompanion {
  std::uint64_t job = 0;
  std::uint64_t request = 0;
  std::string partition;
  std::string state;
  std::string reason;
  std::vector<std::string> node_list;
};

struct SlurmJobFacts {
  std::string label;  // as Slurm writes the id: "4711", "4711_3", "4711_[4-9]"; long lists end with "..."
  std::string array_tasks;  // the whole list: "3", "4-9", "1,4-9:5%2"; empty: no array
  std::string state;        // "COMPLETING"
  std::string account;
  std::string qos;
  std::string command;
  std::string directory;
  std::string dependency;  // "afterok:12(unfulfilled)"
  std::string licenses;
  std::uint64_t priority = 0;
  std::int64_t expected_end_ms = 0;  // of a job that runs; 0: it has no limit
  std::vector<SlurmComponent> components;
  std::vector<SlurmCompanion> companions;
  std::uint64_t companion_of = 0;  // 0: it is none
  std::uint64_t request = 0;       // of that job
};

struct SlurmNodeFacts {
  std::string state;  // "mixed+drain"; empty: Slurm does not know the node
  std::vector<std::string> partitions;
  std::string msa;  // "UP", "DOWN", "UNKNOWN"; empty: the controller does not answer, or knows no such node
  std::vector<std::pair<std::string, std::string>> shown = {};  // of `scontrol show node`, where it was asked
};

struct SlurmModuleFacts {
  std::string partition_state;  // "up", "down", "drain", "inact"; empty: no partition
  std::uint32_t time_limit_s = 0;
  bool known_to_msa = false;  // else id and kind are not known
  std::vector<std::pair<std::string, std::string>> shown =
      {};  // of `scontrol show partition`, where it was asked
};

}  // namespace msa::cli
