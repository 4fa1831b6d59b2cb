#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "msa/launch/output_file.h"

#include "elf_needed.h"
#include "launcher_fixture.h"

namespace msa::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Program : public ::testing::Test {
 protected:
  Lookup Find(const std::string& name, const std::string& path = "/usr/bin:/bin") {
    return FindProgram({name, path, directory_.path()});
  }
  support::ScratchDirectory directory_;
};

TEST_F(Program, IsFoundInPathAsAShellFindsIt) {
  ASSERT_EQ(::mkdir((directory_.path() + "/bin").c_str(), 0755), 0);
  const std::string tool = directory_.Write("bin/tool", "#!/bin/sh\n", 0755);
  EXPECT_EQ(Find("tool", "/nowhere:" + directory_.path() + "/bin").path, tool);
  EXPECT_EQ(Find("tool", "bin:/usr/bin").path, tool) << "a relative entry counts from the working directory";
  directory_.Write("here", "#!/bin/sh\n", 0755);
  EXPECT_EQ(Find("here", ":/usr/bin").path, directory_.path() + "/./here")
      << "an empty entry is the working directory";
  EXPECT_EQ(Find("./bin/tool").path, directory_.path() + "/./bin/tool");
}

TEST_F(Program, ThatIsMissingIsNamedWithTheNearestName) {
  directory_.Write("simulate", "#!/bin/sh\n", 0755);
  const Lookup lookup = Find("./simulte");
  EXPECT_EQ(lookup.path, "");
  EXPECT_EQ(lookup.error.exit_code, 127);
  EXPECT_EQ(lookup.error.message,
            "program './simulte' not found in " + directory_.path() + "; did you mean './simulate'?");
}

TEST_F(Program, ThatIsMissingInPathIsNamedWithPath) {
  const Lookup lookup = Find("hostnmae", "/usr/bin:/bin");
  EXPECT_EQ(lookup.error.exit_code, 127);
  EXPECT_EQ(lookup.error.message,
            "program 'hostnmae' not found in PATH (/usr/bin:/bin); did you mean 'hostname'?");
}

TEST_F(Program, ThatIsInTheWorkingDirectoryOnlyIsHintedAt) {
  directory_.Write("solver", "#!/bin/sh\n", 0755);
  EXPECT_THAT(Find("solver").error.message, HasSubstr("start it as './solver'"));
}

TEST_F(Program, ThatIsNotExecutableTellsModeAndRemedy) {
  const std::string path = directory_.Write("data", "1 2 3\n", 0640);
  const Lookup lookup = Find("./data");
  EXPECT_EQ(lookup.error.exit_code, 126);
  EXPECT_THAT(lookup.error.message, AllOf(HasSubstr("mode 0640"), HasSubstr("chmod +x")));
}

TEST_F(Program, ThatIsADirectoryIsRefused) {
  const Lookup lookup = Find("./");
  EXPECT_EQ(lookup.error.exit_code, 126);
  EXPECT_THAT(lookup.error.message, HasSubstr("is a directory"));
}

TEST_F(Program, WithoutANameIsRefused) { EXPECT_EQ(Find("").error.exit_code, 127); }

TEST_F(Program, InAWorkingDirectoryThatIsMissingOrNone) {
  Lookup lookup = FindProgram({"true", "/bin", "/nowhere/at/all"});
  EXPECT_EQ(lookup.error.exit_code, 126);
  EXPECT_THAT(lookup.error.message,
              AllOf(HasSubstr("'/nowhere/at/all' does not exist"), HasSubstr("--chdir")));
  lookup = FindProgram({"true", "/bin", "/etc/passwd"});
  EXPECT_EQ(lookup.error.exit_code, 126);
  EXPECT_THAT(lookup.error.message, HasSubstr("is not a directory"));
}

TEST_F(Program, FailuresOfTheTrampolineHaveTheirTexts) {
  TaskSpec spec;
  spec.argv = {"./a"};
  spec.cwd = "/gone";
  EXPECT_EQ(DescribeExecFailure(spec, "/gone/a", {0, kExecStageDirectory, ENOENT, 0}).exit_code, 126);
  EXPECT_EQ(DescribeExecFailure(spec, "/gone/a", {0, kExecStageExec, ENOENT, 0}).exit_code, 127);
  EXPECT_EQ(DescribeExecFailure(spec, "/bin/true", {0, kExecStageExec, ENOMEM, 0}).exit_code, 125);
  EXPECT_EQ(DescribeExecFailure(spec, "/bin/true", {0, kExecStageSpec, EPROTO, 0}).exit_code, 125);
  EXPECT_EQ(DescribeExecFailure(spec, "/bin/true", {0, kExecStageLimit, EPERM, 7}).exit_code, 125);
}

TEST(FindVariable, TakesTheFirstWholeName) {
  const std::vector<std::string> env{"PATHS=1", "PATH=2", "PATH=3", "EMPTY="};
  EXPECT_STREQ(FindVariable(env, "PATH"), "2");
  EXPECT_STREQ(FindVariable(env, "EMPTY"), "");
  EXPECT_EQ(FindVariable(env, "PAT"), nullptr);
}

TEST(ElfNeeded, SurvivesWhatIsNoElf) {
  const support::ScratchDirectory directory;
  std::string header(
      "\x7f"
      "ELF\2\1\1",
      7);
  header.resize(64, '\xff');
  EXPECT_TRUE(ElfNeeded(directory.Write("broken", header)).empty());
  EXPECT_TRUE(ElfNeeded(directory.Write("short",
                                        "\x7f"
                                        "ELF"))
                  .empty());
  EXPECT_TRUE(ElfNeeded(directory.path()).empty());
  EXPECT_TRUE(ElfNeeded("/nowhere").empty());
  EXPECT_THAT(ElfNeeded("/bin/sh"), ::testing::Contains("libc.so.6"));
  EXPECT_THAT(ElfInterpreter("/bin/sh"), HasSubstr("ld-linux"));
}

TEST(OutputFile, NamesPathAndRemedy) {
  const support::ScratchDirectory directory;
  const auto missing = OpenOutputFile("/nowhere/out", OpenMode::kTruncate);
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), AllOf(HasSubstr("'/nowhere/out'"), HasSubstr("create it")));
  EXPECT_EQ(OpenOutputFile(directory.path(), OpenMode::kAppend).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(OpenOutputFile(directory.path() + "/" + std::string(300, 'x'), OpenMode::kAppend).status().code(),
            Code::kInvalidArgument);
  const mode_t before = ::umask(027);
  EXPECT_TRUE(OpenOutputFile(directory.path() + "/out", OpenMode::kTruncate).ok());
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((directory.path() + "/out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

}  // namespace
}  // namespace msa::launch
