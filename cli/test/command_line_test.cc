#include "options/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Split(std::string_view line) {
  auto words = SplitCommandLine(line);
  EXPECT_TRUE(words.ok()) << words.status().ToString();
  return words.ok() ? *words : std::vector<std::string>{"refused"};
}

std::string ErrorOf(std::string_view line) {
  const auto words = SplitCommandLine(line);
  EXPECT_EQ(words.status().code(), Code::kInvalidArgument) << line;
  return words.status().message();
}

TEST(CommandLine, SplitsAtBlanks) {
  EXPECT_THAT(Split("-n 1\t-m  cluster -- ./a\r"), ElementsAre("-n", "1", "-m", "cluster", "--", "./a"));
  EXPECT_THAT(Split(""), IsEmpty());
  EXPECT_THAT(Split(" \t "), IsEmpty());
}

TEST(CommandLine, QuotesAreThoseOfAShell) {
  EXPECT_THAT(Split("./a 'x y' \"it's\" ''"), ElementsAre("./a", "x y", "it's", ""));
  EXPECT_THAT(Split(R"(a\ b 'c\d' "e\"\\\$\`\n")"), ElementsAre("a b", "c\\d", "e\"\\$`\\n"));
  EXPECT_THAT(Split("--name='a b'c"), ElementsAre("--name=a bc"));
}

TEST(CommandLine, NothingIsExpanded) {
  EXPECT_THAT(Split("$HOME *.c ~ ? {a,b}"), ElementsAre("$HOME", "*.c", "~", "?", "{a,b}"));
}

TEST(CommandLine, ACommentBeginsAtAWord) {
  EXPECT_THAT(Split("# all of it"), IsEmpty());
  EXPECT_THAT(Split("./a b#c '#d' \\#e # f"), ElementsAre("./a", "b#c", "#d", "#e"));
}

TEST(CommandLine, WhatIsNotClosedIsRefusedWithItsPlace) {
  EXPECT_THAT(ErrorOf("./a 'x"), HasSubstr("quote ' at column 5"));
  EXPECT_THAT(ErrorOf("./a \"x'"), HasSubstr("quote \" at column 5"));
  EXPECT_THAT(ErrorOf("./a \\"), HasSubstr("backslash"));
}

TEST(CommandLine, WhatOnlyAShellCouldDoIsRefused) {
  EXPECT_THAT(ErrorOf("./a >out"), HasSubstr("'>' at column 5"));
  EXPECT_THAT(ErrorOf("./a; ./b"), HasSubstr("sh -c"));
  EXPECT_THAT(Split("sh -c './a | b' \\& \"<\""), ElementsAre("sh", "-c", "./a | b", "&", "<"));
}

}  // namespace
}  // namespace msa::cli
