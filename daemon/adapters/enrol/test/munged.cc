#include "munged.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "msa/adapters/munge/munge.h"
#include "msa/support/eventually.h"

extern char** environ;

namespace msa::test {

Munged::Munged(char key_byte) {
  const std::string key = directory_.Write("key", std::string(128, key_byte), 0400);
  std::vector<std::string> words{"munged",
                                 "--foreground",
                                 "--force",  // the temporary directory may be writable for others
                                 "--num-threads=1",
                                 "--key-file=" + key,
                                 "--socket=" + socket(),
                                 "--pid-file=" + directory_ / "pid",
                                 "--log-file=" + directory_ / "log",
                                 "--seed-file=" + directory_ / "seed"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const std::string output = directory_ / "output";
  ::posix_spawn_file_actions_addopen(&actions, 2, output.c_str(), O_WRONLY | O_CREAT, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 2, 1);
  int rc = ::posix_spawn(&pid_, "/usr/sbin/munged", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (rc != 0) {
    ADD_FAILURE() << "munged does not start: " << ::strerror(rc) << "; package munge";
    return;
  }
  EXPECT_TRUE(support::Eventually(std::chrono::seconds(30), "munged is ready", [&] {
    return MungeEncode("ready", {.socket = socket()}).ok();
  })) << std::ifstream(output).rdbuf();
}

Munged::~Munged() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
}

}  // namespace msa::test
