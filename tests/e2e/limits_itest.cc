// Resource limits of the caller in its tasks, as srun's --propagate; and the least that a listing can do.
#include <sys/resource.h>

#include <filesystem>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

class Limits : public SharedCluster {
 protected:
  // Soft limits of files, core (KiB) and stack (KiB), as a task of a caller with `limits` sees them.
  static Outcome Tasks(std::map<int, unsigned long> limits, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"run", "-n", "1"});
    options.insert(options.end(), {"bash", "-c", "ulimit -Sn; ulimit -Sc; ulimit -Ss"});
    Command command = cluster_->Msactl(options);
    command.limits = std::move(limits);
    return support::RunCommand(command);
  }
  static std::string Own() {
    return support::RunCommand({.argv = {"bash", "-c", "ulimit -Sn; ulimit -Sc; ulimit -Ss"}}).out;
  }
  static inline const std::map<int, unsigned long> kLow = {
      {RLIMIT_NOFILE, 123}, {RLIMIT_CORE, 0}, {RLIMIT_STACK, 4 << 20}};
};

TEST_F(Limits, OfTheCallerAreThoseOfTheTasks) {
  EXPECT_EQ(Tasks(kLow).out, "123\n0\n4096\n");
  EXPECT_EQ(Tasks(kLow, {"--propagate"}).out, "123\n0\n4096\n");
  EXPECT_EQ(Tasks({}).out, Own());
  EXPECT_EQ(Tasks({}).err, "");
}

TEST_F(Limits, AreTheDaemonsWhereTheyAreNotPropagated) {
  EXPECT_EQ(Tasks(kLow, {"--propagate=NONE"}).out, Own());
  const auto some = Lines(Tasks(kLow, {"--propagate=NOFILE,CORE"}).out);
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some[0], "123");
  EXPECT_EQ(some[1], "0");
  EXPECT_EQ(some[2], Lines(Own())[2]);
}

TEST_F(Limits, AreInheritedBySpawnedChildren) {
  Command command = cluster_->Msactl({"run", "-n", "1", ProgramPath("mpi_spawn_plan"), "--maxprocs", "1"});
  command.limits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 321}};
  const Outcome outcome = support::RunCommand(command);
  EXPECT_THAT(outcome.out, HasSubstr("child rank=0 size=1 depth=-1 tag=- files=321\n")) << outcome.Text();
}

TEST_F(Limits, ABadNameIsRefusedWithTheList) {
  const Outcome outcome = Tasks({}, {"--propagate=NOFLIE"});
  EXPECT_EQ(outcome.code, 2) << outcome.Text();
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("--propagate: 'NOFLIE'"), HasSubstr("did you mean 'NOFILE'?"),
                    HasSubstr("AS, CORE, CPU, DATA, FSIZE, MEMLOCK, NOFILE, NPROC, RSS, STACK")));
}

TEST_F(Limits, AboveTheDaemonsHardLimitAreLoweredWithANotice) {
  const auto cluster = MiniCluster::Start({.up_limits = {{RLIMIT_NOFILE, 512}}});
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  Command command = (*cluster)->Msactl({"run", "-n", "3", "bash", "-c", "ulimit -Sn"});
  command.limits = {{RLIMIT_NOFILE, 700}};
  const Outcome outcome = support::RunCommand(command);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "512\n512\n512\n");
  const auto lines = Lines(outcome.err);
  ASSERT_EQ(lines.size(), 1u) << outcome.err;
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("limit NOFILE: 700 asked, lowered to 512"), HasSubstr("--propagate")));
  const Outcome none = (*cluster)->Run({"run", "--propagate=NONE", "true"});
  EXPECT_EQ(none.err, "");
}

// ---- listings

TEST_F(Limits, AWaitingJobShowsTheNodesThatItWillGet) {
  const std::string holder =
      Detach({"-m", "cluster", "-N", "2", "-n", "2", "--exclusive", "-t", "10", "sleep", "600"});
  ASSERT_TRUE(Eventually(30s, "the cluster is taken", [&] { return JobIsIn(holder, "RUNNING"); }));
  const std::string six = Detach({"-m", "cluster", "-n", "6", "-t", "10", "true"});
  const std::string three = Detach({"-m", "cluster", "-n", "3", "-t", "10", "true"});
  EXPECT_TRUE(Eventually(30s, "it is planned", [&] { return Job(six)["nodes"].text() == "2"; }));
  EXPECT_EQ(Job(three)["nodes"].text(), "1");
  EXPECT_EQ(Run({"job", "cancel", "--now", holder, six, three}).code, 0);
}

