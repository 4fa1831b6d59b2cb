// Windows in network attached memory as programs of both MPIs have them, with real daemons, mapped and over
// the fabric.
#include <fmt/format.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

struct Way {
  std::string prefix;  // of the programs: of Open MPI or of MPICH
  std::string transport;
};

class NamWindows : public SharedCluster, public testing::WithParamInterface<Way> {
 protected:
  // `ranks` tasks of a program; what they print.
  static Outcome Tasks(int ranks, std::vector<std::string> program, std::vector<std::string> options = {}) {
    // Open MPI 4.1.4: its own windows over vader crash (osc/rdma), those of shared memory do not.
    std::vector<std::string> arguments = {"run", "-n", std::to_string(ranks), "--nam", "64M"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(),
                     {"env", "OMPI_MCA_osc=sm", "MSA_NAM_TRANSPORT=" + GetParam().transport});
    arguments.insert(arguments.end(), program.begin(), program.end());
    return Run(std::move(arguments), 120s);
  }
  static Outcome Window(int ranks, std::vector<std::string> words) {
    words.insert(words.begin(), ProgramPath(GetParam().prefix + "nam_window"));
    return Tasks(ranks, std::move(words));
  }
  static void Claim(int ranks, std::vector<std::string> words) {
    const Outcome outcome = Window(ranks, words);
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("ok " + words[0])) << outcome.Text();
  }
  static std::string PortOf(const Outcome& outcome) {
    for (const std::string& line : Lines(outcome.out))
      if (line.starts_with("port ")) return line.substr(5);
    ADD_FAILURE() << "no port: " << outcome.Text();
    return "";
  }
  static std::string Name(const std::string& what) {
    return what + "." + GetParam().prefix + "x." + GetParam().transport;
  }
};

TEST_P(NamWindows, APersistentWindowIsReadByJobsOfOtherSizesUntilItIsDeleted) {
  const Outcome created = Window(3, {"create", Name("kept")});
  ASSERT_EQ(created.code, 0) << created.Text();
  EXPECT_THAT(created.out, HasSubstr(GetParam().transport == "fabric" ? "base null" : "base mapped"));
  const std::string port = PortOf(created);
  Claim(2, {"attach", port, "3"});
  Claim(4, {"attach", port, "3"});
  Claim(1, {"attach", Name("kept"), "3"});
  Claim(2, {"attach", "msa-nam:" + Name("kept"), "3"});
  Claim(2, {"taken", Name("kept")});
  Claim(2, {"delete", port});
  const Outcome refused = Window(2, {"refused", port});
  EXPECT_EQ(refused.code, 0) << refused.Text();
  EXPECT_THAT(refused.out, HasSubstr("error connect: MPI_ERR_PORT: "));
  const Outcome unknown = Window(2, {"refused", "msa-nam:" + Name("kept")});
  EXPECT_EQ(unknown.code, 0) << unknown.Text();
  EXPECT_THAT(unknown.out, HasSubstr("error connect: MPI_ERR_PORT: "));
  EXPECT_THAT(unknown.out, HasSubstr(Name("kept")));
}

TEST_P(NamWindows, ANameThatIsNoPortIsRefusedAtAllRanksAtOnce) {
  for (const char* port : {"harbour", "17.x:3", "1.2:3:accept"}) {
    const Outcome outcome = Window(2, {"refused", port});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr(fmt::format("MPI_ERR_PORT: MPI_Comm_connect: '{}' is no port", port)));
  }
}

TEST_P(NamWindows, ErrorsTellTheirNumbersAndTouchNothing) {
  const Outcome outcome = Window(2, {"errors"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out,
              HasSubstr("displacement 512 * 8 bytes and 8 bytes from there leave segment 1, which "
                        "has 4096 bytes"));
  Claim(3, {"bad-unit"});
  Claim(2, {"bad-name", "/etc/no name"});
}

TEST_P(NamWindows, AnAllotmentThatIsTooSmallIsNoMemoryAtAllRanks) {
  const Outcome outcome = Window(2, {"too-big"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("error too big: MPI_ERR_NO_MEM: "));
}

TEST_P(NamWindows, ExclusiveLocksLoseNoUpdateAndDriveMessagesWhileTheyWait) { Claim(3, {"locks"}); }

TEST_P(NamWindows, FencesAndPostStartCompleteWaitOrderAccesses) { Claim(3, {"active"}); }

TEST_P(NamWindows, PostStartCompleteWaitTakesTheProcessItselfToo) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome = Tasks(ranks, {ProgramPath(GetParam().prefix + "nam_window_cases"), "self"});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("ok self"));
  }
}

