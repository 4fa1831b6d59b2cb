// What the controller knows of nodes beyond up and down: their clocks, and whom they can serve.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa {
namespace {

using namespace job_test;
using ::testing::AllOf;
using ::testing::HasSubstr;

class NodeClocks : public ::testing::Test {
 protected:
  NodeClocks() { h.RegisterAll(); }
  // A heartbeat of bn0 whose clock is `off`, `late` on its way.
  void Beat(Millis off, Millis late = Millis(0)) {
    h.On(event::NodeHeartbeat{.node = "bn0", .session = h.sessions["bn0"], .clock = h.now + off - late});
  }
  NodeView Node(const std::string& name = "bn0") { return h.controller().ListNodes("", {name})->at(0); }
  Harness h;
};

TEST_F(NodeClocks, OneThatIsOffIsToldWithTheAmount) {
  Beat(Millis(4900));
  EXPECT_FALSE(Node().clock_off);
  EXPECT_EQ(Node().clock_offset, Millis(4900));
  EXPECT_EQ(Node().reason, "");
  Beat(Millis(7200));
  EXPECT_TRUE(Node().clock_off);
  EXPECT_THAT(Node().reason, HasSubstr("its clock is 7.2 s ahead of the controller's; set both by NTP"));
  EXPECT_FALSE(Node("cn0").clock_off);
  const auto logs = h.Sent<effect::Log>();
  EXPECT_EQ(logs.size(), 1u);
  for (int i = 0; i < 3; ++i) Beat(Millis(-100));
  EXPECT_FALSE(Node().clock_off);
  EXPECT_EQ(h.Sent<effect::Log>().size(), 2u) << "once each way";
}

TEST_F(NodeClocks, ASlowClockIsTellableFromASlowHeartbeat) {
  Beat(Millis(0));
  Beat(Millis(0), Millis(60'000));
  EXPECT_FALSE(Node().clock_off) << "it was long on its way";
  for (int i = 0; i < 3; ++i) Beat(Millis(-8000));
  EXPECT_TRUE(Node().clock_off);
  EXPECT_THAT(Node().reason, HasSubstr("8.0 s behind the controller's"));
}

TEST_F(NodeClocks, ADrainKeepsItsReasonBesideTheClocks) {
  h.On(event::Drain{.caller = kRoot, .nodes = {"bn0"}, .reason = "fan", .reply = 1});
  Beat(Millis(9000));
  EXPECT_THAT(Node().reason, AllOf(HasSubstr("fan; its clock is 9.0 s ahead")));
  h.On(event::NodeHeartbeat{.node = "cn0", .session = h.sessions["cn0"]});
  EXPECT_FALSE(Node("cn0").clock_off) << "a node daemon that tells no time";
}

TEST(NodeUsers, AJobOfAUserWhomNoNodeCanServeIsRefused) {
  Harness h;
  h.node_uid = kBob.uid;
  h.RegisterAll();
  const Status refused = h.Submit(Harness::Request(Harness::Spec("cluster", 1))).status();
  EXPECT_EQ(refused.code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("user ada (uid 1000)"), HasSubstr("user bob (uid 1001)"),
                                       HasSubstr("sudo -u bob msactl")));
  event::Submit own = Harness::Request(Harness::Spec("cluster", 1));
  own.user = kBob;
  EXPECT_TRUE(h.Submit(std::move(own)).ok());
  event::Submit root = Harness::Request(Harness::Spec("cluster", 1));
  root.user = kRoot;
  EXPECT_EQ(h.Submit(std::move(root)).status().code(), Code::kPermissionDenied);
}

TEST(NodeUsers, RootsNodesServeEverybody) {
  Harness h;
  h.RegisterAll();
  EXPECT_TRUE(h.Submit(Harness::Request(Harness::Spec("cluster", 1))).ok());
}

TEST(ExpectedNodes, AreThoseOfThePlanAndOfTheWholeSystemBeforeIt) {
  Harness h;
  h.RegisterAll();
  const auto nodes = [&](JobId id) { return h.controller().GetJob(id)->expected_nodes; };
  const auto of_a_minute = [](JobSpec spec) {
    spec.time_limit_s = 60;
    return spec;
  };
  h.MustRun(of_a_minute(Harness::Spec("cluster", 8)));
  // Six tasks on nodes of four cores.
  EXPECT_EQ(nodes(h.MustSubmit(of_a_minute(Harness::Spec("cluster", 6)))), 2u);
  EXPECT_EQ(nodes(h.MustSubmit(of_a_minute(Harness::Spec("cluster", 3)))), 1u);
  // Not planned: its nodes are drained.
  h.On(event::Drain{.caller = kRoot, .nodes = {"bn0", "bn1"}, .reason = "fan", .reply = 1});
  h.TakeReply();
  EXPECT_EQ(nodes(h.MustSubmit(Harness::Spec("booster", 12))), 2u);
}

TEST(ExpectedNodes, AreTheLeastForJobsOfMoreShapesThanAreSearchedFor) {
  Harness h;
  h.RegisterAll();
  h.On(event::Drain{.caller = kRoot, .nodes = {"bn0", "bn1"}, .reason = "fan", .reply = 1});
  h.TakeReply();
  std::vector<std::uint32_t> nodes;
  for (std::uint64_t i = 1; i <= 65; ++i) {
    JobSpec spec = Harness::Spec("booster", 12);
    spec.components[0].resources.memory = Bytes(i);
    nodes.push_back(h.controller().GetJob(h.MustSubmit(std::move(spec)))->expected_nodes);
  }
  EXPECT_EQ(nodes[63], 2u);
  EXPECT_EQ(nodes[64], 1u);
}

}  // namespace
}  // namespace msa
