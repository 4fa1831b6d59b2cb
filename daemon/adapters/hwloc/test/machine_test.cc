#include "msa/adapters/hwloc/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

namespace msa {
namespace {

using ::testing::HasSubstr;

// The CPUs that this process may use, as the kernel says.
CpuSet Affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  CpuSet out;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  return out;
}

CpuSet AllCores(const Machine& machine) {
  std::vector<std::uint16_t> cores(machine.description().cores);
  for (std::size_t i = 0; i < cores.size(); ++i) cores[i] = static_cast<std::uint16_t>(i);
  const auto cpus = machine.CpusOf(cores);
  EXPECT_TRUE(cpus.ok());
  return *cpus;
}

TEST(Machine, OffersExactlyTheCpusThatTheKernelAllows) {
  const auto machine = Machine::Measure();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(AllCores(*machine), Affinity());
  EXPECT_EQ(machine->description().threads, Affinity().size());
  EXPECT_GE(machine->description().cores, 1U);
  EXPECT_GE(machine->description().packages, 1U);
  EXPECT_GE(machine->description().numa_nodes, 1U);
  EXPECT_GT(machine->description().memory.value, std::uint64_t{1} << 20);
}

TEST(Machine, GivesCoresDisjointCpus) {
  const auto machine = Machine::Measure();
  ASSERT_TRUE(machine.ok());
  std::size_t sum = 0;
  for (std::uint16_t core = 0; core < machine->description().cores; ++core)
    sum += machine->CpusOf({core})->size();
  EXPECT_EQ(sum, AllCores(*machine).size());
}

TEST(Machine, NamesACoreThatDoesNotExist) {
  const auto machine = Machine::Measure();
  ASSERT_TRUE(machine.ok());
  const Status status = machine->CpusOf({0, 60000}).status();
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("core 60000 does not exist; this machine offers"));
}

TEST(Machine, CountsOnlyTheCpusThatItsAffinityLeaves) {
  const CpuSet before = Affinity();
  // The claim needs a CPU to take away. deploy/test fails on a skip, so a machine of one CPU says so loudly.
  if (before.size() < 2) GTEST_SKIP() << "this machine offers one CPU only: nothing to leave out";
  cpu_set_t all;
  cpu_set_t one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(before.back(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const auto machine = Machine::Measure();
  ::sched_setaffinity(0, sizeof all, &all);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->description().cores, 1U);
  EXPECT_EQ(*machine->CpusOf({0}), CpuSet{before.back()});
}

TEST(Machine, IsTheSameAfterAWayThroughXml) {
  const auto machine = Machine::Measure();
  ASSERT_TRUE(machine.ok());
  const support::ScratchDirectory scratch;
  const std::string path = scratch / "topology.xml";
  ASSERT_TRUE(machine->WriteXml(path).ok());
  const auto again = Machine::FromXml(path);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(AllCores(*again), AllCores(*machine));
  EXPECT_EQ(again->description().cores, machine->description().cores);
  EXPECT_EQ(again->description().memory, machine->description().memory);
  EXPECT_EQ(again->description().cpu_model, machine->description().cpu_model);
}

TEST(Machine, RefusesAFileThatHoldsNoTopology) {
  const support::ScratchDirectory scratch;
  const std::string path = scratch.Write("topology.xml", "<topology");
  const Status broken = Machine::FromXml(path).status();
  EXPECT_EQ(broken.code(), Code::kInvalidArgument);
  EXPECT_THAT(broken.message(), HasSubstr(path));
  EXPECT_EQ(Machine::FromXml("/nowhere/hwloc.xml").status().code(), Code::kNotFound);
}

TEST(Machine, TellsThatTheDirectoryOfTheXmlIsMissing) {
  const auto machine = Machine::Measure();
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->WriteXml("/nowhere/hwloc.xml").code(), Code::kNotFound);
}

TEST(CpuSet, IsWrittenAsRanges) {
  EXPECT_EQ(FormatCpuSet({}), "");
  EXPECT_EQ(FormatCpuSet({3}), "3");
  EXPECT_EQ(FormatCpuSet({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace msa
