// MPI_Comm_spawn with msa_nam: the job's allotment of network attached memory grows, or nothing starts.
#include "shared_cluster.h"

namespace msa::e2e {
namespace {

// cn[0-1], bn[0-1], dn0, and nam0 with 1 GiB.
class NamSpawns : public SharedCluster {
 protected:
  static constexpr double kMiB = 1 << 20;

  static std::vector<std::string> Line(const std::string& nam, std::vector<std::string> options) {
    std::vector<std::string> line = {"run", "-m", "cluster", "-n", "2"};
    if (!nam.empty()) line.insert(line.end(), {"--nam", nam});
    line.push_back(ProgramPath("mpi_spawn_plan"));
    line.insert(line.end(), options.begin(), options.end());
    return line;
  }
  // MiB that the job may use; -1: it has no allotment.
  static double Allotment(const std::string& job) {
    const Json usage = cluster_->Query({"region", "df"});
    for (const Json& one : usage["jobs"].list())
      if (std::to_string(static_cast<long>(one["job"].number())) == job)
        return one["allotment"].number() / kMiB;
    return -1;
  }
};

TEST_F(NamSpawns, TheAllotmentGrowsByWhatTheSpawnAsksAndGoesWithTheJob) {
  const std::string leave = cluster_->scratch().path() + "/leave";
  std::vector<std::string> line = Line("64M", {"--maxprocs", "2", "--info", "msa_nam=96M", "--stay", leave});
  line.erase(line.begin());
  const std::string job = Detach(line);
  EXPECT_TRUE(Eventually(30s, "the allotment has grown", [&] { return Allotment(job) == 160; }))
      << Allotment(job) << " MiB";
  cluster_->scratch().Write("leave", "");
  EXPECT_TRUE(Eventually(30s, "the job has ended", [&] { return JobIsIn(job, "COMPLETED"); }));
  EXPECT_EQ(Allotment(job), -1);
}

TEST_F(NamSpawns, MoreThanIsFreeIsRefusedWithNumbersAndStartsNothing) {
  const std::string other = Detach({"--nam", "900M", "sleep", "600"});
  ASSERT_TRUE(Eventually(30s, "the other job runs", [&] { return JobIsIn(other, "RUNNING"); }));
  const Outcome refused = Run(Line("24M", {"--maxprocs", "2", "--info", "msa_nam=101M"}), 60s);
  EXPECT_EQ(refused.code, 0) << refused.Text();
  EXPECT_THAT(
      refused.out,
      AllOf(HasSubstr("parent 0: failed class=MPI_ERR_SPAWN"), HasSubstr("parent 1: failed"),
            HasSubstr("101M of network attached memory asked, 100M are free"), Not(HasSubstr("child rank="))))
      << refused.Text();
  // Each command's share counts.
  const Outcome both = Run(Line("24M", {"--maxprocs", "1,1", "--info", "msa_nam=51M"}), 60s);
  EXPECT_THAT(both.out, AllOf(HasSubstr("102M of network attached memory asked, 100M are free"),
                              Not(HasSubstr("child rank="))))
      << both.Text();
  const Outcome fits = Run(Line("24M", {"--maxprocs", "1,1", "--info", "msa_nam=50M"}), 60s);
  EXPECT_EQ(fits.code, 0) << fits.Text();
  EXPECT_THAT(fits.out, AllOf(HasSubstr("ok remote=2 inter=1"), Not(HasSubstr("failed")))) << fits.Text();
  ASSERT_EQ(Run({"job", "cancel", other}).code, 0);
  EXPECT_TRUE(Eventually(30s, "the other job has ended", [&] { return JobIsIn(other, "CANCELLED"); }));
}

TEST_F(NamSpawns, ARefusalLeavesTheAllotmentAndANextSpawnWorks) {
  const Outcome outcome = Run(Line("64M", {"--maxprocs", "1", "--info", "msa_nam=8T", "--times", "2"}), 60s);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("8T of network attached memory asked")) << outcome.Text();
  const Outcome wrong = Run(Line("", {"--maxprocs", "1", "--info", "msa_nam=much"}), 60s);
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("msa_nam"), HasSubstr("much"), Not(HasSubstr("child rank="))))
      << wrong.Text();
  const Outcome fine = Run(Line("", {"--maxprocs", "1", "--info", "msa_nam=64M"}), 60s);
  EXPECT_THAT(fine.out, HasSubstr("ok remote=1 inter=1")) << fine.Text();
}

}  // namespace
}  // namespace msa::e2e
