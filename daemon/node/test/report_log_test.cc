#include "report_log.h"

#include <gtest/gtest.h>

#include "msa/base/messages.h"

namespace msa::node {
namespace {

const JobKey kJob{JobId(7), Incarnation(1)};

template <class M>
wire::Frame Frame(const M& message) {
  return {M::kType, 0, 0, wire::Encode(message)};
}

TEST(ReportLog, KeepsMessagesInOrderUntilTheJobIsForgotten) {
  ReportLog log;
  log.Add(kJob, Frame(wire::JobStarted{1}));
  log.Add(kJob, Frame(wire::NamespaceReport{}));
  const auto& frames = log.entries().at(kJob).frames;
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].type, wire::JobStarted::kType);
  log.Forget(kJob);
  EXPECT_TRUE(log.entries().empty());
}

TEST(ReportLog, AsksForNoGrantAgainThatWasAnswered) {
  ReportLog log;
  wire::GrantAsk ask;
  ask.request = 1;
  log.Add(kJob, Frame(ask));
  ask.request = 2;
  log.Add(kJob, Frame(ask));
  wire::GrantAnswer answer;
  answer.request = 1;
  log.OnCommand(kJob, Frame(answer));
  const auto& frames = log.entries().at(kJob).frames;
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(wire::Decode<wire::GrantAsk>(frames[0].payload)->request, 2U);
}

TEST(ReportLog, LeavesToHeadsWhatTheySayAgainThemselves) {
  ReportLog log;
  log.Add(kJob, Frame(wire::NamePublish{}));
  log.Add(kJob, Frame(wire::NameLookup{}));
  log.Add(kJob, Frame(wire::LinkAsk{}));
  log.Add(kJob, Frame(wire::LinkReady{}));
  EXPECT_TRUE(log.entries().empty());
}

TEST(ReportLog, LeavesToProgramsWhatTheyAskAboutMemory) {
  ReportLog log;
  log.Add(kJob, Frame(wire::NamFromTask{}));
  log.Add(kJob, Frame(wire::NamAllotmentAsk{}));
  EXPECT_TRUE(log.entries().empty());
}

TEST(ReportLog, ClientsThatAreGoneDoNotPushOutTheRest) {
  ReportLog log;
  log.Add(kJob, Frame(wire::JobStarted{1}));
  for (std::uint64_t i = 1; i <= 2 * ReportLog::kMaxFrames; ++i)
    log.Add(kJob, Frame(wire::NamTaskGone{i, NamClientId(i)}));
  const ReportLog::Entry& entry = log.entries().at(kJob);
  ASSERT_EQ(entry.frames.size(), 1 + ReportLog::kMaxTasksGone);
  EXPECT_EQ(entry.frames.front().type, wire::JobStarted::kType);
  EXPECT_EQ(wire::Decode<wire::NamTaskGone>(entry.frames.back().payload)->connection,
            2 * ReportLog::kMaxFrames);
  std::size_t bytes = 0;
  for (const wire::Frame& frame : entry.frames) bytes += frame.payload.size();
  EXPECT_EQ(entry.bytes, bytes);
}

TEST(ReportLog, IsBoundedAndKeepsTheExitRecord) {
  ReportLog log;
  wire::JobExit exit;
  log.Add(kJob, Frame(exit));
  log.Add(kJob, Frame(exit));
  wire::NamespaceReport report;
  report.command = std::string(2048, 'c');
  for (int i = 0; i < 2000; ++i) log.Add(kJob, Frame(report));
  const auto& entry = log.entries().at(kJob);
  EXPECT_LE(entry.frames.size(), ReportLog::kMaxFrames);
  EXPECT_LE(entry.bytes, ReportLog::kMaxBytes);
  EXPECT_EQ(entry.frames.front().type, wire::JobExit::kType);
  std::size_t bytes = 0;
  for (const auto& frame : entry.frames) bytes += frame.payload.size();
  EXPECT_EQ(bytes, entry.bytes);
}

}  // namespace
}  // namespace msa::node