TEST_P(NamWindows, ThreadsThatComeAtOnceToATargetOfALockAllEpochAreAllLetIn) {
  const std::string rounds = GetParam().transport == "fabric" ? "300" : "3000";
  const Outcome outcome = Tasks(2, {ProgramPath(GetParam().prefix + "nam_window_cases"), "threads", rounds});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("ok threads")) << outcome.Text();
}

TEST_P(NamWindows, AnExclusiveLockComesWithinATurnOfReadersInRelay) {
  const Outcome outcome = Tasks(4, {ProgramPath(GetParam().prefix + "nam_window_cases"), "relay"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("ok relay")) << outcome.Text();
}

TEST_P(NamWindows, LockAllKeepsOthersFromTheProcesssOwnMemoryBeforeAnyCall) {
  const Outcome outcome = Tasks(2, {ProgramPath(GetParam().prefix + "nam_window_cases"), "own"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("ok own")) << outcome.Text();
}

TEST_P(NamWindows, AnUnknownKindOfMemoryIsRefusedRatherThanVolatile) {
  for (const std::string key : {"deep_mem_kind", "msa_mem_kind"}) {
    const Outcome outcome = Tasks(2, {ProgramPath(GetParam().prefix + "nam_window_cases"), "kind", key,
                                      "bogus", "DEEP_NAM", "deep_nam_persistant", "deep_nam", "nam"});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    for (const char* value : {"bogus", "DEEP_NAM", "deep_nam_persistant"})
      EXPECT_THAT(outcome.out, HasSubstr(fmt::format(
                                   "MPI_ERR_INFO_VALUE: MPI_Win_allocate: {} is '{}'; expected deep_nam or "
                                   "deep_nam_persistent (msa_mem_kind: nam, nam_persistent too), in lower "
                                   "case; leave the key out for the MPI's own memory",
                                   key, value)));
    for (const char* value : {"allocated deep_nam", "allocated nam"})
      EXPECT_THAT(outcome.out, HasSubstr(value)) << key;
  }
}

TEST_P(NamWindows, ContendedFetchAndOpGivesEachNumberOnce) { Claim(4, {"count", "2000"}); }

TEST_P(NamWindows, PlainUpdatesUnderExclusiveLocksAndAtomicOnesUnderSharedLocksLoseNone) {
  Claim(3, {"mixed", GetParam().transport == "fabric" ? "400" : "20000"});
}

TEST_P(NamWindows, RequestsCompleteUnderTheWaitAndTestFamilies) { Claim(2, {"requests"}); }

TEST_P(NamWindows, WindowsOfTheMpiItselfAreLeftAlone) { Claim(2, {"ordinary"}); }

TEST_P(NamWindows, ManyWindowsLiveSideBySide) { Claim(2, {"many"}); }

TEST_P(NamWindows, RandomOperationsEqualThoseOnTheMpisOwnWindow) {
  for (const char* seed : {"11", "12"}) {
    // Open MPI 4.1.4's own sums of 8 and 16 bits stop at the largest number where AVX does them; NAM's wrap,
    // as C's.
    const Outcome outcome = Tasks(
        3, {"env", "OMPI_MCA_op=^avx", ProgramPath(GetParam().prefix + "nam_differential"), seed, "400"});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("equal: 3 ranks, 400 operations each"));
  }
}

TEST_P(NamWindows, SpecialNumbersAndEveryTypeComeOutAsMpiSays) {
  const Outcome outcome =
      Tasks(2, {"env", "OMPI_MCA_op=^avx", ProgramPath(GetParam().prefix + "nam_values")});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("ok values"));
}

TEST_P(NamWindows, FortranProgramsHaveThemThroughEachBinding) {
  for (const char* binding : {"mpifh", "usempi", "f08"}) {
    const Outcome outcome = Tasks(2, {ProgramPath(GetParam().prefix + "nam_window_" + binding)});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("segments 2, sizes ok")) << binding << outcome.Text();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, NamWindows,
                         testing::Values(Way{"", "local"}, Way{"", "fabric"}, Way{"mpich_", "local"},
                                         Way{"mpich_", "fabric"}),
                         [](const auto& info) {
                           return (info.param.prefix.empty() ? "OpenMpi_" : "Mpich_") + info.param.transport;
                         });

class NamWindowsOnce : public SharedCluster {};

TEST_F(NamWindowsOnce, RputOverTheFabricOverlapsWithComputing) {
  for (const char* program : {"nam_window", "mpich_nam_window"}) {
    const std::string sign = cluster_->dir() + "/seen-" + program;
    const Outcome outcome =
        Run({"run", "-n", "2", "--nam", "256M", "env", "OMPI_MCA_osc=sm", "MSA_NAM_TRANSPORT=fabric",
             ProgramPath(program), "overlap", "100000000", sign},
            120s);
    ASSERT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("ok overlap")) << program;
    const auto at = outcome.out.find("rounds of computing: ");
    ASSERT_NE(at, std::string::npos) << outcome.Text();
    EXPECT_GT(std::stol(outcome.out.substr(at + 21)), 1) << program << ": done at once, it would be 1";
  }
}

