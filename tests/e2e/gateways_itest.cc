// Gateway nodes of a local system: whose they are, who waits, and what the job is told.
#include <unistd.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class GatewayNodes : public SharedCluster {
 protected:
  static void SetUpTestSuite() {
    auto started = MiniCluster::Start(
        {.topology =
             "[[module]]\nname = \"cluster\"\nid = 0\n[[module.node]]\nnames = \"cn[0-1]\"\ncores = 4\n"
             "[[module]]\nname = \"edge\"\nid = 1\nkind = \"gateway\"\n[[module.node]]\nnames = "
             "\"gw[0-1]\"\ncores = 1\n"});
    ASSERT_TRUE(started.ok()) << started.status().message();
    cluster_ = *std::move(started);
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  static std::string Holder(const std::string& gateways) {
    return Detach(
        {"--gateways", gateways, "-o", "none", "sh", "-c", "while [ ! -e release ]; do sleep 0.02; done"});
  }
  static void Release() { cluster_->scratch().Write("release", ""); }
  void TearDown() override {
    if (cluster_ != nullptr) Release();
    SharedCluster::TearDown();
    if (cluster_ != nullptr) ::unlink((cluster_->scratch().path() + "/release").c_str());
  }
};

TEST_F(GatewayNodes, AreNamedToRunsScriptsAllocationsAndTheirSteps) {
  EXPECT_EQ(Run({"run", "--gateways", "2", "printenv", "MSA_GATEWAYS"}).out, "gw0,gw1\n");
  EXPECT_EQ(Run({"submit", "-W", "-o", "script.out", "--gateways=1", "--wrap",
                 "printenv MSA_GATEWAYS; " + support::BinaryPath("msactl") + " run printenv MSA_GATEWAYS"})
                .code,
            0);
  EXPECT_EQ(support::ReadFile(cluster_->scratch().path() + "/" + "script.out"), "gw0\ngw0\n");
  EXPECT_EQ(Run({"job", "alloc", "--gateways", "1", "printenv", "MSA_GATEWAYS"}).out, "gw0\n");
  EXPECT_EQ(Run({"run", "sh", "-c", "echo -$MSA_GATEWAYS-"}).out, "--\n");
}

TEST_F(GatewayNodes, BelongToOneJobAtATime) {
  const std::string first = Holder("1");
  const std::string second = Holder("1");
  ASSERT_TRUE(
      Eventually(30s, "they run", [&] { return JobIsIn(first, "RUNNING") && JobIsIn(second, "RUNNING"); }));
  EXPECT_EQ(Job(first)["gateways"].list()[0].text(), "gw0");
  EXPECT_EQ(Job(second)["gateways"].list()[0].text(), "gw1");
  const std::string third = Detach({"--gateways", "1", "-o", "third.out", "printenv", "MSA_GATEWAYS"});
  EXPECT_TRUE(JobIsIn(third, "PENDING"));
  EXPECT_EQ(Job(third)["reason"].text(), "resources: --gateways 1: 0 of 2 are free");
  EXPECT_EQ(Run({"run", "true"}).code, 0) << "who asks for none does not wait";
  Release();
  EXPECT_EQ(Run({"job", "wait", third}).code, 0);
  EXPECT_THAT(support::ReadFile(cluster_->scratch().path() + "/" + "third.out"), HasSubstr("gw"));
}

TEST_F(GatewayNodes, MoreThanExistAreRefusedWithCodeFive) {
  const Outcome outcome = Run({"run", "--gateways", "3", "true"});
  EXPECT_EQ(outcome.code, 5) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("--gateways 3: the system has 2"));
}

}  // namespace
}  // namespace msa::e2e
