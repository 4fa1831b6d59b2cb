// Bad input: a text with the value and the remedy, the documented exit code, nothing left behind.
#include <sys/stat.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Errors : public SharedCluster {
 protected:
  // The last line of stderr holds all of `parts`, and the exit code is `code`.
  static void ExpectRefusal(const Outcome& outcome, int code, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.code, code) << outcome.Text();
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_THAT(outcome.err, Not(HasSubstr("terminate called")));
  }
};

TEST_F(Errors, AnUnknownModuleIsAnsweredWithTheNearestName) {
  ExpectRefusal(Run({"run", "-m", "boster", "true"}), 3, {"'boster'", "booster"});
}

TEST_F(Errors, AnUnknownNodeIsAnsweredWithTheNearestName) {
  ExpectRefusal(Run({"run", "-m", "booster", "-w", "bn9", "true"}), 3, {"bn9", "bn0"});
  ExpectRefusal(Run({"node", "show", "cn7"}), 3, {"cn7", "cn0"});
}

TEST_F(Errors, MoreNodesThanExistCanNeverBePlacedAndTheNumbersAreNamed) {
  ExpectRefusal(Run({"run", "-m", "booster", "-N", "12", "true"}), 5, {"booster", "12", "2"});
}

TEST_F(Errors, MoreTasksThanCoresCanNeverBePlacedAndTheNumbersAreNamed) {
  ExpectRefusal(Run({"run", "-m", "cluster", "-n", "100", "true"}), 5, {"100", "8"});
}

TEST_F(Errors, MoreMemoryThanANodeHasCanNeverBePlaced) {
  ExpectRefusal(Run({"run", "--mem", "900T", "true"}), 5, {"memory"});
}

TEST_F(Errors, AnOptionThatIsNoneIsAUsageError) {
  ExpectRefusal(Run({"run", "--ntaks", "2", "true"}), 2, {"--ntaks", "--ntasks"});
  ExpectRefusal(Run({"run", "-n", "two", "true"}), 2, {"two"});
  ExpectRefusal(Run({"run", "-n", "0", "true"}), 2, {"0"});
  ExpectRefusal(Run({"run", "-N", "3-2", "true"}), 2, {"3-2"});
  ExpectRefusal(Run({"run"}), 2, {"program"});
  ExpectRefusal(Run({"jobs"}), 2, {"jobs", "job"});
  ExpectRefusal(Run({"job", "sow"}), 2, {"sow", "show"});
  ExpectRefusal(Run({"job", "list", "-f", "jsn"}), 2, {"jsn", "json"});
}

TEST_F(Errors, AJobThatDoesNotExistIsNotFound) {
  for (const char* verb : {"show", "cancel", "wait"})
    ExpectRefusal(Run({"job", verb, "987654"}), 3, {"987654"});
}

TEST_F(Errors, AJobThatHasEndedCannotBeCancelled) {
  const std::string id = Detach({"true"});
  ASSERT_EQ(Run({"job", "wait", id}).code, 0);
  const Outcome outcome = Run({"job", "cancel", id});
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(id), HasSubstr("ended")));
}

TEST_F(Errors, AnOverlongJobNameIsRefusedWithItsLimit) {
  ExpectRefusal(Run({"run", "-J", std::string(300, 'n'), "true"}), 2, {"300", "255"});
}

