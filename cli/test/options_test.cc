#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/parser.h"
#include "options/values.h"

namespace msa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Parsed {
  bool flag = false;
  bool other = false;
  std::string text;
  std::vector<std::string> optional;
  std::vector<std::string> operands;
  Status status;
};

Parsed Parse(const std::vector<std::string>& args, Operands operands = Operands::kAnywhere) {
  Parsed out;
  OptionParser parser("msactl test", "[OPTIONS]", "A test.");
  parser.Flag('a', "alpha", "first", &out.flag)
      .Flag('b', "beta", "second", &out.other)
      .Text('t', "text", "TEXT", "third", &out.text)
      .Add({.letter = 'I',
            .name = "immediate",
            .takes = Takes::kOptionalValue,
            .value_name = "S",
            .help = "fourth",
            .set = [&out](std::string_view value) {
              out.optional.emplace_back(value);
              return Status::Ok();
            }});
  auto rest = parser.Parse(args, operands);
  out.status = rest.status();
  if (rest.ok()) out.operands = *rest;
  return out;
}

TEST(OptionParser, ReadsValuesAttachedAndApart) {
  EXPECT_EQ(Parse({"-tx"}).text, "x");
  EXPECT_EQ(Parse({"-t", "x"}).text, "x");
  EXPECT_EQ(Parse({"-t=x"}).text, "x");
  EXPECT_EQ(Parse({"--text=x"}).text, "x");
  EXPECT_EQ(Parse({"--text", "x"}).text, "x");
  EXPECT_EQ(Parse({"--text="}).text, "");
}

TEST(OptionParser, JoinsFlagsBehindOneDash) {
  const Parsed parsed = Parse({"-abtx"});
  EXPECT_TRUE(parsed.flag);
  EXPECT_TRUE(parsed.other);
  EXPECT_EQ(parsed.text, "x");
}

TEST(OptionParser, TakesAnOptionalValueOnlyWhenAttached) {
  EXPECT_THAT(Parse({"-I", "prog"}).optional, ElementsAre(""));
  EXPECT_THAT(Parse({"-I", "prog"}).operands, ElementsAre("prog"));
  EXPECT_THAT(Parse({"-I5"}).optional, ElementsAre("5"));
  EXPECT_THAT(Parse({"--immediate=5"}).optional, ElementsAre("5"));
  EXPECT_THAT(Parse({"--immediate", "5"}).operands, ElementsAre("5"));
}

TEST(OptionParser, LeavesEverythingBehindTheProgramToIt) {
  const Parsed parsed = Parse({"-a", "prog", "-b", "--nonsense", "--"}, Operands::kEndOptions);
  EXPECT_TRUE(parsed.status.ok());
  EXPECT_FALSE(parsed.other);
  EXPECT_THAT(parsed.operands, ElementsAre("prog", "-b", "--nonsense", "--"));
}

TEST(OptionParser, EndsOptionsAtTwoDashes) {
  EXPECT_THAT(Parse({"--", "-a"}).operands, ElementsAre("-a"));
  EXPECT_THAT(Parse({"x", "-a", "y"}).operands, ElementsAre("x", "y"));
  EXPECT_THAT(Parse({"-"}).operands, ElementsAre("-"));
}

TEST(OptionParser, NamesTheNearestOption) {
  const Status status = Parse({"--alpa"}).status;
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("unknown option '--alpa'"));
  EXPECT_THAT(status.message(), HasSubstr("--alpha"));
}

TEST(OptionParser, SaysWhichValueIsMissingOrTooMuch) {
  EXPECT_THAT(Parse({"--text"}).status.message(), HasSubstr("--text needs a value: --text TEXT"));
  EXPECT_THAT(Parse({"-t"}).status.message(), HasSubstr("(--text) needs a value"));
  EXPECT_THAT(Parse({"--alpha=1"}).status.message(), HasSubstr("--alpha takes no value, '1' was given"));
}

TEST(OptionParser, ListsEveryOptionInTheHelp) {
  OptionParser parser("msactl test", "[OPTIONS]", "A test.");
  std::string text;
  parser.Text('t', "text", "TEXT", "some text", &text);
  const auto rest = parser.Parse({"--help"});
  ASSERT_TRUE(rest.ok());
  EXPECT_TRUE(parser.help_asked());
  EXPECT_THAT(parser.Help(), HasSubstr("usage: msactl test [OPTIONS]"));
  EXPECT_THAT(parser.Help(), HasSubstr("-t, --text TEXT"));
  EXPECT_THAT(parser.Help(), HasSubstr("-h, --help"));
}