// MPICH 4.0.2 itself makes some 1,000 of any kind, as it has 2,048 communicators.
TEST_F(NamWindowsOnce, TenThousandWindowsInARowAndAsManyAtOnceAsTheMpiMakes) {
  const auto handles = [](const char* program, int ranks) {
    return Run({"run", "-n", std::to_string(ranks), "--nam", "1M", "env", "OMPI_MCA_osc=sm",
                ProgramPath(program), "handles", ranks == 1 ? "10000" : "1000", "4000"},
               120s);
  };
  for (const int ranks : {1, 2}) {
    const Outcome outcome = handles("nam_window_cases", ranks);
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_THAT(outcome.out, HasSubstr("open at once: 4000\n"));
    const Outcome mpich = handles("mpich_nam_window_cases", ranks);
    EXPECT_EQ(mpich.code, 0) << mpich.Text();
    EXPECT_THAT(mpich.out, testing::ContainsRegex("open at once: [0-9]{3}")) << mpich.Text();
  }
}

// Which makes no window in one process.
TEST_F(NamWindowsOnce, AWindowIsMadeWithTheSharedMemoryComponentOfOpenMpi) {
  const Outcome outcome =
      Run({"run", "-n", "2", "env", "OMPI_MCA_osc=sm", ProgramPath("nam_window"), "count", "100"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
}

// Whatever the MPI has for windows over nodes: Debian's Open MPI has none as it is configured.
TEST_F(NamWindowsOnce, AWindowOverTwoNodesNeedsNothingOfTheMpiBetweenThem) {
  for (const std::string prefix : {"", "mpich_"}) {
    const std::string name = prefix + "nodes";
    const auto booster = [&](std::vector<std::string> words) {
      std::vector<std::string> run = {"run", "-m", "booster", "-N", "2", "-n", "2", "--nam", "1M"};
      words[0] = ProgramPath(prefix + words[0]);
      run.insert(run.end(), words.begin(), words.end());
      const Outcome outcome = Run(std::move(run));
      EXPECT_EQ(outcome.code, 0) << outcome.Text();
      EXPECT_THAT(outcome.out, HasSubstr("ok " + words[1])) << outcome.Text();
    };
    booster({"nam_window", "create", name});
    booster({"nam_window", "attach", name, "2"});
    booster({"nam_window_cases", "group"});
    booster({"nam_window_cases", "self"});
    booster({"nam_window_cases", "threads", "100"});
    booster({"nam_window", "delete", name});
  }
}

TEST_F(NamWindowsOnce, AWindowOfOneMpiIsReadByTheOther) {
  const Outcome created =
      Run({"run", "-n", "3", "--nam", "1M", ProgramPath("nam_window"), "create", "across"});
  ASSERT_EQ(created.code, 0) << created.Text();
  const Outcome read = Run({"run", "-n", "2", ProgramPath("mpich_nam_window"), "attach", "across", "3"});
  EXPECT_EQ(read.code, 0) << read.Text();
  const Outcome deleted = Run({"run", "-n", "1", ProgramPath("mpich_nam_window"), "delete", "across"});
  EXPECT_EQ(deleted.code, 0) << deleted.Text();
}

TEST_F(NamWindowsOnce, PythonProgramsHaveThem) {
  const std::string example = MSA_EXAMPLES "/nam_window.py";
  const Outcome created = Run({"run", "-n", "2", "--nam", "1M", "/usr/bin/python3", example});
  ASSERT_EQ(created.code, 0) << created.Text();
  const std::string port = Lines(created.out).at(0).substr(5);
  const Outcome read = Run({"run", "-n", "3", "/usr/bin/python3", example, port, "delete"});
  EXPECT_EQ(read.code, 0) << read.Text();
  EXPECT_THAT(read.out, HasSubstr("python: 2 segments of [800, 800], sum 100"));
}

TEST_F(NamWindowsOnce, TheExamplesLeaveAndReadData) {
  const Outcome created = Run({"run", "-n", "4", "--nam", "1M", ProgramPath("nam_window_create"), "example"});
  ASSERT_EQ(created.code, 0) << created.Text();
  const std::string port = Lines(created.out).at(0).substr(5);
  const Outcome read = Run({"run", "-n", "2", ProgramPath("nam_window_attach"), port, "delete"});
  EXPECT_EQ(read.code, 0) << read.Text();
  EXPECT_EQ(read.out, "4 segments, sum 7998.000, read by 2 processes\n");
}

}  // namespace
}  // namespace msa::e2e