TEST_F(Errors, AnOverlongEnvironmentIsRefusedWithItsLimit) {
  // One string is at most 128 KiB (execve), so many of them.
  Command command = cluster_->Msactl({"run", "true"});
  for (int i = 0; i < 12; ++i) command.env["BIG" + std::to_string(i)] = std::string(100'000, 'x');
  const Outcome outcome = support::RunCommand(command);
  ExpectRefusal(outcome, 2, {"environment", "1048576"});
}

TEST_F(Errors, AReasonIsNeededToDrainAndALimitHoldsForIt) {
  EXPECT_EQ(Run({"node", "drain", "bn1"}).code, 2);
  ExpectRefusal(Run({"node", "drain", "bn1", "--reason", std::string(400, 'r')}), 2, {"255"});
  EXPECT_EQ(cluster_->Query({"node", "show", "bn1"})["drained"].text(), "false");
}

TEST_F(Errors, ASecondSystemInTheSameDirectoryIsAConflict) {
  const Outcome outcome = Run({"cluster", "up"});
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr(cluster_->dir()));
  EXPECT_EQ(Run({"run", "true"}).code, 0) << "the first system was disturbed";
}

TEST_F(Errors, FormatsOfListingsAreWellFormed) {
  for (const char* noun : {"module", "node"}) {
    const Json json = cluster_->Query({noun, "list"});
    EXPECT_EQ(json["items"].list().size(), noun == std::string("module") ? 4u : 6u);
    EXPECT_NE(json["apiVersion"].text(), "");
    EXPECT_EQ(Lines(Run({noun, "list", "-f", "csv", "--no-header"}).out).size(), json["items"].list().size());
    EXPECT_EQ(Lines(Run({noun, "list", "-f", "name"}).out).size(), json["items"].list().size());
  }
  EXPECT_THAT(Run({"module", "topology"}).out,
              AllOf(HasSubstr("cn0"), HasSubstr("bn1"), HasSubstr("dn0"), HasSubstr("nam0")));
}

TEST_F(Errors, ADescriptorThatIsClosedIsNotTakenForAnother) {
  // gRPC opens an eventfd before main: without care it becomes standard input.
  const auto with = [](const std::string& closed) {
    Command command = cluster_->Msactl({});
    command.argv = {"sh", "-c", "exec \"$0\" run -n 1 sh -c 'cat; echo end' " + closed, command.argv[0]};
    command.timeout = 60s;
    return support::RunCommand(command);
  };
  const Outcome no_input = with("<&-");
  EXPECT_EQ(no_input.code, 0) << no_input.Text();
  EXPECT_EQ(no_input.out, "end\n");
  const Outcome no_output = with("<&- >&- 2>&-");
  EXPECT_EQ(no_output.code, 0) << no_output.Text();
}

TEST_F(Errors, TheDirectoryMayStandBeforeTheCommand) {
  const support::ScratchDirectory scratch;
  const auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--dir", cluster_->dir()});
    Command command = cluster_->Msactl(arguments);
    command.env["MSA_DIR"] = scratch.path() + "/nothing";
    return support::RunCommand(command);
  };
  EXPECT_EQ(call({"status"}).code, 0) << call({"status"}).Text();
  EXPECT_EQ(call({"run", "-n", "1", "echo", "--dir"}).out, "--dir\n");
  EXPECT_EQ(call({"node", "list"}).code, 0);
  EXPECT_EQ(call({"cluster", "status"}).code, 0);
  EXPECT_EQ(call({"version"}).code, 0);
}

TEST_F(Errors, EveryCommandExplainsItselfWithoutADaemon) {
  Command command = cluster_->Msactl({"help"});
  command.env["MSA_DIR"] = cluster_->scratch().path() + "/nothing";
  EXPECT_EQ(support::RunCommand(command).code, 0);
  for (const char* name : {"run", "job list", "job show", "job cancel", "job wait", "node drain",
                           "cluster up", "module topology"}) {
    std::string noun = name;
    std::vector<std::string> arguments = {noun.substr(0, noun.find(' '))};
    if (noun.find(' ') != std::string::npos) arguments.push_back(noun.substr(noun.find(' ') + 1));
    arguments.push_back("--help");
    command.argv = cluster_->Msactl(arguments).argv;
    const Outcome outcome = support::RunCommand(command);
    EXPECT_EQ(outcome.code, 0) << name << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("usage:")) << name;
  }
}

// Without a system.

