#include <stdlib.h>
#include <time.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/clock.h"

#include "batch/wait_options.h"
#include "output/batch_texts.h"

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string TextOf(std::string_view list) {
  const auto parsed = ParseDependencies(list);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  std::string out;
  if (!parsed.ok()) return out;
  for (const Dependency& dependency : parsed->dependencies)
    out += (out.empty() ? "" : parsed->any ? " or " : " and ") + DependencyText(dependency);
  return out;
}
std::string ErrorOf(std::string_view list) {
  const auto parsed = ParseDependencies(list);
  EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument) << list;
  return parsed.status().message();
}

TEST(DependencyOption, ReadsSlurmsForms) {
  EXPECT_EQ(TextOf("afterok:1:2,afterany:3,after:4+5,afternotok:6,singleton"),
            "afterok:1 and afterok:2 and afterany:3 and after:4+5 and afternotok:6 and singleton");
  EXPECT_EQ(TextOf("afterok:1?afterok:2"), "afterok:1 or afterok:2");
  EXPECT_EQ(TextOf("after:4:5+1"), "after:4 and after:5+1");
  EXPECT_EQ(ParseDependencies("after:4+5")->dependencies[0].delay_s, 300u);
}

TEST(DependencyOption, NamesThePartThatIsWrong) {
  EXPECT_THAT(ErrorOf("afterko:1"), HasSubstr("did you mean 'afterok'?"));
  EXPECT_THAT(ErrorOf("afterok"), HasSubstr("names no job"));
  EXPECT_THAT(ErrorOf("afterok:"), HasSubstr("job's id"));
  EXPECT_THAT(ErrorOf("afterok:12_3"), HasSubstr("12_3"));
  EXPECT_THAT(ErrorOf("afterok:1,"), HasSubstr("''"));
  EXPECT_THAT(ErrorOf("singleton:3"), HasSubstr("no job ids"));
  EXPECT_THAT(ErrorOf("afterok:1+5"), HasSubstr("only 'after'"));
  EXPECT_THAT(ErrorOf("after:1+x"), HasSubstr("x"));
  EXPECT_THAT(ErrorOf("afterok:1,afterany:2?afterany:3"), HasSubstr("mixes"));
  EXPECT_THAT(ErrorOf("aftercorr:1"), HasSubstr("array"));
  std::string many = "afterok";
  for (int i = 0; i < 257; ++i) many += ":1";
  EXPECT_THAT(ErrorOf(many), AllOf(HasSubstr("257 dependencies"), HasSubstr("at most 256")));
}

// Wednesday 2026-11-18 15:30:00 in Berlin, an hour before UTC.
class When : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
  void TearDown() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static constexpr std::int64_t kNow = 1'795'012'200'000;
  static constexpr std::int64_t kHour = 3'600'000;
  static std::int64_t Begin(std::string_view text) {
    const auto at = ParseBegin(text, FromUnixMillis(kNow));
    EXPECT_TRUE(at.ok()) << at.status().message();
    return at.ok() ? *at : -1;
  }
  static std::int64_t Past(std::string_view text) {
    const auto at = ParsePast(text, FromUnixMillis(kNow));
    EXPECT_TRUE(at.ok()) << at.status().message();
    return at.ok() ? *at : -1;
  }
};

TEST_F(When, ReadsTimesFromNowOn) {
  EXPECT_EQ(Begin("now"), 0);
  EXPECT_EQ(Begin("now+1hour"), kNow + kHour);
  EXPECT_EQ(Begin("now+90"), kNow + 90'000);
  EXPECT_EQ(Begin("NOW+2days"), kNow + 48 * kHour);
  EXPECT_EQ(Begin("now+1week"), kNow + 7 * 24 * kHour);
}

TEST_F(When, ATimeOfDayIsTheNextOne) {
  EXPECT_EQ(Begin("16:00"), kNow + kHour / 2);
  EXPECT_EQ(Begin("4:00pm"), kNow + kHour / 2);
  EXPECT_EQ(Begin("16:00:30"), kNow + kHour / 2 + 30'000);
  EXPECT_EQ(Begin("teatime"), kNow + kHour / 2);
  EXPECT_EQ(Begin("15:00"), kNow + 24 * kHour - kHour / 2);
  EXPECT_EQ(Begin("12:30am"), kNow + 9 * kHour);
}

TEST_F(When, ReadsDaysAndIsoTimes) {
  EXPECT_EQ(Begin("2026-11-18T16:30"), kNow + kHour);
  EXPECT_EQ(Begin("2026-11-18T16:30:00Z"), kNow + 2 * kHour);
  EXPECT_EQ(Begin("2026-11-19"), kNow + 8 * kHour + kHour / 2);
  EXPECT_EQ(Begin("tomorrow"), kNow + 8 * kHour + kHour / 2);
  EXPECT_EQ(Begin("tomorrow 01:00"), kNow + 9 * kHour + kHour / 2);
  EXPECT_EQ(Begin("11/19"), Begin("11/19/26"));
  EXPECT_EQ(Begin("11/19/26-01:00"), kNow + 9 * kHour + kHour / 2);
  EXPECT_EQ(Begin("2027-07-01T00:00"), Begin("2027-06-30T22:00Z")) << "summer time";
  EXPECT_EQ(Begin("2020-01-01"), 0) << "over already: at once";
}

TEST_F(When, ReadsThePast) {
  EXPECT_EQ(Past("now-2hours"), kNow - 2 * kHour);
  EXPECT_EQ(Past("15:00"), kNow - kHour / 2);
  EXPECT_EQ(Past("16:00"), kNow - 24 * kHour + kHour / 2);
  EXPECT_EQ(Past("today"), kNow - 15 * kHour - kHour / 2);
  EXPECT_EQ(Past("yesterday"), kNow - 39 * kHour - kHour / 2);
  EXPECT_EQ(Past("2026-11-18T14:30"), kNow - kHour);
}

TEST_F(When, RefusesWhatIsNoTime) {
  for (const char* text : {"", "nov", "now+", "now+1fortnight", "25:00", "10:60", "13:00pm", "2026-02-30",
                           "2026-13-01", "16:00x", "2026-11-18T", "11/31", "tomorrowx", "now+123456789"}) {
    const auto at = ParseBegin(text, FromUnixMillis(kNow));
    EXPECT_EQ(at.status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(BatchTexts, ShowWhatAJobWaitsFor) {
  JobSpec spec;
  std::vector<std::pair<std::string, std::string>> lines;
  AddWaits(spec, &lines);
  EXPECT_TRUE(lines.empty());
  spec.dependencies = {{DependencyKind::kAfterOk, JobId(3), 0, DependencyState::kMet},
                       {DependencyKind::kSingleton}};
  AddWaits(spec, &lines);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].second, "afterok:3 (met), singleton (open)");
  const std::string json = DependenciesDocument(spec).ToJson();
  EXPECT_THAT(json, HasSubstr("\"type\": \"afterok\""));
  EXPECT_THAT(json, HasSubstr("\"state\": \"met\""));
}

}  // namespace
}  // namespace msa::cli