TEST(Values, ReadTimeLimitsAsSrunDoes) {
  const std::pair<const char*, std::uint32_t> cases[] = {
      {"30", 1800},      {"1:30", 90},       {"01:00:05", 3605}, {"2-3", 2 * 86400 + 3 * 3600},
      {"1-2:30", 95400}, {"1-0:0:1", 86401}, {"UNLIMITED", 0},   {"infinite", 0},
      {"0", 0},          {"90:00", 5400}};
  for (const auto& [text, seconds] : cases) {
    const auto got = ParseTimeLimit(text);
    ASSERT_TRUE(got.ok()) << text << ": " << got.status().message();
    EXPECT_EQ(*got, seconds) << text;
  }
}

TEST(Values, RefuseMalformedTimeLimitsWithValueAndForm) {
  for (const char* text :
       {"", "abc", "1:2:3:4", "1-", "-5", "1-2:3:4:5", "1:", "9999999999999", "1.5", " 5", "99999999-0"}) {
    const auto got = ParseTimeLimit(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(got.status().message(), HasSubstr(fmt::format("'{}'", text)));
    EXPECT_THAT(got.status().message(), HasSubstr("HH:MM:SS"));
  }
}

TEST(Values, ReadNodeRanges) {
  EXPECT_EQ(*ParseNodeRange("4"), (NodeRange{4, 4}));
  EXPECT_EQ(*ParseNodeRange("2-8"), (NodeRange{2, 8}));
  for (const char* text : {"", "0", "8-2", "-3", "2-", "a", "1-2-3", "99999999999"})
    EXPECT_FALSE(ParseNodeRange(text).ok()) << text;
}

TEST(Values, ReadMemoryInMebibytesUnlessSaidOtherwise) {
  EXPECT_EQ(ParseMemory("512")->value, 512ull << 20);
  EXPECT_EQ(ParseMemory("4G")->value, 4ull << 30);
  EXPECT_EQ(ParseMemory("4GB")->value, 4ull << 30);
  EXPECT_EQ(ParseMemory("100k")->value, 100ull << 10);
  EXPECT_EQ(ParseMemory("1T")->value, 1ull << 40);
  for (const char* text : {"", "G", "B", "1X", "-1", "1.5G", "12B", "99999999999999T"})
    EXPECT_FALSE(ParseMemory(text).ok()) << text;
}

TEST(Values, ReadDurations) {
  EXPECT_EQ(*ParseDuration("30"), Millis(30'000));
  EXPECT_EQ(*ParseDuration("250ms"), Millis(250));
  EXPECT_EQ(*ParseDuration("5m"), Millis(300'000));
  EXPECT_EQ(*ParseDuration("2h"), Millis(7'200'000));
  for (const char* text : {"", "ms", "5x", "-1", "1.5s", "99999999999999999999"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(Values, ReadSignalsByNameAndNumber) {
  EXPECT_EQ(*ParseSignal("TERM"), SIGTERM);
  EXPECT_EQ(*ParseSignal("sigusr1"), SIGUSR1);
  EXPECT_EQ(*ParseSignal("9"), SIGKILL);
  for (const char* text : {"", "0", "SIG", "NOPE", "999", "-9"}) EXPECT_FALSE(ParseSignal(text).ok()) << text;
}

TEST(Values, ReadJobIds) {
  EXPECT_EQ(*ParseJobId("7"), JobId(7));
  for (const char* text : {"", "0", "x", "-1", "7.0"}) EXPECT_FALSE(ParseJobId(text).ok()) << text;
}

TEST(Values, RefuseNumbersOutsideTheirRange) {
  EXPECT_EQ(*ParseNumber("5", {1, 10}), 5u);
  for (const char* text : {"0", "11", "", "x", "1e3", "18446744073709551616"}) {
    const auto got = ParseNumber(text, {1, 10});
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_THAT(got.status().message(), HasSubstr("from 1 to 10"));
  }
}

}  // namespace
}  // namespace msa::cli
