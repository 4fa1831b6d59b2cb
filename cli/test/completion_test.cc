#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/registry.h"
#include "completion/complete.h"

namespace msa::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A system of two modules, three nodes and two jobs, one of which has ended.
class Completing : public testing::Test {
 protected:
  std::vector<std::string> Complete(std::vector<std::string> words) {
    asked_.clear();
    const Completion out = cli::Complete(words, [this](const Wanted& wanted) { return Answer(wanted); });
    also_ = out.also;
    std::vector<std::string> texts;
    for (const Candidate& candidate : out.candidates) texts.push_back(candidate.text);
    return texts;
  }
  std::vector<Candidate> Answer(const Wanted& wanted) {
    asked_ = wanted.dir.empty() ? "default" : wanted.dir;
    if (!wanted.backend.empty()) asked_ += "/" + wanted.backend;
    switch (wanted.what) {
      case Wanted::What::kModules:
        return {{"cluster", ""}, {"booster", ""}};
      case Wanted::What::kNodes:
        return {{"cn0", ""}, {"cn1", ""}, {"bn0", ""}};
      case Wanted::What::kJobs:
        return {{"1", ""}, {"12", ""}};
      case Wanted::What::kLiveJobs:
        return {{"12", ""}};
      case Wanted::What::kDaemons:
        return {{"controller", ""}};
      case Wanted::What::kGrants:
        return {{"3", ""}};
      case Wanted::What::kRegions:
        return {{"fields", ""}, {"table", ""}};
    }
    return {};
  }
  std::string asked_;  // directory of the system that was asked, "" if none was
  Also also_ = Also::kNothing;
};

TEST_F(Completing, EveryCommandTellsItsOptionsWithoutBeingRun) {
  for (const Command& command : Commands()) {
    const std::optional<OptionTable> table = TableOf(command);
    ASSERT_TRUE(table) << command.noun << " " << command.verb;
    EXPECT_THAT(table->command, HasSubstr("msactl "));
    ASSERT_FALSE(table->options.empty());
    EXPECT_EQ(table->options[0].name, "help");
    for (const OptionSpec& option : table->options) EXPECT_FALSE(option.set) << option.name;
  }
}

TEST_F(Completing, AProbeEndsWithItsScope) {
  OptionParser parser("msactl test", "", "");
  {
    const OptionProbe probe;
    EXPECT_EQ(parser.Parse({"x"}).status().code(), Code::kAborted);
    EXPECT_EQ(probe.table()->command, "msactl test");
  }
  EXPECT_THAT(*parser.Parse({"x"}), ElementsAre("x"));
}

TEST_F(Completing, KnowsNounsVerbsAndHelp) {
  EXPECT_THAT(Complete({"mo"}), ElementsAre("module"));
  EXPECT_THAT(Complete({"node", ""}), ElementsAre("list", "show", "drain", "resume"));
  EXPECT_THAT(Complete({"help", "node", "d"}), ElementsAre("drain"));
  EXPECT_THAT(Complete({"nam", "res"}), ElementsAre("resize", "restore"));
  EXPECT_THAT(Complete({"help", "nam", "fs"}), ElementsAre("fsck"));
  EXPECT_THAT(Complete({"nod", "show", ""}), IsEmpty());
  EXPECT_THAT(Complete({"-"}), ElementsAre("--help", "--version", "--dir", "--server", "--backend"));
  EXPECT_THAT(Complete({}), IsEmpty());
}