TEST(NoSystem, IsSaidWithCodeEightAndHowToStartOne) {
  const support::ScratchDirectory scratch;
  const Outcome outcome = support::RunCommand(
      {.argv = {support::BinaryPath("msactl"), "run", "true"}, .env = {{"MSA_DIR", scratch.path() + "/d"}}});
  EXPECT_EQ(outcome.code, 8) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(scratch.path()), HasSubstr("msactl cluster up")));
}

TEST(NoSystem, ATooLongDirectoryIsRefusedWithItsLengthAndLimit) {
  const support::ScratchDirectory scratch;
  const std::string dir = scratch.path() + "/" + std::string(120, 'd');
  const Outcome outcome =
      support::RunCommand({.argv = {support::BinaryPath("msactl"), "cluster", "up", "--dir", dir}});
  EXPECT_EQ(outcome.code, 2) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("107"), HasSubstr("--dir")));
  struct stat info {};
  EXPECT_NE(::stat(dir.c_str(), &info), 0) << "the directory was left behind";
}

struct BrokenTopology {
  const char* name;
  const char* text;
  std::vector<std::string> said;
};

class Topology : public testing::TestWithParam<BrokenTopology> {};

TEST_P(Topology, ThatIsBrokenIsRefusedWithLineKeyAndValue) {
  const support::ScratchDirectory scratch;
  const std::string file = scratch.Write("broken.toml", GetParam().text);
  const std::string dir = scratch.path() + "/d";
  const Outcome outcome = support::RunCommand(
      {.argv = {support::BinaryPath("msactl"), "cluster", "up", "--dir", dir, "--topology", file}});
  EXPECT_EQ(outcome.code, 2) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("broken.toml"));
  for (const std::string& part : GetParam().said) EXPECT_THAT(outcome.err, HasSubstr(part));
  struct stat info {};
  EXPECT_NE(::stat((dir + "/controller.sock").c_str(), &info), 0) << "a daemon was started";
}

INSTANTIATE_TEST_SUITE_P(
    Broken, Topology,
    testing::Values(BrokenTopology{"Syntax", "[[module]\nname = 'a'\n", {":1"}},
                    BrokenTopology{"NegativeCores",
                                   "[[module]]\nname = 'cluster'\nid = 0\nkind = "
                                   "'cluster'\n\n[[module.node]]\nnames = 'cn0'\ncores = -4\n",
                                   {":8", "cores", "-4"}},
                    BrokenTopology{"UnknownKey",
                                   "[[module]]\nname = 'cluster'\nid = 0\nkind = "
                                   "'cluster'\n\n[[module.node]]\nnames = 'cn0'\ncoers = 4\n",
                                   {":8", "coers", "cores"}},
                    BrokenTopology{"NoModules", "# nothing\n", {"module"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(NoSystem, ATopologyFileThatIsNotThereIsNamed) {
  const support::ScratchDirectory scratch;
  const Outcome outcome =
      support::RunCommand({.argv = {support::BinaryPath("msactl"), "cluster", "up", "--dir",
                                    scratch.path() + "/d", "--topology", "/no/such.toml"}});
  EXPECT_EQ(outcome.code, 3) << outcome.Text();
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("topology file"), HasSubstr("/no/such.toml"), HasSubstr("msa-topology(5)")));
}

TEST(NoSystem, ADirectoryThatIsAFileIsRefusedAndStays) {
  const support::ScratchDirectory scratch;
  const std::string file = scratch.Write("file", "mine\n");
  for (const char* verb : {"up", "down"}) {
    const Outcome outcome =
        support::RunCommand({.argv = {support::BinaryPath("msactl"), "cluster", verb, "--dir", file}});
    EXPECT_EQ(outcome.code, 2) << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(file), HasSubstr("not a directory"), Not(HasSubstr("remove"))));
  }
  EXPECT_EQ(support::ReadFile(file), "mine\n");
}

}  // namespace
}  // namespace msa::e2e
