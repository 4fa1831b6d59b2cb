// Ranks that die together, in a fence and around it: libpmix 4.2.2 would work on memory that it has freed
// (registration.h says why it does not here).
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

constexpr std::uint32_t kRanks = 8;

// What is freed is overwritten in the job daemons that start meanwhile: using it is their death.
class FreedIsGarbage {
 public:
  FreedIsGarbage() { ::setenv("MALLOC_PERTURB_", "165", 1); }
  ~FreedIsGarbage() { ::unsetenv("MALLOC_PERTURB_"); }
  FreedIsGarbage(const FreedIsGarbage&) = delete;
  FreedIsGarbage& operator=(const FreedIsGarbage&) = delete;
};

struct Death {
  wire::KillPolicy policy = wire::KillPolicy::kMpi;
  std::uint32_t outside = kRanks;  // every so many ranks one stays out of the fence
  bool by_cancel = false;          // by the job daemon; else all at once, in random order
  std::size_t nodes = 1;
};

// googletest would print the bytes, padding included, into the test's name.
void PrintTo(const Death& death, std::ostream* out) { *out << death.nodes << " nodes"; }

// "MpiEvery4thOutsideByCancelOn2Nodes"
std::string NameOf(const ::testing::TestParamInfo<Death>& info) {
  const char* const policies[] = {"Mpi", "Always", "Never"};
  const Death& death = info.param;
  return fmt::format("{}Every{}thOutside{}On{}Nodes", policies[static_cast<int>(death.policy)], death.outside,
                     death.by_cancel ? "ByCancel" : "ByKill", death.nodes);
}

class JobdDeaths : public ::testing::TestWithParam<Death> {
 protected:
  static std::vector<pid_t> Pids(const JobdHarness& job) {
    std::vector<pid_t> pids;
    for (const wire::Output& record : job.records) {
      std::istringstream in(record.data);
      std::string up, of;
      pid_t pid = 0;
      std::uint32_t size = 0;
      while (in >> up >> pid >> of >> size) {
        EXPECT_EQ(size, kRanks);
        pids.push_back(pid);
      }
    }
    return pids;
  }

  static std::string Story(const JobdHarness& job) {
    std::string out = "notices:\n" + job.Notices() + "job daemons that failed:\n" + job.BadEnds();
    for (const wire::MemberFailed& failure : job.failures) out += "a member failed: " + failure.reason + "\n";
    return out + job.Logs();
  }
};

TEST_P(JobdDeaths, LeaveTheJobDaemonUnharmed) {
  const FreedIsGarbage garbage;
  const Death& death = GetParam();
  std::minstd_rand random(7);
  for (int round = 0; round < 8; ++round) {
    std::vector<NodeSpec> nodes = {{"cn0", "cluster", 0, kRanks}};
    if (death.nodes == 2) nodes.push_back({"bn0", "booster", 1, kRanks});
    JobdHarness job(nodes);
    ASSERT_NO_FATAL_FAILURE(job.WarmUp());
    wire::App app;
    app.argv = {MSA_TEST_PMIX_CLIENT, "gather", std::to_string(death.outside)};
    app.ntasks = kRanks;
    RunSpec spec{.apps = {app}, .kill_policy = death.policy};
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      spec.rank_node.push_back(nodes[rank * death.nodes / kRanks].name);
    job.Launch(spec);
    std::vector<pid_t> pids;
    ASSERT_TRUE(job.Until([&] { return (pids = Pids(job)).size() == kRanks && job.started; }))
        << "round " << round << "\n"
        << job.AllOut() << Story(job);
    if (death.by_cancel) {
      job.ToHead(wire::CancelJob{wire::JobState::kCancelled, 0, "enough"});
    } else {
      std::shuffle(pids.begin(), pids.end(), random);
      for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    }
    ASSERT_TRUE(job.UntilOver()) << "round " << round << ": a job daemon hangs\n" << Story(job);
    // A cancel without grace sends both signals; which of them is a task's death is chance.
    const bool by_term = death.by_cancel && job.exit->exit_code == 128 + SIGTERM;
    EXPECT_TRUE(by_term || job.exit->exit_code == 128 + SIGKILL)
        << "round " << round << ": " << job.exit->exit_code << " " << job.exit->message << "\n"
        << Story(job);
    EXPECT_TRUE(job.BadEnds().empty()) << "round " << round << "\n" << Story(job);
    EXPECT_TRUE(job.failures.empty()) << "round " << round << "\n" << Story(job);
  }
}

INSTANTIATE_TEST_SUITE_P(AroundAFence, JobdDeaths,
                         ::testing::Values(Death{wire::KillPolicy::kMpi, kRanks, false},
                                           Death{wire::KillPolicy::kNever, kRanks, false},
                                           Death{wire::KillPolicy::kAlways, 2, false},
                                           Death{wire::KillPolicy::kMpi, kRanks, true},
                                           Death{wire::KillPolicy::kNever, 2, true},
                                           Death{wire::KillPolicy::kMpi, 4, false, 2},
                                           Death{wire::KillPolicy::kNever, 4, true, 2}),
                         NameOf);

}  // namespace
}  // namespace msa::jobd