TEST_F(Completing, KnowsOptionsAndTheirValuesInEverySpelling) {
  EXPECT_THAT(Complete({"job", "list", "--form"}), ElementsAre("--format"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run", "-m", "cl"},
                                                {"run", "--module", "cl"},
                                                {"job", "run", "-v", "-m", "cl"}})
    EXPECT_THAT(Complete(words), ElementsAre("cluster"));
  EXPECT_THAT(Complete({"run", "--module=cl"}), ElementsAre("--module=cluster"));
  EXPECT_THAT(Complete({"run", "-mcl"}), ElementsAre("-mcluster"));
  EXPECT_THAT(Complete({"run", "--open-mode=a"}), ElementsAre("--open-mode=append"));
  EXPECT_THAT(Complete({"run", "--kill-on-bad-exit="}),
              ElementsAre("--kill-on-bad-exit=0", "--kill-on-bad-exit=1"));
  EXPECT_THAT(Complete({"run", "-n", ""}), IsEmpty()) << "a number";
  EXPECT_THAT(Complete({"run", "-l", "-q", "--mod"}), ElementsAre("--module"));
}

TEST_F(Completing, KnowsOperandsByTheUsage) {
  EXPECT_THAT(Complete({"module", "show", "b"}), ElementsAre("booster"));
  EXPECT_THAT(Complete({"module", "show", "cluster", ""}), IsEmpty()) << "one only";
  EXPECT_THAT(Complete({"node", "drain", "--reason", "cn", "c"}), ElementsAre("cn0", "cn1"));
  EXPECT_THAT(Complete({"node", "drain", "cn0", "c"}), ElementsAre("cn1"));
  EXPECT_THAT(Complete({"run", "-w", "cn0,c"}), ElementsAre("cn0,cn1"));
  EXPECT_THAT(Complete({"job", "show", ""}), ElementsAre("1", "12"));
  EXPECT_THAT(Complete({"alloc", "release", ""}), ElementsAre("3"));
  EXPECT_THAT(Complete({"run", "--propagate=NOF"}), ElementsAre("--propagate=NOFILE"));
  EXPECT_THAT(Complete({"module", "topology", "-f", ""}), ElementsAre("table", "json", "yaml"));
  EXPECT_THAT(Complete({"job", "cancel", ""}), ElementsAre("12"));
  EXPECT_THAT(Complete({"job", "signal", "USR"}), ElementsAre("USR1", "USR2"));
  EXPECT_THAT(Complete({"job", "signal", "USR1", ""}), ElementsAre("12"));
  EXPECT_THAT(Complete({"region", "show", "f"}), ElementsAre("fields"));
  EXPECT_THAT(Complete({"nam", "rm", "fields", ""}), ElementsAre("table"));
  EXPECT_THAT(Complete({"region", "put", "data", "t"}), ElementsAre("table"));
  Complete({"region", "put", ""});
  EXPECT_EQ(also_, Also::kFiles);
  Complete({"region", "snapshot", "fields", ""});
  EXPECT_EQ(also_, Also::kDirectories);
  EXPECT_THAT(Complete({"region", "create", "x", "--placement", "s"}), ElementsAre("spread"));
  EXPECT_THAT(Complete({"region", "create", "x", "--node", "cn0,b"}), ElementsAre("cn0,bn0"));
  EXPECT_THAT(Complete({"cluster", "logs", ""}), ElementsAre("controller"));
}

TEST_F(Completing, LeavesProgramsAndTheirArgumentsToTheShell) {
  EXPECT_THAT(Complete({"run", "-n", "2", "a"}), IsEmpty());
  EXPECT_EQ(also_, Also::kCommands);
  EXPECT_THAT(Complete({"run", "a", "--mod"}), IsEmpty()) << "an option of the program";
  EXPECT_EQ(also_, Also::kFiles);
  EXPECT_THAT(Complete({"run", "a", ":", "--mod"}), ElementsAre("--module"));
  EXPECT_THAT(Complete({"run", "a", ":", ""}), IsEmpty());
  EXPECT_EQ(also_, Also::kCommands);
  Complete({"run", "--output", ""});
  EXPECT_EQ(also_, Also::kFiles);
  Complete({"run", "--dir="});
  EXPECT_EQ(also_, Also::kDirectories);
}

