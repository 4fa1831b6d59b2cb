#include "job_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "companion_mark.h"

namespace msa::companion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

wire::SlurmJob Job(std::uint64_t id, const std::string& state = "RUNNING") {
  wire::SlurmJob job;
  job.job = job.leader = JobId(id);
  job.user.uid = 1000;
  job.state = state;
  job.over = state != "RUNNING" && state != "PENDING";
  return job;
}

wire::SlurmJob CompanionOf(std::uint64_t parent, std::uint64_t id, std::uint32_t restarts = 0,
                           std::uint64_t incarnation = 1) {
  wire::SlurmJob job = Job(id);
  const Mark mark{
      .parent = JobId(parent), .restarts = restarts, .request = 1, .incarnation = Incarnation(incarnation)};
  job.name = JobName(mark);
  job.comment = JobComment(mark);
  return job;
}

std::vector<JobId> IdsOf(const wire::SlurmJobsChanged& changed) {
  std::vector<JobId> ids;
  for (const auto& job : changed.jobs) ids.push_back(job.job);
  return ids;
}

TEST(JobBook, TellsAllJobsFirstAndThenWhatChanged) {
  JobBook book;
  auto frames = book.Update({Job(1), Job(2)}, 100);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_TRUE(frames[0].complete);
  EXPECT_FALSE(frames[0].more);
  EXPECT_THAT(IdsOf(frames[0]), ElementsAre(JobId(1), JobId(2)));
  EXPECT_THAT(book.Update({Job(1), Job(2)}, 100), IsEmpty());
  frames = book.Update({Job(1, "COMPLETED"), Job(3)}, 100);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_FALSE(frames[0].complete);
  EXPECT_THAT(IdsOf(frames[0]), ElementsAre(JobId(1), JobId(3)));
  EXPECT_THAT(frames[0].gone, ElementsAre(JobId(2)));
}

TEST(JobBook, AnEmptyListIsToldOnce) {
  JobBook book;
  const auto frames = book.Update({}, 100);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_TRUE(frames[0].complete);
  EXPECT_THAT(book.Update({}, 100), IsEmpty());
}

TEST(JobBook, AfterForgettingEverythingIsToldAgain) {
  JobBook book;
  (void)book.Update({Job(1), Job(2)}, 100);
  book.Forget();
  const auto frames = book.Update({Job(2)}, 100);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_TRUE(frames[0].complete);
  EXPECT_THAT(IdsOf(frames[0]), ElementsAre(JobId(2)));
  EXPECT_THAT(frames[0].gone, IsEmpty()) << "what is not in a complete list is gone";
}

TEST(JobBook, LongListsComeInParts) {
  JobBook book;
  const auto frames = book.Update({Job(1), Job(2), Job(3)}, 2);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_TRUE(frames[0].more && frames[0].complete && frames[1].complete);
  EXPECT_FALSE(frames[1].more);
  EXPECT_THAT(IdsOf(frames[1]), ElementsAre(JobId(3)));
}

TEST(JobBook, CompanionsOfLivingParentsAreNoOrphans) {
  JobBook book;
  (void)book.Update({Job(1), Job(2, "PENDING"), CompanionOf(1, 10), CompanionOf(2, 11)}, 100);
  EXPECT_THAT(*book.Orphans({}), IsEmpty());
  EXPECT_THAT(*book.Orphans({{JobId(2), Incarnation(1)}}), ElementsAre(JobId(11)));
}

TEST(JobBook, CompanionsOfParentsThatAreOverOrUnknownAreOrphans) {
  JobBook book;
  (void)book.Update({Job(1, "COMPLETED"), CompanionOf(1, 10), CompanionOf(5, 11)}, 100);
  EXPECT_THAT(*book.Orphans({}), ElementsAre(JobId(10), JobId(11)));
}

TEST(JobBook, ARequeuedParentHasNoCompanionsOfItsRunBefore) {
  JobBook book;
  wire::SlurmJob parent = Job(1);
  parent.restarts = 1;
  (void)book.Update({parent, CompanionOf(1, 10, 0), CompanionOf(1, 11, 1)}, 100);
  EXPECT_THAT(*book.Orphans({}), ElementsAre(JobId(10)));
}

TEST(JobBook, TheEndOfOneIncarnationLeavesTheCompanionsOfTheNext) {
  JobBook book;
  (void)book.Update({Job(1), CompanionOf(1, 10, 0, 0), CompanionOf(1, 11, 0, 1), CompanionOf(1, 12, 0, 2)},
                    100);
  EXPECT_THAT(*book.Orphans({{JobId(1), Incarnation(1)}}), ElementsAre(JobId(10), JobId(11)));
}

TEST(JobBook, WithoutAListNothingIsKnownOfOrphans) {
  JobBook book;
  EXPECT_EQ(book.Orphans({}).status().code(), Code::kUnavailable);
  (void)book.Update({CompanionOf(5, 11)}, 100);
  EXPECT_THAT(*book.Orphans({}), ElementsAre(JobId(11)));
  book.Forget();
  EXPECT_EQ(book.Orphans({{JobId(5), Incarnation(1)}}).status().code(), Code::kUnavailable)
      << "who was swept while slurmctld was away is asked for again";
  (void)book.Update({}, 100);
  EXPECT_TRUE(book.Orphans({}).ok());
}

TEST(JobBook, AJobThatNamesAnotherUsersAsItsParentIsAnOrphan) {
  JobBook book;
  wire::SlurmJob foreign = CompanionOf(1, 10);
  foreign.user.uid = 2000;
  (void)book.Update({Job(1), foreign}, 100);
  EXPECT_THAT(*book.Orphans({}), ElementsAre(JobId(10)));
}

TEST(JobBook, OrphansThatHaveEndedAndOtherJobsAreLeftAlone) {
  JobBook book;
  wire::SlurmJob ended = CompanionOf(1, 10);
  ended.over = true;
  wire::SlurmJob named = Job(11);
  named.name = "msa:1.1";
  wire::SlurmJob commented = CompanionOf(1, 12);
  commented.name = "mine";
  (void)book.Update({ended, named, commented}, 100);
  EXPECT_THAT(*book.Orphans({{JobId(1), Incarnation(1)}}), IsEmpty());
}

}  // namespace
}  // namespace msa::companion
