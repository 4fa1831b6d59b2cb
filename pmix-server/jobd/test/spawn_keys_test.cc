#include "spawn_keys.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint32_t> Soft(const std::string& text, std::uint32_t maxprocs) {
  auto set = ParseSoftSet(text, maxprocs);
  EXPECT_TRUE(set.ok()) << set.status().message();
  return set.ok() ? *set : std::vector<std::uint32_t>{};
}
std::string Refusal(const std::string& text, std::uint32_t maxprocs = 8) {
  auto set = ParseSoftSet(text, maxprocs);
  EXPECT_FALSE(set.ok()) << text;
  EXPECT_EQ(set.ok() ? Code::kOk : set.status().code(), Code::kInvalidArgument);
  return set.ok() ? std::string() : set.status().message();
}

TEST(SoftSet, WithoutTextIsMaxprocsOrNothing) { EXPECT_THAT(Soft("", 4), ElementsAre(4)); }

TEST(SoftSet, IsMadeOfFortranTriplets) {
  EXPECT_THAT(Soft("3", 8), ElementsAre(3));
  EXPECT_THAT(Soft("2:5", 8), ElementsAre(5, 4, 3, 2));
  EXPECT_THAT(Soft("1:7:3", 8), ElementsAre(7, 4, 1));
  EXPECT_THAT(Soft("1:8:3", 8), ElementsAre(7, 4, 1));
  EXPECT_THAT(Soft(" 2 : 8 : 2 , 1 ", 8), ElementsAre(8, 6, 4, 2, 1));
}

TEST(SoftSet, CountsDownWithANegativeStride) {
  EXPECT_THAT(Soft("8:1:-3", 8), ElementsAre(8, 5, 2));
  EXPECT_THAT(Soft("1:8:-1,3", 8), ElementsAre(3)) << "an empty triplet adds nothing";
}

TEST(SoftSet, IgnoresNumbersBelowZeroAndAboveMaxprocs) {
  EXPECT_THAT(Soft("-2,3,12", 8), ElementsAre(3));
  EXPECT_THAT(Soft("-4:100:4", 8), ElementsAre(8, 4, 0));
  EXPECT_THAT(Soft("0:2147483647:1", 3), ElementsAre(3, 2, 1, 0)) << "the walk is bounded by maxprocs";
}

TEST(SoftSet, RefusesWhatIsNoSet) {
  EXPECT_THAT(Refusal("1:8:0"), HasSubstr("stride 0"));
  EXPECT_THAT(Refusal("a"), HasSubstr("'a' is no number"));
  EXPECT_THAT(Refusal("1:2:3:4"), HasSubstr("more than two ':'"));
  EXPECT_THAT(Refusal("1,,2"), HasSubstr("'' is no number"));
  EXPECT_THAT(Refusal("99999999999"), HasSubstr("'99999999999' is no number"));
  EXPECT_THAT(Refusal("9:12"), HasSubstr("no number from 0 to maxprocs, which is 8"));
  EXPECT_THAT(Refusal("8:1"), HasSubstr("no number from 0 to maxprocs"));
}

// The definition, counted by hand: MPI-4.1 11.8.4.
RC_GTEST_PROP(SoftSetProperty, HoldsExactlyWhatTheTripletsName, ()) {
  const auto maxprocs = *rc::gen::inRange<std::uint32_t>(1, 64);
  std::set<std::int64_t> expected;
  std::string text;
  const int triplets = *rc::gen::inRange(1, 4);
  for (int t = 0; t < triplets; ++t) {
    const std::int64_t a = *rc::gen::inRange(-70, 140);
    const std::int64_t b = *rc::gen::inRange(-70, 140);
    std::int64_t c = *rc::gen::inRange(-9, 10);
    if (c == 0) c = 1;
    text += (t == 0 ? "" : ",") + std::to_string(a) + ":" + std::to_string(b) + ":" + std::to_string(c);
    for (std::int64_t n = a; c > 0 ? n <= b : n >= b; n += c)
      if (n >= 0 && n <= maxprocs) expected.insert(n);
  }
  const auto set = ParseSoftSet(text, maxprocs);
  RC_ASSERT(set.ok() == !expected.empty());
  if (set.ok())
    RC_ASSERT(std::vector<std::int64_t>(set->begin(), set->end()) ==
              std::vector<std::int64_t>(expected.rbegin(), expected.rend()));
}

