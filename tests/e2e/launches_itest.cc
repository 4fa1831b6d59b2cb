// Many launches of a 4-rank MPI program over two modules, four at a time: no hang, no lost line, no wrong
// code.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Launches : public SharedCluster {};

// What is wrong with the outcome of launch `number`; empty: nothing.
std::string Fault(int number, const Outcome& outcome) {
  std::vector<std::string> expected;
  for (int rank = 0; rank < 4; ++rank)
    expected.push_back("rank=" + std::to_string(rank) + " size=4 node=" + (rank < 2 ? "c" : "b"));
  bool whole = outcome.code == 0 && !outcome.timed_out && Lines(outcome.out).size() == 4;
  for (const std::string& text : expected) whole = whole && outcome.out.find(text) != std::string::npos;
  return whole ? "" : "launch " + std::to_string(number) + ": " + outcome.Text();
}

TEST_F(Launches, NoneHangsLosesALineOrReturnsAWrongCode) {
  const char* wanted = std::getenv("MSA_LAUNCHES");
  const int total = wanted != nullptr ? std::atoi(wanted) : 300;
  const std::string hello = ProgramPath("mpi_hello");
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::vector<std::string> faults;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      for (int number = next++; number < total; number = next++) {
        const std::string fault = Fault(
            number, Run({"run", "-m", "cluster", "-n", "2", hello, ":", "-m", "booster", "-n", "2", hello}));
        const std::lock_guard lock(mutex);
        if (!fault.empty()) faults.push_back(fault);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_TRUE(faults.empty()) << faults.size() << " of " << total << " failed, the first: " << faults[0];
  EXPECT_EQ(cluster_->SlotsUsed(), 0);
}

}  // namespace
}  // namespace msa::e2e
