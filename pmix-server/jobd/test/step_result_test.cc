#include "step_result.h"

#include <signal.h>

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::jobd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::TaskEnd Exit(std::uint32_t rank, const std::string& node, std::int32_t code) {
  return {Rank(rank), 0, node, code, 0, false};
}

TEST(StepResult, HighestCodeAndDeathsBySignal) {
  StepResult result;
  result.Add(Exit(0, "cn0", 3), Counted::kYes);
  result.Add({Rank(1), 0, "cn0", 0, SIGSEGV, true}, Counted::kYes);
  EXPECT_EQ(result.code(), 139);
  EXPECT_EQ(result.failed_count(), 2u);
  EXPECT_THAT(result.TakeLines(), ElementsAre("cn0: task 1: Segmentation fault (core dumped)",
                                              "cn0: task 0: exited with exit code 3"));
}

TEST(StepResult, ASignalThatDoesNotExistStaysWithinAnExitCode) {
  for (const std::int32_t signal :
       {std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
    EXPECT_GE(CodeOf({Rank(0), 0, "bn0", 0, signal, false}), 128);
    EXPECT_LE(CodeOf({Rank(0), 0, "bn0", 0, signal, false}), 255);
  }
}

TEST(StepResult, EqualEndsOfANodeShareALine) {
  StepResult result(" of spawn 2");
  for (const std::uint32_t rank : {3u, 1u, 2u, 7u}) result.Add(Exit(rank, "bn0", 3), Counted::kYes);
  result.Add(Exit(4, "bn1", 3), Counted::kYes);
  EXPECT_THAT(result.TakeLines(), ElementsAre("bn0: tasks 1-3,7 of spawn 2: exited with exit code 3",
                                              "bn1: task 4 of spawn 2: exited with exit code 3"));
  EXPECT_THAT(result.TakeLines(), IsEmpty());
}

TEST(StepResult, EndsThatMsaBroughtAboutDoNotDecide) {
  StepResult result;
  result.Add(Exit(0, "cn0", 3), Counted::kYes);
  result.Add({Rank(1), 0, "cn0", 0, SIGTERM, false}, Counted::kNo);
  EXPECT_EQ(result.code(), 3);
}

TEST(StepResult, ForcedCodeStays) {
  StepResult result;
  result.Force(5);
  result.Force(6);
  result.Add(Exit(0, "cn0", 99), Counted::kYes);
  EXPECT_EQ(result.code(), 5);
}

TEST(StepResult, KeepsTheLowestRanksOfManyFailures) {
  StepResult result;
  for (std::uint32_t rank = 200; rank-- > 0;) result.Add(Exit(rank, "cn0", 1), Counted::kYes);
  ASSERT_EQ(result.failed().size(), StepResult::kMaxFailed);
  EXPECT_EQ(result.failed().front().rank, Rank(0));
  EXPECT_EQ(result.failed_count(), 200u);
}

TEST(StepResult, SuccessIsSilent) {
  StepResult result;
  result.Add(Exit(0, "cn0", 0), Counted::kYes);
  EXPECT_FALSE(result.has_lines());
  EXPECT_EQ(result.code(), 0);
}

TEST(RankList, NamesRanges) {
  EXPECT_EQ(RankList({}), "");
  EXPECT_EQ(RankList({5}), "5");
  EXPECT_EQ(RankList({2, 0, 1, 4}), "0-2,4");
}

}  // namespace
}  // namespace msa::jobd
