// Many spawns of one job through libmsampi, each onto nodes that are lent for it and given back: nothing of
// them stays in the job daemon or the controller.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kSpawns = 200;
// Caches, pools and the heap have their size by then.
constexpr int kSettled = 20;
// Of one spawn, however loaded the machine is: the whole has no limit of its own.
constexpr auto kRoundLimit = 60s;
// 128 KiB are usual over the 180 spawns: 2 MiB are 11 KiB of each, less than what one namespace takes.
constexpr std::size_t kJobdKib = 2048;
// The last 256 namespaces of a job are remembered, and SQLite's page cache fills up.
constexpr std::size_t kControllerKib = 4096;

struct Footprint {
  std::size_t files = 0;
  std::size_t resident_kib = 0;
};

Footprint Measure(pid_t pid) {
  Footprint footprint;
  std::error_code error;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error))
    ++footprint.files;
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;)
    if (word == "VmRSS:") status >> footprint.resident_kib;
  return footprint;
}

pid_t ParentOf(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  pid_t parent = 0;
  for (std::string word; status >> word;)
    if (word == "PPid:") status >> parent;
  return parent;
}

class ManySpawns : public SharedCluster {
 protected:
  // Until the parents have told of so many spawns; false if one of them takes too long.
  static bool UntilSpawns(Process& job, std::size_t count) {
    const auto told = [&] {
      std::size_t lines = 0;
      for (const std::string& line : Lines(job.out())) lines += line.starts_with("parent 0: ok remote=2 ");
      return lines;
    };
    while (told() < count) {
      const std::size_t before = told();
      if (!job.ReadUntil([&] { return told() > before; }, kRoundLimit)) return false;
    }
    return true;
  }
  // The job daemon above rank 0.
  static pid_t JobDaemonOf(const std::string& program) {
    const auto daemons = cluster_->JobDaemons("cn0");
    for (const auto& process : cluster_->Processes()) {
      if (process.command.find(program) == std::string::npos) continue;
      const pid_t parent = ParentOf(process.pid);
      if (std::find(daemons.begin(), daemons.end(), parent) != daemons.end()) return parent;
    }
    return 0;
  }
};

TEST_F(ManySpawns, TwoHundredOfOneJobLeaveNoMemoryFilesOrProcesses) {
  const std::string program = ProgramPath("mpi_spawn_plan");
  Command command =
      cluster_->Msactl({"run", "-m", "cluster", "-w", "cn0", "-n", "1", program, "--maxprocs", "2", "--info",
                        "arch=booster", "--info", "soft=1:2", "--times", std::to_string(kSpawns)});
  command.timeout = kRoundLimit * kSpawns;
  Process job(std::move(command));
  ASSERT_TRUE(UntilSpawns(job, kSettled)) << job.out() << job.err();
  const pid_t jobd = JobDaemonOf(program);
  const pid_t controller = cluster_->Daemon("controller");
  ASSERT_NE(jobd, 0);
  const Footprint jobd_early = Measure(jobd);
  const Footprint controller_early = Measure(controller);
  ASSERT_TRUE(UntilSpawns(job, kSpawns - 1)) << job.out() << job.err();
  const Footprint jobd_late = Measure(jobd);
  const Footprint controller_late = Measure(controller);
  // The pools of the two nodes may have grown; the job has its own, the children's and one that leaves.
  EXPECT_LE(cluster_->JobDaemons().size(), 40U);
  const Outcome outcome = job.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  RecordProperty("jobd_kib", fmt::format("{} to {}", jobd_early.resident_kib, jobd_late.resident_kib));
  RecordProperty("controller_kib",
                 fmt::format("{} to {}", controller_early.resident_kib, controller_late.resident_kib));
  // 8: the last spawn's own, as it comes and goes.
  EXPECT_LE(jobd_late.files, jobd_early.files + 8);
  EXPECT_LE(controller_late.files, controller_early.files + 8);
  EXPECT_LE(jobd_late.resident_kib, jobd_early.resident_kib + kJobdKib);
  EXPECT_LE(controller_late.resident_kib, controller_early.resident_kib + kControllerKib);
}

}  // namespace
}  // namespace msa::e2e
