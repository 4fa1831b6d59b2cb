#pragma once
// Plays slurmstepd with msa's plugin, for job daemons of a JobdHarness: forks the tasks of a step, lets each
// join its job daemon as task_init does, and tells their ends by the node daemon's link.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "msa/base/slurm_messages.h"

#include "jobd_harness.h"

namespace msa::jobd {

struct SlurmStepSpec {
  std::uint32_t step = 0;
  std::vector<std::string> rank_node;                         // node of each rank
  std::vector<std::string> argv;                              // of all, but those of
  std::map<std::uint32_t, std::vector<std::string>> argv_of;  // these ranks
  std::map<std::uint32_t, std::uint64_t> component_of;        // component job of these ranks; others: 7
  std::uint32_t ntasks = 0;                                   // as the tasks count them; 0: rank_node's
  std::vector<std::string> env;                               // besides the test's own
  bool tell_ends = true;                                      // false: the node daemon is away
};

class SlurmStep {
 public:
  SlurmStep(JobdHarness& job, SlurmStepSpec spec);
  ~SlurmStep();
  SlurmStep(const SlurmStep&) = delete;
  SlurmStep& operator=(const SlurmStep&) = delete;

  void Start();
  void StartRank(std::uint32_t rank);
  // Until all that were started have ended and the step's end was told. False after 30 s.
  bool UntilOver();
  // Collects what has ended, and tells. True once nothing runs.
  bool Poll();
  void Kill(std::uint32_t rank, int signal);
  // Its join is on its way to its job daemon, or there.
  bool Joined(std::uint32_t rank) const;
  // slurmstepd of the node dies.
  void EndStepOn(const std::string& node);

  // Exit code, or 128 + signal; -1: it runs.
  std::map<std::uint32_t, int> codes;
  std::string Out(std::uint32_t rank) const { return Read("out", rank); }
  std::string Err(std::uint32_t rank) const { return Read("err", rank); }
  std::string AllErr() const;

 private:
  std::string Path(const char* stream, std::uint32_t rank) const;
  std::string Read(const char* stream, std::uint32_t rank) const;
  [[noreturn]] void BeTask(std::uint32_t rank);

  JobdHarness& job_;
  SlurmStepSpec spec_;
  std::map<std::uint32_t, pid_t> pids_;
  bool told_ = false;
};

}  // namespace msa::jobd
