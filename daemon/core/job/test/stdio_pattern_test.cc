#include "msa/job/stdio_pattern.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

const PatternValues kValues{JobId(7), StepId(0), Rank(3), 1, "bn0", "ada", "hello"};

TEST(StdioPattern, ExpandsSrunsLetters) {
  EXPECT_EQ(*ExpandPattern("out-%j.%s.%t-%n-%N-%u-%x-%J-100%%", kValues),
            "out-7.0.3-1-bn0-ada-hello-7.0-100%");
  EXPECT_EQ(*ExpandPattern("", kValues), "");
}

TEST(StdioPattern, NamesAnUnknownLetter) {
  for (const char* bad : {"%q", "x%"}) {
    const Status status = ExpandPattern(bad, kValues).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(bad), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("%j job"), std::string::npos) << status.message();
  }
}

TEST(StdioPattern, KnowsWhichFilesDifferBetweenTasks) {
  for (const char* per_task : {"%t", "a%nb", "%N"}) EXPECT_TRUE(IsPerTask(per_task)) << per_task;
  for (const char* shared : {"", "%j", "%%t", "100%%n", "x%"}) EXPECT_FALSE(IsPerTask(shared)) << shared;
}

}  // namespace
}  // namespace msa
