// Buffers in the memory of a CUDA device, by a libcuda of the tests (tests/support/programs/cuda_double.c).
#include "shared_cluster.h"

namespace msa::e2e {
namespace {

struct Way {
  std::string prefix;  // of the programs: of Open MPI or of MPICH
  std::string transport;
};

class NamDevices : public SharedCluster, public testing::WithParamInterface<Way> {
 protected:
  static Outcome Device(const std::string& command, std::vector<std::string> environment) {
    std::vector<std::string> arguments = {
        "run", "-n", "2", "--nam", "1M", "env", "MSA_NAM_TRANSPORT=" + GetParam().transport};
    arguments.insert(arguments.end(), environment.begin(), environment.end());
    arguments.insert(arguments.end(), {ProgramPath(GetParam().prefix + "nam_device"), command});
    return Run(std::move(arguments), 60s);
  }
  static void Claim(const std::string& command,
                    std::vector<std::string> environment = {"LD_LIBRARY_PATH=" + ProgramPath("cuda")}) {
    const Outcome outcome = Device(command, std::move(environment));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("ok " + command)) << outcome.Text();
  }
};

TEST_P(NamDevices, PutsAndGetsGoThroughTheHost) { Claim("transfers"); }

TEST_P(NamDevices, AtomicsTakeOperandsAndGiveResultsThere) { Claim("atomics"); }

TEST_P(NamDevices, DerivedTypesTouchTheirOwnBytesAlone) { Claim("derived"); }

TEST_P(NamDevices, RequestsAreCompleteWithTheirData) { Claim("requests"); }

TEST_P(NamDevices, CopiesAreMadeInTheContextOfTheMemory) { Claim("context"); }

TEST_P(NamDevices, ADriverThatIsLoadedAfterTheWindowIsSeen) { Claim("late"); }

TEST_P(NamDevices, ManagedMemoryIsUsedWhereItLies) { Claim("managed"); }

TEST_P(NamDevices, StackVariablesAndHeapAreNotLookedUp) { Claim("lookups"); }

TEST_P(NamDevices, ADriverThatTheProgramDidNotInitialiseStaysSo) { Claim("untouched"); }

TEST_P(NamDevices, ADriverWithoutADeviceIsLeftAlone) {
  Claim("no-device", {"LD_LIBRARY_PATH=" + ProgramPath("cuda"), "CUDA_DOUBLE=no-device"});
}

TEST_P(NamDevices, NoDriverIsLoadedWhereThereIsNone) { Claim("without", {}); }

INSTANTIATE_TEST_SUITE_P(Each, NamDevices,
                         testing::Values(Way{"", "local"}, Way{"", "fabric"}, Way{"mpich_", "local"},
                                         Way{"mpich_", "fabric"}),
                         [](const auto& info) {
                           return (info.param.prefix.empty() ? "OpenMpi_" : "Mpich_") + info.param.transport;
                         });

}  // namespace
}  // namespace msa::e2e