TEST_F(Completing, KnowsSubmissionsAndOffersNothingThatIsIgnored) {
  EXPECT_THAT(Complete({"submit", "-p", "cl"}), ElementsAre("cluster"));
  EXPECT_THAT(Complete({"submit", "-n", "2", ":", "--partition=b"}), ElementsAre("--partition=booster"));
  EXPECT_THAT(Complete({"job", "submit", "--dep"}), ElementsAre("--dependency"));
  EXPECT_THAT(Complete({"submit", "--kill-on-invalid-dep="}),
              ElementsAre("--kill-on-invalid-dep=yes", "--kill-on-invalid-dep=no"));
  EXPECT_THAT(Complete({"submit", "--acc"}), IsEmpty());
  Complete({"submit", ""});
  EXPECT_EQ(also_, Also::kFiles);
  EXPECT_THAT(Complete({"job", "history", "--s"}),
              testing::UnorderedElementsAre("--server", "--since", "--state"));
  EXPECT_THAT(Complete({"job", "history", "--state", "FAI"}), ElementsAre("FAILED"));
  EXPECT_THAT(Complete({"job", "history", "--state", "RUN"}), IsEmpty());
}

TEST_F(Completing, AsksTheSystemThatTheLineNames) {
  Complete({"module", "show", ""});
  EXPECT_EQ(asked_, "default");
  Complete({"module", "show", "--dir", "/a", ""});
  EXPECT_EQ(asked_, "/a");
  Complete({"run", "--dir=/b", "-m", "x", "a", ":", "-m", ""});
  EXPECT_EQ(asked_, "/b");
  Complete({"job", "list", "--"});
  EXPECT_EQ(asked_, "");
}

TEST_F(Completing, KnowsOptionsBeforeTheCommandAndBetweenItsWords) {
  EXPECT_THAT(Complete({"--b"}), ElementsAre("--backend"));
  EXPECT_THAT(Complete({"--backend", ""}), ElementsAre("msa", "slurm", "auto"));
  EXPECT_THAT(Complete({"--backend=s"}), ElementsAre("--backend=slurm"));
  EXPECT_THAT(Complete({"--backend", "slurm", "mo"}), ElementsAre("module"));
  EXPECT_THAT(Complete({"--backend=slurm", "--dir", "/d", "module", "sh"}), ElementsAre("show"));
  EXPECT_THAT(Complete({"job", "--b"}), ElementsAre("--backend"));
  EXPECT_THAT(Complete({"job", "--backend", "s"}), ElementsAre("slurm"));
  EXPECT_THAT(Complete({"job", "--backend", "slurm", "hist"}), ElementsAre("history"));
  EXPECT_THAT(Complete({"job", "wait", "--back"}), ElementsAre("--backend"));
  EXPECT_THAT(Complete({"run", "--backend", "a"}), ElementsAre("auto"));
  EXPECT_THAT(Complete({"--backend", "slurm", "help", "no"}), ElementsAre("node"));
  Complete({"--dir", ""});
  EXPECT_EQ(also_, Also::kDirectories);
}

TEST_F(Completing, AsksTheBackendThatTheLineNames) {
  EXPECT_THAT(Complete({"--backend", "slurm", "job", "cancel", ""}), ElementsAre("12"));
  EXPECT_EQ(asked_, "default/slurm");
  Complete({"job", "--backend=msa", "show", ""});
  EXPECT_EQ(asked_, "default/msa");
  Complete({"module", "show", "--backend", "slurm", "--dir", "/a", ""});
  EXPECT_EQ(asked_, "/a/slurm");
  Complete({"run", "--backend=slurm", "-m", "x", "a", ":", "-m", ""});
  EXPECT_EQ(asked_, "default/slurm");
}

TEST_F(Completing, HasAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(std::string(CompletionScript(shell)), HasSubstr("completion words --"));
  EXPECT_EQ(CompletionScript("tcsh"), "");
}

}  // namespace
}  // namespace msa::cli
