// Programs of others, unmodified from their Debian packages, on one world over two modules: HPC Challenge,
// LAMMPS and mpi4py. Each runs under Open MPI's mpirun and under msa; what it computed must be the same.
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLimit{300};

std::string DataFile(const std::string& name) { return std::string(MSA_E2E_DATA) + "/" + name; }

// "Key=value" lines of a report.
std::map<std::string, std::string> Pairs(const std::string& text) {
  std::map<std::string, std::string> pairs;
  for (const std::string& line : Lines(text))
    if (const auto at = line.find('='); at != std::string::npos)
      pairs[line.substr(0, at)] = line.substr(at + 1);
  return pairs;
}

// Numbers of one line; empty if a word is none.
std::vector<double> Numbers(const std::string& line) {
  std::istringstream in(line);
  std::vector<double> numbers;
  for (std::string word; in >> word;) {
    char* end = nullptr;
    numbers.push_back(std::strtod(word.c_str(), &end));
    if (*end != '\0') return {};
  }
  return numbers;
}

// The table that LAMMPS prints: a row of numbers for each step.
std::vector<std::vector<double>> Thermo(const std::string& text) {
  std::vector<std::vector<double>> rows;
  bool inside = false;
  for (const std::string& line : Lines(text)) {
    if (inside && line.starts_with("Loop time")) break;
    if (inside) rows.push_back(Numbers(line));
    inside = inside || line.find("Step ") != std::string::npos;
  }
  return rows;
}