TEST(Duration, IsSecondsOrNumbersWithUnits) {
  EXPECT_EQ(ParseDuration("90")->count(), 90'000);
  EXPECT_EQ(ParseDuration("10ms")->count(), 10);
  EXPECT_EQ(ParseDuration("5m")->count(), 300'000);
  EXPECT_EQ(ParseDuration(" 1h30m ")->count(), 5'400'000);
  EXPECT_EQ(ParseDuration("2d")->count(), 172'800'000);
  EXPECT_EQ(ParseDuration("0")->count(), 0);
  for (const char* bad : {"", "x", "5x", "-1", "1h30", "m", "367d", "99999999999999999999"})
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
}

wire::SpawnCommand Command() {
  wire::SpawnCommand command;
  command.program = "./child";
  command.maxprocs = 4;
  return command;
}
Result<std::string> NoFile(const std::string& path) { return Error(Code::kNotFound, "no file '{}'", path); }

TEST(SpawnKeys, AreParsedTogether) {
  wire::SpawnCommand command = Command();
  command.arch = " booster ";
  command.soft = "1:4";
  command.host = "bn0, bn1:2";
  command.path = "/a:/b /c";
  command.msa_nodes = "2";
  command.msa_ppn = "2";
  command.msa_wait = "5m";
  const auto parsed = ParseSpawnCommand(command, NoFile);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->plan.module, "booster");
  EXPECT_THAT(parsed->plan.counts, ElementsAre(4, 3, 2)) << "1 process cannot be on 2 nodes";
  EXPECT_THAT(parsed->plan.hosts, ElementsAre("bn0", "bn1:2"));
  EXPECT_THAT(parsed->search, ElementsAre("/a", "/b", "/c"));
  EXPECT_EQ(parsed->wait, Millis(300'000));
}

TEST(SpawnKeys, NameTheKeyAndTheValueThatIsWrong) {
  const auto refusal = [](auto&& change) {
    wire::SpawnCommand command = Command();
    change(command);
    const auto parsed = ParseSpawnCommand(command, NoFile);
    return parsed.ok() ? std::string("accepted") : parsed.status().message();
  };
  EXPECT_THAT(refusal([](auto& c) { c.msa_wait = "soon"; }), HasSubstr("'msa_wait': 'soon' is no duration"));
  EXPECT_THAT(refusal([](auto& c) { c.msa_nodes = "0"; }), HasSubstr("'msa_nodes': '0' is no count"));
  EXPECT_THAT(refusal([](auto& c) { c.msa_nodes = "8"; }), HasSubstr("'msa_nodes' 8"));
  EXPECT_THAT(refusal([](auto& c) { c.maxprocs = 0; }), HasSubstr("maxprocs is 0"));
  EXPECT_THAT(refusal([](auto& c) { c.file = "keys"; }), HasSubstr("no file 'keys'"));
}

TEST(SpawnKeys, AskForMemory) {
  wire::SpawnCommand command = Command();
  EXPECT_EQ(ParseSpawnCommand(command, NoFile)->nam, Bytes(0));
  command.msa_nam = "64M";
  EXPECT_EQ(ParseSpawnCommand(command, NoFile)->nam, Bytes(64u << 20));
  command.msa_nam = "much";
  EXPECT_THAT(ParseSpawnCommand(command, NoFile).status().message(),
              HasSubstr("info key 'msa_nam': 'much' is no size"));
  command.msa_nam.clear();
  command.file = "keys";
  const auto parsed = ParseSpawnCommand(
      command, [](const std::string&) -> Result<std::string> { return std::string("msa_nam = 2G\n"); });
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->nam, Bytes(std::uint64_t{2} << 30));
}

TEST(ByteSize, IsANumberWithAUnitOrBytes) {
  EXPECT_EQ(*ParseBytes("1048576"), Bytes(1048576));
  EXPECT_EQ(*ParseBytes(" 3K "), Bytes(3072));
  EXPECT_EQ(*ParseBytes("1GiB"), Bytes(1u << 30));
  EXPECT_EQ(*ParseBytes("8388607T"), Bytes(8388607ull << 40));
  for (const char* text : {"", "0", "0M", "-1", "1.5G", "M", "64m", "64MB", "64 M", "1P", "8388608T",
                           "99999999999999999999", "9223372036854775808"})
    EXPECT_EQ(ParseBytes(text).status().code(), Code::kInvalidArgument) << text;
}

TEST(SpawnKeys, OfAFileStandBehindThoseOfTheInfo) {
  wire::SpawnCommand command = Command();
  command.arch = "cluster";
  command.file = "keys";
  const auto read = [](const std::string&) -> Result<std::string> {
    return std::string("# where\n arch = booster\nsoft=2:4:2 # even\n\n");
  };
  const auto parsed = ParseSpawnCommand(command, read);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->plan.module, "cluster");
  EXPECT_THAT(parsed->plan.counts, ElementsAre(4, 2));
  const auto bad = [](const std::string&) -> Result<std::string> {
    return std::string("arch=a\ncolour = red\n");
  };
  EXPECT_THAT(ParseSpawnCommand(command, bad).status().message(), HasSubstr("line 2: 'colour = red'"));
}

}  // namespace
}  // namespace msa::jobd
