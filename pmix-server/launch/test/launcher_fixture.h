#pragma once
// Real tasks of a real launcher, and what it said about them.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "msa/adapters/process/event_loop.h"
#include "msa/launch/task.h"
#include "msa/support/scratch_directory.h"

namespace msa::launch {

inline constexpr char kNamespace[] = "msa.1.1.0";

class LauncherFixture : public ::testing::Test {
 protected:
  LauncherFixture();
  ~LauncherFixture() override;

  // A task with PATH as its only variable, in the temporary directory.
  TaskSpec Task(std::vector<std::string> argv, std::uint32_t rank = 0) const;
  TaskSpec Shell(const std::string& script, std::uint32_t rank = 0) const {
    return Task({"/bin/sh", "-c", script}, rank);
  }

  // Starts and waits for on_started.
  void Start(std::vector<TaskSpec> specs);
  void StartOne(TaskSpec spec);
  // Runs the loop until `done`; false if that takes longer than `limit`.
  bool Eventually(const std::function<bool()>& done, std::chrono::seconds limit = std::chrono::seconds(20));
  // Waits for the exit of a rank. Fails the test if it does not come.
  TaskExit Exit(std::uint32_t rank = 0, const std::string& nspace = kNamespace);
  // Starts one task, waits for its end and returns its stdout.
  std::string OutputOf(TaskSpec spec);
  // KillAll and the number of survivors.
  int Kill(const std::string& nspace = "");

  using Key = std::pair<std::string, std::uint32_t>;
  support::ScratchDirectory directory_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<TaskLauncher> launcher_;
  std::map<Key, std::string> out_;
  std::map<Key, std::string> err_;
  std::map<Key, TaskExit> exits_;
  std::map<Key, std::size_t> taken_;
  std::map<Key, bool> closed_;
  std::vector<pid_t> started_;
  std::vector<StartFailure> failures_;
  std::function<void()> on_output_hook_;
};

// Neither gone nor a zombie.
bool IsAlive(pid_t pid);

}  // namespace msa::launch
