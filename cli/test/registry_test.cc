#include "commands/registry.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "completion/complete.h"
#include "output/listing.h"

namespace msa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Registry, ChoosesNounAndVerb) {
  const auto chosen = Choose({"job", "cancel", "7", "--now"});
  ASSERT_TRUE(chosen.ok());
  ASSERT_NE(chosen->command, nullptr);
  EXPECT_EQ(chosen->command->run, &JobCancel);
  EXPECT_THAT(chosen->rest, ElementsAre("7", "--now"));
}

TEST(Registry, KnowsTheAliases) {
  EXPECT_EQ(Choose({"run", "true"})->command->run, &JobRun);
  EXPECT_THAT(Choose({"run", "true"})->rest, ElementsAre("true"));
  EXPECT_EQ(Choose({"ps"})->command->run, &JobList);
  EXPECT_EQ(Choose({"submit", "job.sh"})->command->run, &JobSubmit);
  EXPECT_THAT(Choose({"submit", "job.sh", "--dir", "x"})->rest, ElementsAre("job.sh", "--dir", "x"));
  EXPECT_EQ(Choose({"--version"})->command->run, &Version);
  EXPECT_EQ(Choose({"nam", "rm", "fields"})->command->run, &RegionRm);
  EXPECT_THAT(Choose({"nam", "--dir", "/d", "rm", "fields"})->rest, ElementsAre("--dir", "/d", "fields"));
  EXPECT_EQ(Choose({"nam", "--help"})->noun, "region");
  EXPECT_EQ(Choose({"help", "nam", "put"})->command->run, &RegionPut);
  EXPECT_THAT(Choose({"nma", "list"}).status().message(), HasSubstr("did you mean 'nam'?"));
}

TEST(Registry, TakesTheDirectoryBeforeEveryCommand) {
  for (const Command& command : Commands()) {
    Args args = {"--dir", "/d", std::string(command.noun)};
    if (!command.verb.empty()) args.emplace_back(command.verb);
    args.emplace_back("word");
    const auto chosen = Choose(args);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->command->run, command.run);
    EXPECT_THAT(chosen->rest, ElementsAre("--dir", "/d", "word"));
  }
  EXPECT_THAT(Choose({"--dir=/d", "job", "list"})->rest, ElementsAre("--dir=/d"));
  EXPECT_THAT(Choose({"job", "--dir", "/d", "list", "-a"})->rest, ElementsAre("--dir", "/d", "-a"));
  EXPECT_THAT(Choose({"run", "echo", "--dir", "x"})->rest, ElementsAre("echo", "--dir", "x"));
  EXPECT_EQ(Choose({"--dir", "/d", "--version"})->command->run, &Version);
  EXPECT_EQ(Choose({"--dir", "/d", "help"})->command, nullptr);
  EXPECT_THAT(Choose({"--dir"}).status().message(), HasSubstr("--dir needs a value"));
}

TEST(Registry, TakesTheBackendBeforeEveryCommandThatHasOne) {
  EXPECT_THAT(Choose({"--backend", "slurm", "job", "wait", "7"})->rest,
              ElementsAre("--backend", "slurm", "7"));
  EXPECT_THAT(Choose({"--backend=slurm", "node", "show", "cn0"})->rest,
              ElementsAre("--backend=slurm", "cn0"));
  EXPECT_THAT(Choose({"job", "--backend", "slurm", "--dir=/d", "logs", "7"})->rest,
              ElementsAre("--backend", "slurm", "--dir=/d", "7"));
  EXPECT_EQ(FindGlobal("--backend=msa")->name, "--backend");
  EXPECT_EQ(FindGlobal("--backends"), nullptr);
  EXPECT_EQ(FindGlobal(""), nullptr);
  for (const GlobalOption& option : GlobalOptions())
    EXPECT_THAT(Overview(""), HasSubstr(std::string(option.name)));
}

