#include "unsent_reports.h"

#include <gtest/gtest.h>

namespace msa::node {
namespace {

const JobKey kJob{JobId(7), Incarnation(1)};
const JobKey kOther{JobId(8), Incarnation(1)};

wire::Frame Frame(std::size_t bytes) { return {0x0302, 0, 0, std::string(bytes, 'x')}; }

TEST(UnsentReports, JoinsNeighboursOfOneJobAndKeepsTheOrder) {
  UnsentReports reports;
  reports.Add(kJob, Frame(1));
  reports.Add(kJob, Frame(2));
  reports.Add(kOther, Frame(3));
  reports.Add(kJob, Frame(4));
  const auto bundles = reports.Take();
  ASSERT_EQ(bundles.size(), 3U);
  EXPECT_EQ(bundles[0].first, kJob);
  ASSERT_EQ(bundles[0].second.size(), 2U);
  EXPECT_EQ(bundles[0].second[1].payload.size(), 2U);
  EXPECT_EQ(bundles[1].first, kOther);
  EXPECT_EQ(bundles[2].second[0].payload.size(), 4U);
  EXPECT_TRUE(reports.empty());
}

TEST(UnsentReports, ABundleEndsBeforeItOutgrowsAMessage) {
  UnsentReports reports;
  for (int i = 0; i < 5; ++i) reports.Add(kJob, Frame(UnsentReports::kMaxBytes / 2));
  reports.Add(kJob, Frame(3 * UnsentReports::kMaxBytes));
  std::size_t frames = 0;
  for (const auto& [key, bundle] : reports.Take()) {
    std::size_t bytes = 0;
    for (const wire::Frame& frame : bundle) bytes += frame.payload.size();
    EXPECT_TRUE(bytes <= UnsentReports::kMaxBytes || bundle.size() == 1) << bytes;
    frames += bundle.size();
  }
  EXPECT_EQ(frames, 6U);
}

TEST(UnsentReports, ABundleHoldsSoManyFramesAtMost) {
  UnsentReports reports;
  for (std::size_t i = 0; i < UnsentReports::kMaxFrames + 1; ++i) reports.Add(kJob, Frame(0));
  const auto bundles = reports.Take();
  ASSERT_EQ(bundles.size(), 2U);
  EXPECT_EQ(bundles[1].second.size(), 1U);
}

}  // namespace
}  // namespace msa::node