TEST_F(Limits, EveryFormatThatAHelpNamesWorksInARunningSystem) {
  ASSERT_EQ(Run({"run", "true"}).code, 0);
  const std::vector<std::vector<std::string>> commands = {{"cluster", "status"},
                                                          {"job", "list", "-a"},
                                                          {"job", "show", "1"},
                                                          {"alloc", "list"},
                                                          {"spawn", "list"},
                                                          {"module", "list"},
                                                          {"module", "show", "dam"},
                                                          {"module", "topology"},
                                                          {"node", "list"},
                                                          {"node", "show", "cn0"},
                                                          {"node", "resume", "cn0"},
                                                          {"status"},
                                                          {"doctor"},
                                                          {"version"}};
  for (const auto& command : commands) {
    std::vector<std::string> help = {"help", command[0]};
    if (command.size() > 1) help.push_back(command[1]);
    const std::string text = Run(help).out;
    const std::size_t at = text.find("--format");
    ASSERT_NE(at, std::string::npos) << text;
    const std::string sentence = text.substr(at, text.find("(default: table)", at) - at);
    int taken = 0;
    for (const char* format : {"table", "wide", "json", "yaml", "csv", "name"}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"-f", format});
      const Outcome outcome = Run(arguments);
      if (sentence.find(std::string(" ") + format) != std::string::npos) {
        ++taken;
        EXPECT_EQ(outcome.code, 0) << testing::PrintToString(arguments) << outcome.Text();
      } else {
        EXPECT_EQ(outcome.code, 2) << testing::PrintToString(arguments) << outcome.Text();
      }
    }
    EXPECT_GE(taken, 3) << text;
  }
}

// ---- whose system it is

TEST(OtherUsers, RootIsToldToRunAsTheOwnerOfTheSystem) {
  // As root, in CI, deploy/test fails on a skip.
  if (::geteuid() != 0) GTEST_SKIP() << "only root may go into another user's directory";
  const support::ScratchDirectory bin;
  support::MiniClusterOptions options;
  options.uid = 65534;
  options.bin = bin.path();
  fs::permissions(bin.path(), fs::perms(0755));
  for (const char* name : {"msactl", "msa-controllerd", "msa-noded", "msa-jobd", "msa-exec", "msa-namd"})
    fs::copy(support::BinaryPath(name), bin.path() + "/" + name);
  const auto cluster = MiniCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  Command command = (*cluster)->Msactl({"run", "true"});
  command.uid = 0;
  for (const bool detach : {false, true}) {
    if (detach) command.argv.insert(command.argv.begin() + 2, "--detach");
    const Outcome outcome = support::RunCommand(command);
    EXPECT_EQ(outcome.code, 4) << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("user root (uid 0)"), HasSubstr("user nobody (uid 65534)"),
                                   HasSubstr("sudo -u nobody msactl")));
  }
  EXPECT_EQ((*cluster)->Run({"run", "true"}).code, 0) << "its owner";
  EXPECT_EQ((*cluster)->Query({"job", "list", "-a"})["items"].list().size(), 1u) << "nothing was queued";

  // Nor does root get a step in a job of the owner: it is refused, not left waiting for the job's end.
  ASSERT_EQ((*cluster)->Run({"job", "alloc", "--no-shell", "-n", "1"}).code, 0);
  Command step = (*cluster)->Msactl({"run", "--job", "2", "true"});
  step.uid = 0;
  step.timeout = 60s;
  const Outcome refused = support::RunCommand(step);
  EXPECT_EQ(refused.code, 4) << refused.Text();
  EXPECT_EQ((*cluster)->Run({"job", "cancel", "--now", "2"}).code, 0);
}

TEST(DaemonsByHand, LeaveADirectoryThatIsThereAsItIs) {
  const support::ScratchDirectory scratch;
  const std::string dir = scratch.path() + "/open";
  fs::create_directory(dir);
  fs::permissions(dir, fs::perms(0777));
  const std::string topology = scratch.Write("t.toml",
                                             "[[module]]\nname = \"c\"\nid = 0\n[[module.node]]\n"
                                             "names = \"cn0\"\ncores = 1\n");
  const std::vector<std::string> where = {"--dir", dir, "--topology", topology};
  for (const char* daemon : {"msa-controllerd", "msa-noded"}) {
    std::vector<std::string> argv = {support::BinaryPath(daemon)};
    argv.insert(argv.end(), where.begin(), where.end());
    if (std::string(daemon) == "msa-noded") argv.insert(argv.end(), {"--name", "cn0"});
    const Outcome outcome = support::RunCommand({.argv = argv, .timeout = 60s});
    EXPECT_EQ(outcome.code, 2) << daemon << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(dir), HasSubstr("has mode 0777"), HasSubstr("chmod 7")));
    EXPECT_EQ(fs::status(dir).permissions(), fs::perms(0777)) << daemon << " has changed its mode";
    EXPECT_TRUE(fs::is_empty(dir));
  }
}

}  // namespace
}  // namespace msa::e2e
