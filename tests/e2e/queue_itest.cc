// The queue as users see it: together or not at all, backfill, drain, why a job waits.
#include <unistd.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Queue : public SharedCluster {
 protected:
  static std::string Holder(const std::string& module, const std::string& cores,
                            std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"-m", module, "-N", "1", "-n", "1", "-c", cores, "-o", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"sh", "-c", "while [ ! -e release ]; do sleep 0.02; done"});
    return Detach(arguments);
  }
  static void Release() { cluster_->scratch().Write("release", ""); }
  static bool Ended(const std::string& id) { return Run({"job", "wait", id}).code == 0; }
  void TearDown() override {
    if (cluster_ != nullptr) Release();
    SharedCluster::TearDown();
    if (cluster_ != nullptr) ::unlink((cluster_->scratch().path() + "/release").c_str());
  }
};

TEST_F(Queue, ComponentsStartTogetherOrNotAtAll) {
  const std::string holder = Holder("dam", "4");
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(holder, "RUNNING"); }));
  const std::string both =
      Detach({"-o", "none", "-m", "dam", "-c", "4", "true", ":", "-m", "booster", "-n", "8", "true"});
  EXPECT_EQ(Job(both)["state"].text(), "PENDING");
  EXPECT_EQ(cluster_->SlotsUsed(), 4)
      << "the free module's component holds slots though the other cannot start";
  EXPECT_THAT(Job(both)["reason"].text(), HasSubstr("dam"));
  Release();
  EXPECT_TRUE(Ended(both));
}

TEST_F(Queue, AShortJobIsBackfilledBehindOneThatWaitsAndALongOneIsNot) {
  // The holder has a core of dn0 for ten minutes at most; the wide job wants all four and waits for its end.
  const std::string holder = Holder("dam", "3", {"-t", "10"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(holder, "RUNNING"); }));
  const std::string wide = Detach({"-m", "dam", "-c", "4", "-t", "10", "-o", "none", "true"});
  EXPECT_TRUE(JobIsIn(wide, "PENDING"));
  const std::string late = Detach({"-m", "dam", "-c", "1", "-t", "60", "-o", "none", "true"});
  EXPECT_EQ(Run({"run", "-m", "dam", "-c", "1", "-t", "1", "true"}).code, 0) << "the short job waited";
  EXPECT_TRUE(JobIsIn(wide, "PENDING"));
  EXPECT_TRUE(JobIsIn(late, "PENDING")) << "a job that would delay the wide one was started";
  Release();
  EXPECT_TRUE(Ended(wide));
  EXPECT_TRUE(Ended(late));
}

TEST_F(Queue, AJobThatMustNotWaitGivesUpWithCodeSix) {
  const std::string holder = Holder("dam", "4");
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(holder, "RUNNING"); }));
  const Outcome outcome = Run({"run", "-m", "dam", "-I", "true"});
  EXPECT_EQ(outcome.code, 6) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("dam"));
}

TEST_F(Queue, ARunThatWaitsSaysWhyAndStartsByItself) {
  const std::string holder = Holder("dam", "4");
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(holder, "RUNNING"); }));
  Process run(cluster_->Msactl({"run", "-m", "dam", "echo", "finally"}));
  ASSERT_TRUE(run.ReadUntilText("queued")) << run.err();
  Release();
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "finally\n");
}

TEST_F(Queue, ADrainedNodeStartsNothingNewAndResumes) {
  ASSERT_EQ(Run({"node", "drain", "bn1", "--reason", "fan replaced"}).code, 0);
  EXPECT_EQ(Run({"run", "-m", "booster", "-I", "-w", "bn1", "true"}).code, 6);
  EXPECT_EQ(Run({"run", "-m", "booster", "sh", "-c", "echo $MSA_NODE"}).out, "bn0\n");
  EXPECT_THAT(Run({"node", "list"}).out, HasSubstr("fan replaced"));
  ASSERT_EQ(Run({"node", "resume", "bn1"}).code, 0);
  EXPECT_EQ(Run({"run", "-m", "booster", "-w", "bn1", "sh", "-c", "echo $MSA_NODE"}).out, "bn1\n");
}

TEST_F(Queue, ANodeRangeStartsWithWhatFits) {
  ASSERT_EQ(Run({"node", "drain", "bn1", "--reason", "away"}).code, 0);
  EXPECT_EQ(Run({"run", "-m", "booster", "-N", "1-2", "sh", "-c", "echo $MSA_NODELIST"}).out, "bn0\n");
  ASSERT_EQ(Run({"node", "resume", "bn1"}).code, 0);
  EXPECT_EQ(Lines(Run({"run", "-m", "booster", "-N", "1-2", "sh", "-c", "echo $MSA_NODE"}).out).size(), 2u);
}

TEST_F(Queue, ACancelledPendingJobNeverRuns) {
  const std::string holder = Holder("dam", "4");
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(holder, "RUNNING"); }));
  const std::string waiting = Detach({"-m", "dam", "-o", "none", "touch", "never"});
  EXPECT_EQ(Run({"job", "cancel", waiting}).code, 0);
  EXPECT_TRUE(JobIsIn(waiting, "CANCELLED"));
  Release();
  ASSERT_TRUE(Ended(holder));
  EXPECT_NE(::access((cluster_->scratch().path() + "/never").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace msa::e2e
