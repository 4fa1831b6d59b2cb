#include "munged.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "msa/adapters/munge/munge.h"

extern char** environ;

namespace msa::test {
namespace {

std::filesystem::path NewDirectory() {
  std::string path = (std::filesystem::temp_directory_path() / "munged.XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path;
  return path;
}

}  // namespace

Munged::Munged(char key_byte) : directory_(NewDirectory()) {
  const std::string key = directory_ / "key";
  std::ofstream(key) << std::string(128, key_byte);
  std::filesystem::permissions(key, std::filesystem::perms::owner_read);
  std::vector<std::string> words{"munged",
                                 "--foreground",
                                 "--force",  // the temporary directory may be writable for others
                                 "--num-threads=1",
                                 "--key-file=" + key,
                                 "--socket=" + socket(),
                                 "--pid-file=" + (directory_ / "pid").string(),
                                 "--log-file=" + (directory_ / "log").string(),
                                 "--seed-file=" + (directory_ / "seed").string()};
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
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!MungeEncode("ready", {.socket = socket()}).ok()) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::ifstream text(output);
      ADD_FAILURE() << "munged is not ready: " << std::string(std::istreambuf_iterator<char>(text), {});
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Munged::~Munged() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace msa::test
