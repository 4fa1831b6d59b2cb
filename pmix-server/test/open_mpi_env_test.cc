#include "msa/pmix/open_mpi_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::pmix {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

OpenMpiEnvironmentOptions TwoOnAFreeMachine() {
  return {.shm_directory = "/dev/shm/x",
          .topology_xml = "/d/hwloc.xml",
          .world_size = 2,
          .tasks_on_machine = 2,
          .machine_cores = 4};
}

TEST(OpenMpiEnvironment, ReplacesWhatAChildInheritsOfItsParent) {
  const auto environment = OpenMpiEnvironment({"A=1", "OMPI_MCA_orte_ess_num_procs=16",
                                               "OMPI_MCA_btl_vader_backing_directory=/dev/shm/parent", "B=2"},
                                              TwoOnAFreeMachine());
  EXPECT_THAT(environment, Contains("OMPI_MCA_orte_ess_num_procs=2"));
  EXPECT_THAT(environment, Contains("OMPI_MCA_btl_vader_backing_directory=/dev/shm/x"));
  EXPECT_THAT(environment, Not(Contains("OMPI_MCA_orte_ess_num_procs=16")));
  EXPECT_EQ(environment.front(), "A=1");
  EXPECT_THAT(environment, Contains("B=2"));
}

TEST(OpenMpiEnvironment, NamesTheManagerTheStoreAndTheTopology) {
  const auto environment = OpenMpiEnvironment({}, TwoOnAFreeMachine());
  for (const char* line :
       {"JSM_JSRUN_PORT=1", "PMIX_MCA_gds=hash", "HWLOC_XMLFILE=/d/hwloc.xml", "HWLOC_THISSYSTEM=1",
        "HWLOC_THISSYSTEM_ALLOWED_RESOURCES=1", "HWLOC_PLUGINS_PATH=/none"})
    EXPECT_THAT(environment, Contains(line));
}

TEST(OpenMpiEnvironment, WithoutATopologyTasksLookForThemselves) {
  auto options = TwoOnAFreeMachine();
  options.topology_xml.clear();
  EXPECT_THAT(OpenMpiEnvironment({}, options), Not(Contains(StartsWith("HWLOC_"))));
}

TEST(OpenMpiEnvironment, TasksYieldOnlyWhenTheyOutnumberTheCores) {
  auto options = TwoOnAFreeMachine();
  EXPECT_THAT(OpenMpiEnvironment({}, options), Not(Contains(StartsWith("OMPI_MCA_mpi_yield_when_idle"))));
  options.tasks_on_machine = 5;
  EXPECT_THAT(OpenMpiEnvironment({}, options), Contains("OMPI_MCA_mpi_yield_when_idle=1"));
  EXPECT_THAT(OpenMpiEnvironment({"OMPI_MCA_mpi_yield_when_idle=0"}, options),
              Contains("OMPI_MCA_mpi_yield_when_idle=0"))
      << "the user's word stands";
}

TEST(OpenMpiEnvironment, LoopbackIsNamedOnlyWhereItIsAlone) {
  auto options = TwoOnAFreeMachine();
  EXPECT_THAT(OpenMpiEnvironment({}, options), Not(Contains(StartsWith("OMPI_MCA_btl_tcp_if_include"))));
  options.network = Network::kOnlyLoopback;
  EXPECT_THAT(OpenMpiEnvironment({}, options), Contains("OMPI_MCA_btl_tcp_if_include=lo"));
  EXPECT_THAT(OpenMpiEnvironment({"OMPI_MCA_btl_tcp_if_include=eth1"}, options),
              Contains("OMPI_MCA_btl_tcp_if_include=eth1"));
}

TEST(SetVariable, KeepsThePlaceAndRemovesRepetitions) {
  std::vector<std::string> environment{"A=1", "B=2", "AB=3", "A=4"};
  SetVariable(environment, "A", "x");
  EXPECT_THAT(environment, ElementsAre("A=x", "B=2", "AB=3"));
  EXPECT_EQ(GetVariable(environment, "AB"), "3");
  EXPECT_EQ(GetVariable(environment, "C"), std::nullopt);
}

TEST(ParentPort, IsReadFromTheAppsEnvironment) {
  EXPECT_EQ(ParentPort({"X=1", "OMPI_PARENT_PORT=12.0:3"}), "12.0:3");
  EXPECT_EQ(ParentPort({"X=1"}), std::nullopt);
}

}  // namespace
}  // namespace msa::pmix