bool Close(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

class Programs : public SharedCluster {
 protected:
  // Four ranks on few cores: one thread each, and one that waits lets others run, as mpirun sees to by
  // itself.
  static Command Quiet(Command command, const std::string& directory) {
    command.env.insert(
        {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}, {"OMPI_MCA_mpi_yield_when_idle", "1"}});
    command.cwd = directory;
    command.timeout = kLimit;
    return command;
  }
  // Four ranks under mpirun; the truth.
  static Outcome Mpirun(const std::vector<std::string>& program, const std::string& directory) {
    Command command;
    command.argv = {"mpirun.openmpi", "--oversubscribe", "-n", "4"};
    command.argv.insert(command.argv.end(), program.begin(), program.end());
    // mpirun asks for this as root; it changes nothing else.
    command.env = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    return RunCommand(Quiet(std::move(command), directory));
  }
  // Four ranks under msa: two on one node of the cluster, one on each of two nodes of the booster.
  static Outcome Msa(const std::vector<std::string>& program, const std::string& directory) {
    std::vector<std::string> arguments = {"run", "-m", "cluster", "-n", "2"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    arguments.insert(arguments.end(), {":", "-m", "booster", "-N", "2", "-n", "2"});
    arguments.insert(arguments.end(), program.begin(), program.end());
    return RunCommand(Quiet(cluster_->Msactl(arguments), directory));
  }
  // What hpcc wrote in a directory of its own, run by `launch`.
  static std::string Hpcc(const std::string& name,
                          Outcome (*launch)(const std::vector<std::string>&, const std::string&)) {
    const std::string directory = cluster_->scratch().path() + "/" + name;
    fs::create_directory(directory);
    fs::copy(DataFile("hpccinf.txt"), directory);
    const Outcome outcome = launch({"hpcc"}, directory);
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    return support::ReadFile(directory + "/hpccoutf.txt");
  }
};

// The suite's own verdicts on its answers.
void ExpectHpccPassed(const std::string& report) {
  const auto pairs = Pairs(report);
  const auto value = [&](const char* key) {
    const auto it = pairs.find(key);
    EXPECT_NE(it, pairs.end()) << key << " is missing in\n" << report;
    return it == pairs.end() ? std::nan("") : std::atof(it->second.c_str());
  };
  EXPECT_EQ(value("Success"), 1);
  EXPECT_EQ(value("CommWorldProcs"), 4);
  EXPECT_THAT(report, HasSubstr("...... PASSED"));
  EXPECT_THAT(report, Not(HasSubstr("FAILED")));
  EXPECT_THAT(report, HasSubstr("1 tests completed and passed residual checks,")) << "HPL";
  EXPECT_GE(value("PTRANS_residual"), 0) << "-1: it did not run";
  EXPECT_LT(value("PTRANS_residual"), 16);
  EXPECT_EQ(value("PTRANS_n"), 64);
  // Rounding of a transform of 2^12 numbers and back.
  EXPECT_LT(value("MPIFFT_maxErr"), 1e-13);
  EXPECT_GE(value("MPIFFT_maxErr"), 0);
  EXPECT_EQ(value("MPIFFT_Procs"), 4);
  EXPECT_EQ(value("MPIRandomAccess_Errors"), 0);
  EXPECT_EQ(value("MPIRandomAccess_LCG_Errors"), 0);
  for (const char* rate :
       {"HPL_Tflops", "PTRANS_GBs", "StarSTREAM_Copy", "StarSTREAM_Scale", "StarSTREAM_Add",
        "StarSTREAM_Triad", "StarDGEMM_Gflops", "StarFFT_Gflops", "MinPingPongBandwidth_GBytes"})
    EXPECT_GT(value(rate), 0) << rate;
  EXPECT_THAT(report, HasSubstr("Solution Validates")) << "STREAM";
}

TEST_F(Programs, HpccPassesItsOwnChecksWithTheNumbersThatItHasUnderMpirun) {
  const std::string truth = Hpcc("hpcc-mpirun", &Mpirun);
  const std::string report = Hpcc("hpcc-msa", &Msa);
  {
    const testing::ScopedTrace trace(__FILE__, __LINE__, "under mpirun");
    ExpectHpccPassed(truth);
  }
  ExpectHpccPassed(report);
  // What follows from input and number of ranks alone: sizes, and norms of the system that HPL solved.
  auto expected = Pairs(truth);
  auto found = Pairs(report);
  for (const char* key : {"HPL_N", "HPL_NB", "HPL_nprow", "HPL_npcol", "DGEMM_N", "PTRANS_n", "PTRANS_nb",
                          "MPIRandomAccess_N", "RandomAccess_N", "STREAM_VectorSize", "FFT_N", "MPIFFT_N"})
    EXPECT_EQ(found[key], expected[key]) << key;
  for (const char* key : {"HPL_Anorm1", "HPL_AnormI", "HPL_BnormI", "HPL_Xnorm1", "HPL_XnormI"})
    EXPECT_TRUE(Close(std::atof(found[key].c_str()), std::atof(expected[key].c_str())))
        << key << ": " << found[key] << " under msa, " << expected[key] << " under mpirun";
}

TEST_F(Programs, LammpsMeltsACrystalStepByStepAsUnderMpirun) {
  const std::vector<std::string> program = {"lmp", "-in", DataFile("lennard_jones.in"), "-log", "none"};
  const Outcome truth = Mpirun(program, cluster_->scratch().path());
  ASSERT_EQ(truth.code, 0) << truth.Text();
  const Outcome outcome = Msa(program, cluster_->scratch().path());
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("MPI processor grid"), HasSubstr("on 4 procs"))) << outcome.out;
  const auto expected = Thermo(truth.out);
  const auto found = Thermo(outcome.out);
  // Steps 0, 5, ... 60: step, temperature, potential, kinetic and total energy, pressure.
  ASSERT_EQ(expected.size(), 13u) << truth.out;
  ASSERT_EQ(found.size(), expected.size()) << outcome.out;
  for (std::size_t row = 0; row < expected.size(); ++row) {
    ASSERT_EQ(expected[row].size(), 6u) << truth.out;
    ASSERT_EQ(found[row].size(), 6u) << outcome.out;
    for (std::size_t column = 0; column < 6; ++column)
      EXPECT_TRUE(Close(found[row][column], expected[row][column]))
          << "step " << expected[row][0] << ", column " << column << ": " << found[row][column]
          << " under msa, " << expected[row][column] << " under mpirun";
  }
  // It is physics, too: the crystal melts, its energy stays.
  EXPECT_LT(found.back()[1], 1.0);
  EXPECT_NEAR(found.back()[4], found.front()[4], 0.02);
}

TEST_F(Programs, Mpi4pySpawnsMergesAndDisconnectsWithTheAnswersThatItHasUnderMpirun) {
  // By its path: another Python that stands first in PATH may have no mpi4py.
  const std::vector<std::string> program = {"/usr/bin/python3", DataFile("spawn.py")};
  const Outcome truth = Mpirun(program, cluster_->scratch().path());
  ASSERT_EQ(truth.code, 0) << truth.Text();
  ASSERT_EQ(Lines(truth.out).size(), 4u) << truth.Text();
  EXPECT_THAT(truth.out,
              AllOf(HasSubstr("alone: 2 children, sum 999011"), HasSubstr("merged: size 6, sum 21")));
  const Outcome outcome = Msa(program, cluster_->scratch().path());
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, truth.out) << outcome.Text();
  const Json job = Job(cluster_->Query({"job", "list", "-a", "-n", "1"})["items"].list().at(0)["id"].text());
  EXPECT_EQ(job["namespaces"].list().size(), 3u) << "the world and two spawns";
}

}  // namespace
}  // namespace msa::e2e
