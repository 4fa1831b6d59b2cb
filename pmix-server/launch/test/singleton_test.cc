#include "singleton.h"

#include <gmock/gmock.h>

#include "elf_needed.h"
#include "launcher_fixture.h"

namespace msa::launch {
namespace {

using Singletons = LauncherFixture;

TEST(ClassifyMaps, TellsInitialisedFromLinked) {
  const std::string open_mpi =
      "7f0-7f1 r-xp 0 08:01 1 /usr/lib/x86_64-linux-gnu/openmpi/lib/libmpi.so.40.30.4\n";
  const std::string mpich = "7f0-7f1 r-xp 0 08:01 1 /usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2\n";
  const auto map = [](const std::string& name) { return "7f2-7f3 r-xp 0 08:01 2 /usr/lib/x/" + name + "\n"; };
  EXPECT_EQ(ClassifyMaps(map("libc.so.6")).library, "");
  EXPECT_EQ(ClassifyMaps(open_mpi).library, "libmpi.so.40");
  EXPECT_FALSE(ClassifyMaps(open_mpi).initialised);
  EXPECT_TRUE(ClassifyMaps(open_mpi + map("mca_ess_singleton.so")).initialised);
  EXPECT_FALSE(ClassifyMaps(open_mpi + map("mca_ess_pmi.so")).initialised)
      << "below a server, ours or another";
  EXPECT_FALSE(ClassifyMaps(open_mpi + map("mca_ess_pmi.so") + map("mca_ess_singleton.so")).initialised)
      << "ompi_info";
  EXPECT_EQ(ClassifyMaps(mpich + map("libucp.so.0.0.0")).library, "libmpich.so.12");
  EXPECT_FALSE(ClassifyMaps(mpich + map("libuct.so.0.0.0")).initialised);
  EXPECT_TRUE(ClassifyMaps(mpich + map("libuct_cma.so.0.0.0")).initialised);
  EXPECT_FALSE(ClassifyMaps(map("libuct_cma.so.0.0.0")).initialised) << "UCX without MPI";
}

TEST(InspectionDue, GrowsAlways) {
  for (const std::string library : {"", "libmpi.so.40", "libmpich.so.12"}) {
    Millis last{0};
    for (int n = 0; n < 200; ++n) {
      EXPECT_GT(InspectionDue(n, library), last);
      last = InspectionDue(n, library);
    }
  }
}

TEST(LinkedMpi, IsReadFromTheProgram) {
  EXPECT_EQ(LinkedMpi(MSA_HELLO_OPENMPI), "libmpi.so.40");
  EXPECT_EQ(LinkedMpi(MSA_HELLO_MPICH), "libmpich.so.12");
  EXPECT_EQ(LinkedMpi("/bin/true"), "");
}

class SingletonsOf : public LauncherFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  // Nothing of a manager in the environment. Open MPI's own singleton daemon asks for ssh, which it then does
  // not use.
  TaskSpec Hello(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), GetParam());
    TaskSpec spec = Task(std::move(arguments));
    spec.env.push_back("OMPI_MCA_plm_rsh_agent=/bin/true");
    spec.env.push_back("HOME=" + directory_.path());
    spec.env.push_back("TMPDIR=" + directory_.path());
    return spec;
  }
};

TEST_P(SingletonsOf, AreSeen) {
  StartOne(Hello({}));
  const TaskExit exit = Exit();
  EXPECT_EQ(exit.end.exit_code, 0) << err_[Key(kNamespace, 0)];
  EXPECT_EQ(out_[Key(kNamespace, 0)], "rank 0 of 1\n");
  EXPECT_TRUE(exit.looks_like_singleton);
  EXPECT_THAT(exit.mpi_library, ::testing::StartsWith("libmpi"));
}

TEST_P(SingletonsOf, AreSeenBelowAShell) {
  TaskSpec spec = Hello({});
  spec.argv = {"/bin/sh", "-c", std::string(GetParam()) + "; true"};
  StartOne(std::move(spec));
  const TaskExit exit = Exit();
  EXPECT_EQ(out_[Key(kNamespace, 0)], "rank 0 of 1\n");
  EXPECT_TRUE(exit.looks_like_singleton);
}

TEST_P(SingletonsOf, AreNotProgramsThatOnlyPrintTheirHelp) {
  EXPECT_EQ(OutputOf(Hello({"--help"})), "usage\n");
  EXPECT_FALSE(exits_.begin()->second.looks_like_singleton);
  EXPECT_THAT(exits_.begin()->second.mpi_library, ::testing::StartsWith("libmpi"));
}

TEST_P(SingletonsOf, AreNotProgramsThatWaitWithoutMpiInit) {
  EXPECT_EQ(OutputOf(Hello({"--wait"})), "waited\n");
  EXPECT_FALSE(exits_.begin()->second.looks_like_singleton);
}

TEST_P(SingletonsOf, AreNotTasksThatConnected) {
  StartOne(Hello({}));
  launcher_->MarkConnected(kNamespace, Rank(0));
  EXPECT_FALSE(Exit().looks_like_singleton);
}

INSTANTIATE_TEST_SUITE_P(Mpi, SingletonsOf, ::testing::Values(MSA_HELLO_OPENMPI, MSA_HELLO_MPICH),
                         [](const auto& info) { return info.index == 0 ? "OpenMpi" : "Mpich"; });

TEST_F(Singletons, AreNotTasksOfAnMpiexecInsideTheTask) {
  TaskSpec spec = Task({"mpiexec.mpich", "-n", "2", MSA_HELLO_MPICH});
  spec.env.push_back("HOME=" + directory_.path());
  StartOne(std::move(spec));
  const TaskExit exit = Exit();
  EXPECT_EQ(exit.end.exit_code, 0) << err_[Key(kNamespace, 0)];
  EXPECT_THAT(out_[Key(kNamespace, 0)], ::testing::HasSubstr("rank 1 of 2"));
  EXPECT_FALSE(exit.looks_like_singleton);
}

}  // namespace
}  // namespace msa::launch