TEST(Registry, NamesTheNearestNounAndVerb) {
  const auto noun = Choose({"jbo", "list"});
  EXPECT_EQ(ExitCodeOf(noun.status().code()), 2);
  EXPECT_THAT(noun.status().message(), HasSubstr("did you mean 'job'?"));
  const auto verb = Choose({"job", "cancle"});
  EXPECT_EQ(ExitCodeOf(verb.status().code()), 2);
  EXPECT_THAT(verb.status().message(), HasSubstr("did you mean 'cancel'?"));
  EXPECT_THAT(Choose({"job"}).status().message(), HasSubstr("needs a verb"));
}

TEST(Registry, TurnsHelpIntoTheCommandsOwn) {
  EXPECT_EQ(Choose({})->command, nullptr);
  EXPECT_EQ(Choose({"help"})->command, nullptr);
  EXPECT_EQ(Choose({"job", "--help"})->noun, "job");
  const auto chosen = Choose({"help", "job", "list"});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->command->run, &JobList);
  EXPECT_THAT(chosen->rest, ElementsAre("--help"));
  for (const Command& command : Commands())
    EXPECT_THAT(Overview(""), HasSubstr(std::string(command.summary)));
  EXPECT_THAT(Overview("node"), HasSubstr("node drain"));
}

TEST(Registry, MapsErrorsToTheDocumentedExitCodes) {
  EXPECT_EQ(ExitCodeOf(Code::kOk), 0);
  EXPECT_EQ(ExitCodeOf(Code::kInternal), 1);
  EXPECT_EQ(ExitCodeOf(Code::kResourceExhausted), 5);
  EXPECT_EQ(ExitCodeOf(Code::kInvalidArgument), 2);
  EXPECT_EQ(ExitCodeOf(Code::kNotFound), 3);
  EXPECT_EQ(ExitCodeOf(Code::kPermissionDenied), 4);
  EXPECT_EQ(ExitCodeOf(Code::kUnauthenticated), 4);
  EXPECT_EQ(ExitCodeOf(Code::kOutOfRange), 5);
  EXPECT_EQ(ExitCodeOf(Code::kDeadlineExceeded), 6);
  EXPECT_EQ(ExitCodeOf(Code::kAlreadyExists), 7);
  EXPECT_EQ(ExitCodeOf(Code::kFailedPrecondition), 7);
  EXPECT_EQ(ExitCodeOf(Code::kAborted), 7);
  EXPECT_EQ(ExitCodeOf(Code::kUnavailable), 8);
}

// Formats named in a sentence: "table, json or yaml (default: table)".
std::vector<std::string> NamedIn(const std::string& help) {
  std::vector<std::string> out;
  for (const std::string& name : FormatNames())
    if (help.find(name + ",") != std::string::npos || help.find(name + " or ") != std::string::npos ||
        help.find("or " + name + " ") != std::string::npos)
      out.push_back(name);
  return out;
}

TEST(Registry, EveryFormatThatAHelpNamesIsTakenAndNoOther) {
  std::size_t with_formats = 0;
  for (const Command& command : Commands()) {
    const auto table = TableOf(command);
    ASSERT_TRUE(table);
    const auto format = std::find_if(table->options.begin(), table->options.end(),
                                     [](const OptionSpec& option) { return option.name == "format"; });
    if (format == table->options.end()) continue;
    ++with_formats;
    const std::vector<std::string> named = NamedIn(format->help);
    EXPECT_GE(named.size(), 3u) << table->command << ": " << format->help;
    for (const std::string& name : FormatNames()) {
      // The help is asked for, so that a format that is taken leads to nothing but the help.
      testing::internal::CaptureStdout();
      const Result<int> result = command.run({"--format", name, "--help"});
      testing::internal::GetCapturedStdout();
      const bool is_named = std::find(named.begin(), named.end(), name) != named.end();
      EXPECT_EQ(result.ok(), is_named) << table->command << " --format " << name;
      if (!result.ok()) {
        EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
        EXPECT_THAT(result.status().message(), HasSubstr("expected table, "));
      }
    }
  }
  EXPECT_GE(with_formats, 14u);
}

}  // namespace
}  // namespace msa::cli
