#include "stdio_hub.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

namespace msa::jobd {
namespace {

struct HubTest : ::testing::Test {
  struct Sent {
    std::uint64_t session;
    std::uint16_t type;
    std::string payload;
  };
  StdioHub Make(StdioHubOptions options) {
    StdioHub::Outlet outlet;
    outlet.to_session = [this](std::uint64_t session, std::uint16_t type, std::string payload) {
      sent.push_back({session, type, std::move(payload)});
    };
    outlet.end_session = [this](std::uint64_t session) { ended.push_back(session); };
    outlet.credit = [this](std::uint32_t member, std::uint64_t bytes) { credit[member] += bytes; };
    outlet.on_file_error = [this](const Status& status) { file_errors.push_back(status.message()); };
    return StdioHub(std::move(options), std::move(outlet));
  }
  static TaskOutput Text(const std::string& data) { return {"ns", Rank(0), wire::Stream::kOut, data}; }
  std::vector<std::uint64_t> Seqs(std::uint64_t session) const {
    std::vector<std::uint64_t> out;
    for (const Sent& one : sent)
      if (one.session == session && one.type == wire::Output::kType)
        out.push_back(wire::Decode<wire::Output>(one.payload)->seq);
    return out;
  }
  std::vector<Sent> sent;
  std::vector<std::uint64_t> ended;
  std::map<std::uint32_t, std::uint64_t> credit;
  std::vector<std::string> file_errors;
};

TEST_F(HubTest, KeepsRecordsForAnOwnerThatComesLate) {
  StdioHub hub = Make({.interactive = true});
  hub.OnOutput(0, 0, Text("a"));
  hub.OnOutput(0, 0, Text("b"));
  EXPECT_TRUE(hub.Open(1, {true, 0, false}));
  EXPECT_EQ(Seqs(1), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(HubTest, ANewSessionResumesAfterWhatWasSeen) {
  StdioHub hub = Make({.interactive = true});
  EXPECT_TRUE(hub.Open(1, {true, 0, false}));
  for (const char* text : {"a", "b", "c"}) hub.OnOutput(0, 0, Text(text));
  hub.Close(1);
  hub.OnOutput(0, 0, Text("d"));
  EXPECT_TRUE(hub.Open(2, {true, 2, false}));
  EXPECT_EQ(Seqs(2), (std::vector<std::uint64_t>{3, 4}));
}

TEST_F(HubTest, BeyondTheWindowThereIsNoCreditUntilTheOwnerReads) {
  StdioHub hub = Make({.interactive = true, .window = 1000});
  EXPECT_TRUE(hub.Open(1, {true, 0, false}));
  hub.OnOutput(3, 0, Text(std::string(600, 'x')));
  EXPECT_EQ(credit[3], 600u);
  hub.OnOutput(3, 0, Text(std::string(600, 'x')));
  hub.OnOutput(4, 0, Text(std::string(10, 'x')));
  EXPECT_EQ(credit[3], 600u);
  EXPECT_EQ(credit[4], 0u);
  hub.Ack(1, 1);
  EXPECT_EQ(credit[3], 1200u);
  EXPECT_EQ(credit[4], 10u);
}

TEST_F(HubTest, KillingLiftsTheWindow) {
  StdioHub hub = Make({.interactive = true, .window = 10});
  hub.OnOutput(3, 0, Text(std::string(600, 'x')));
  EXPECT_EQ(credit[3], 0u);
  hub.LiftWindow();
  EXPECT_EQ(credit[3], 600u);
}

TEST_F(HubTest, ASlowViewerIsDroppedWithATextAndTheOwnerGoesOn) {
  StdioHub hub = Make({.interactive = true, .window = 1000});
  EXPECT_TRUE(hub.Open(1, {true, 0, false}));
  EXPECT_FALSE(hub.Open(2, {false, 0, false}));
  for (int i = 0; i < 3; ++i) {
    hub.OnOutput(0, 0, Text(std::string(500, 'x')));
    hub.Ack(1, static_cast<std::uint64_t>(i) + 1);
  }
  EXPECT_EQ(ended, std::vector<std::uint64_t>{2});
  EXPECT_EQ(Seqs(1).size(), 3u);
  EXPECT_EQ(Seqs(2).size(), 2u);
  EXPECT_EQ(sent[sent.size() - 1].session + sent[sent.size() - 2].session, 3u);
  EXPECT_EQ(hub.viewers(), 0u);
}

TEST_F(HubTest, AViewerThatAcknowledgesStays) {
  StdioHub hub = Make({.interactive = true, .window = 1000});
  EXPECT_FALSE(hub.Open(2, {false, 0, false}));
  for (std::uint64_t i = 1; i <= 10; ++i) {
    hub.OnOutput(0, 0, Text(std::string(500, 'x')));
    hub.Ack(2, i);
  }
  EXPECT_EQ(hub.viewers(), 1u);
}

TEST_F(HubTest, ASecondOwnerReplacesTheFirst) {
  StdioHub hub = Make({.interactive = true});
  EXPECT_TRUE(hub.Open(1, {true, 0, false}));
  EXPECT_TRUE(hub.Open(2, {true, 0, false}));
  EXPECT_EQ(ended, std::vector<std::uint64_t>{1});
  EXPECT_TRUE(hub.is_owner(2));
}

TEST_F(HubTest, TheEndIsTheLastRecordAndDrainsWithItsAcknowledgement) {
  StdioHub hub = Make({.interactive = true});
  EXPECT_TRUE(hub.Open(1, {true, 0, false}));
  hub.OnOutput(0, 0, Text("a"));
  hub.Notice("n");
  hub.End(wire::JobState::kFailed, 3, "m");
  EXPECT_FALSE(hub.drained());
  EXPECT_EQ(sent.back().type, wire::SessionEnd::kType);
  EXPECT_EQ(wire::Decode<wire::SessionEnd>(sent.back().payload)->seq, 3u);
  hub.Ack(1, 3);
  EXPECT_TRUE(hub.drained());
  EXPECT_EQ(hub.kept_bytes(), 0u);
}

TEST_F(HubTest, AViewerAfterTheEndHearsOfIt) {
  StdioHub hub = Make({.interactive = true});
  hub.End(wire::JobState::kCompleted, 0, "");
  EXPECT_FALSE(hub.Open(5, {false, 0, false}));
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().session, 5u);
  EXPECT_EQ(sent.back().type, wire::SessionEnd::kType);
}

TEST_F(HubTest, ABatchJobKeepsNothingAndNeedsNoOwner) {
  StdioHub hub = Make({.interactive = false});
  hub.OnOutput(0, 0, Text("a"));
  hub.End(wire::JobState::kCompleted, 0, "");
  EXPECT_TRUE(hub.drained());
  EXPECT_EQ(credit[0], 1u);
}

TEST_F(HubTest, OneFileTakesBothStreamsAndTheNotices) {
  const support::ScratchDirectory scratch;
  const std::string path = scratch / "out";
  const Sink sink{SinkKind::kFile, path};
  StdioHub hub = Make({.interactive = false, .plan = {sink, sink}});
  ASSERT_TRUE(hub.OpenFiles().ok());
  hub.OnOutput(0, 0, Text("out\n"));
  hub.OnOutput(0, 0, {"ns", Rank(0), wire::Stream::kErr, "err\n"});
  hub.Notice("said");
  hub.End(wire::JobState::kCompleted, 0, "");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "out\nerr\nmsa: said\n");
}

TEST_F(HubTest, AFullDiskIsReportedOnceWithTheFile) {
  const Sink sink{SinkKind::kFile, "/dev/full"};
  StdioHub hub = Make({.interactive = true, .plan = {sink, sink}});
  ASSERT_TRUE(hub.OpenFiles().ok());
  hub.OnOutput(0, 0, Text("x"));
  hub.OnOutput(0, 0, Text("x"));
  ASSERT_EQ(file_errors.size(), 1u);
  EXPECT_NE(file_errors[0].find("/dev/full"), std::string::npos);
  EXPECT_EQ(credit[0], 2u);
}

TEST(PlanStdio, ErrorFollowsOutputIntoItsFile) {
  wire::StdioSpec spec;
  spec.out = "o-%j";
  const auto plan = PlanStdio(spec, "/d", {JobId(7), StepId(0), Rank(0), 0, "cn0", "u", "n"});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->out.path, "/d/o-7");
  EXPECT_EQ(plan->err.path, "/d/o-7");
  spec.out = "/x/%t";
  EXPECT_EQ(PlanStdio(spec, "/d", {})->out.kind, SinkKind::kPerTask);
  spec.out = "none";
  EXPECT_EQ(PlanStdio(spec, "/d", {})->err.kind, SinkKind::kCarry);
  spec.out = "%q";
  EXPECT_FALSE(PlanStdio(spec, "/d", {}).ok());
}

}  // namespace
}  // namespace msa::jobd
