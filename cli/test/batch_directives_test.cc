#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/job/job_spec.h"
#include "msa/support/scratch_directory.h"

#include "batch/directives.h"
#include "batch/script_file.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ScriptHead Read(std::string_view text) {
  auto head = ReadDirectives("job.sh", text);
  EXPECT_TRUE(head.ok()) << head.status().message();
  return head.ok() ? *std::move(head) : ScriptHead{};
}
std::string ErrorOf(std::string_view text) {
  const auto head = ReadDirectives("job.sh", text);
  EXPECT_EQ(head.status().code(), Code::kInvalidArgument);
  return head.status().message();
}

TEST(Directives, AreReadUpToTheFirstCommand) {
  const ScriptHead head = Read(
      "#!/bin/sh\n"
      "#SBATCH -N 2 --time=10\n"
      "\n"
      "# a comment\n"
      "   \t\n"
      "#MSA --module booster\n"
      "set -e\n"
      "msactl run ./a\n");
  ASSERT_EQ(head.directives.size(), 2u);
  EXPECT_EQ(head.directives[0].line, 2u);
  EXPECT_EQ(head.directives[0].dialect, Dialect::kSbatch);
  EXPECT_THAT(head.directives[0].words, ElementsAre("-N", "2", "--time=10"));
  EXPECT_EQ(head.directives[1].line, 6u);
  EXPECT_EQ(head.directives[1].dialect, Dialect::kMsa);
  EXPECT_THAT(head.warnings, IsEmpty());
}

TEST(Directives, OneBehindTheFirstCommandIsNamed) {
  const ScriptHead head = Read("#!/bin/sh\ncd /tmp\n#SBATCH -N 2\n#MSA -n 1\n");
  EXPECT_THAT(head.directives, IsEmpty());
  EXPECT_THAT(head.warnings, ElementsAre(AllOf(HasSubstr("job.sh:3"), HasSubstr("behind the first command")),
                                         HasSubstr("job.sh:4")));
}

TEST(Directives, LinesOfOtherSystemsAreNamedAndCommentedOnesAreNot) {
  const ScriptHead head = Read(
      "#!/bin/sh\n#BB create_persistent name=x\n#DW jobdw\n#NAM size=1G\n#PBS -l nodes=2\n"
      "##SBATCH -N 2\n# SBATCH -N 2\n#sbatch -N 2\n#SBATCH--time=5\n#Batch of runs\n");
  EXPECT_THAT(head.directives, IsEmpty());
  EXPECT_THAT(head.warnings, ElementsAre(HasSubstr("job.sh:2: '#BB'"), HasSubstr("job.sh:3: '#DW'"),
                                         HasSubstr("job.sh:4: '#NAM'"), HasSubstr("job.sh:5: '#PBS'"),
                                         HasSubstr("job.sh:8: '#sbatch'"), HasSubstr("job.sh:9: '#SBATCH'")));
}

TEST(Directives, WordsAreQuotedAsInAShell) {
  EXPECT_THAT(*SplitDirective(R"( -J "my job" --comment='a "b"' a\ b "" # said so)"),
              ElementsAre("-J", "my job", "--comment=a \"b\"", "a b", ""));
  EXPECT_THAT(*SplitDirective("--x=a#b \t-y"), ElementsAre("--x=a#b", "-y"));
  EXPECT_THAT(*SplitDirective(R"("a\"b" 'c\d')"), ElementsAre("a\"b", "c\\d"));
  EXPECT_FALSE(SplitDirective("-J 'my job").ok());
  EXPECT_FALSE(SplitDirective("-J my\\").ok());
  EXPECT_THAT(ErrorOf("#!/bin/sh\n#SBATCH -J \"x\n"), AllOf(HasSubstr("job.sh:2"), HasSubstr("not closed")));
}

TEST(Directives, WhatIsNoBatchScriptIsRefusedWithSbatchsTexts) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf(" \n\t\n"), HasSubstr("only white space"));
  EXPECT_THAT(ErrorOf("echo hello\n"),
              AllOf(HasSubstr("does not look like a batch script"), HasSubstr("#!/bin/sh")));
  EXPECT_THAT(ErrorOf("#!/bin/sh\n#SBATCH -N 2\r\necho\r\n"),
              AllOf(HasSubstr("job.sh:2"), HasSubstr("DOS line breaks"), HasSubstr("dos2unix")));
  EXPECT_THAT(ErrorOf(std::string("#!/bin/sh\n\0x", 12)), HasSubstr("zero byte"));
  EXPECT_THAT(ErrorOf("#!/bin/sh\n" + std::string(kMaxScriptBytes, 'x')), HasSubstr("4194304"));
}

TEST(ScriptFile, IsReadWholeOrRefused) {
  const support::ScratchDirectory scratch;
  const std::string path = scratch.Write("job.sh", "");
  // The file is as long as a script may be, and then one byte longer.
  std::filesystem::resize_file(path, kMaxScriptBytes);
  const auto most = ReadScriptFile(path);
  ASSERT_TRUE(most.ok()) << most.status().message();
  EXPECT_EQ(most->size(), kMaxScriptBytes);
  std::filesystem::resize_file(path, kMaxScriptBytes + 1);
  const Status longer = ReadScriptFile(path).status();
  EXPECT_EQ(longer.code(), Code::kInvalidArgument);
  EXPECT_THAT(longer.message(), AllOf(HasSubstr(path), HasSubstr("more than 4194304 bytes")));
  std::filesystem::remove(path);
  EXPECT_EQ(ReadScriptFile(path).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace msa::cli
