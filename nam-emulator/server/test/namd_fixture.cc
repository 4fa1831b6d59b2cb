#include "namd_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "msa/adapters/process/files.h"

namespace msa::namd::test {

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void NamdTest::SetUp() {
  // Users of a system of root reach namd's socket in it.
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(dir_.c_str(), 0711), 0);
  }
  scratch_.Write(
      "topology.toml",
      "[[module]]\nname = \"nam\"\nid = 0\n[[module.node]]\nnames = \"nam0\"\ncores = 1\nnam = \"64M\"\n");
  controller_ = std::make_unique<FakeController>(dir_, "nam0");
}

void NamdTest::TearDown() {
  const int status = StopNamd(SIGTERM);
  if (status >= 0) {
    EXPECT_EQ(status, 0) << DescribeWaitStatus(status);
  }
  if (HasFailure()) std::fprintf(stderr, "%s\n", Log().c_str());
  controller_.reset();
}

void NamdTest::StartNamd(Start start) {
  const UniqueFd log(::open((dir_ + "/namd.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  SpawnSpec spec;
  if (start.file_size_limit != 0)
    spec.argv = {"/usr/bin/prlimit", "--fsize=" + std::to_string(start.file_size_limit)};
  for (const std::string& word :
       {std::string(MSA_TEST_NAMD), std::string("--name"), std::string("nam0"), std::string("--dir"), dir_,
        std::string("--topology"), dir_ + "/topology.toml", std::string("--fabric"), start.fabric})
    spec.argv.push_back(word);
  spec.argv.insert(spec.argv.end(), start.options.begin(), start.options.end());
  spec.env = start.env;
  spec.err = log.get();
  auto started = Spawn(spec);
  ASSERT_TRUE(started.ok()) << started.status().message();
  namd_ = std::move(*started);
}

int NamdTest::StopNamd(int signal) {
  if (namd_.pid == 0) return -1;
  SignalProcess(namd_, signal);
  std::optional<int> status;
  EXPECT_TRUE(Eventually(kLimit, [&] { return (status = ReapChild(namd_.pid)).has_value(); }));
  namd_ = {};
  return status.value_or(-1);
}

bool NamdTest::NamdEnds() {
  const pid_t pid = namd_.pid;
  if (!Eventually(kLimit, [&] { return ReapChild(pid).has_value(); })) return false;
  namd_ = {};
  return true;
}

void NamdTest::StartWithExtent() {
  StartNamd();
  ASSERT_TRUE(controller_->Connect());
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096, 4096}));
  ASSERT_TRUE(Eventually(kLimit, [&] { return Exists(FileOf(kExtent, Stage::kCommitted)); }));
}

std::string NamdTest::Log() const {
  const auto log = ReadFile(dir_ + "/namd.log", std::size_t{1} << 20);
  return log.ok() ? *log : log.status().message();
}

std::vector<std::string> NamdTest::Files() const {
  auto names = ListDirectory(backing_);
  if (!names.ok()) return {};
  std::erase_if(*names, [](const std::string& name) { return name == "system" || name == "port"; });
  return *names;
}

}  // namespace msa::namd::test
