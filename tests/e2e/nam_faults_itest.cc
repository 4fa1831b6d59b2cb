// NAM while its daemons are killed at random points: nothing that was acknowledged is lost, nothing is left
// over, and every call of a client ends by its deadline.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

// Each client's way to the memory.
constexpr const char* kTransports[] = {"local", "fabric", "local", "fabric"};

int Kills() {
  const char* wanted = std::getenv("MSA_NAM_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : 12;
}

using support::Millis;

class NamFaults : public SharedCluster {
 protected:
  // Kills one of `daemons` again and again while clients work, then lets them compare.
  void KillUnderLoad(const std::vector<std::string>& daemons, const std::string& prefix) {
    const std::string stop = cluster_->dir() + "/stop-" + prefix;
    std::vector<std::unique_ptr<Process>> clients;
    for (const char* transport : kTransports) {
      Command command;
      const std::string number = std::to_string(clients.size());
      command.argv = {ProgramPath("nam_load"), prefix + number, stop, number + "1"};
      command.env["MSA_DIR"] = cluster_->dir();
      command.env["MSA_NAM_TRANSPORT"] = transport;
      command.timeout = std::chrono::minutes(30);
      clients.push_back(std::make_unique<Process>(command));
    }
    std::minstd_rand random(4711);  // the points are chance anyway; the order of daemons need not be
    for (int i = 0; i < Kills(); ++i) {
      // The random point itself: right after its start, or so late that the supervisor takes it for a steady
      // one and starts the next without delay.
      const Millis wait(random() % 2 == 0 ? random() % 400 : 2000 + random() % 600);
      EXPECT_FALSE(clients[0]->ReadUntilText("never written", wait));
      const std::string& daemon = daemons[random() % daemons.size()];
      ASSERT_TRUE(Eventually(30s, daemon + " runs", [&] { return cluster_->Daemon(daemon) != 0; }));
      const Status killed = cluster_->KillDaemon(daemon);
      ASSERT_TRUE(killed.ok()) << killed.message();
    }
    ASSERT_TRUE(std::ofstream(stop).good());
    for (const auto& client : clients) {
      const Outcome outcome = client->Wait();
      EXPECT_EQ(outcome.code, 0) << outcome.Text();
      EXPECT_THAT(outcome.out, HasSubstr("ok regions="));
      RecordProperty("load", outcome.out);
    }
    NothingIsOrphaned();
  }

  void NothingIsOrphaned() {
    // What a daemon that was killed had begun is ended by the next one.
    Outcome check, names;
    EXPECT_TRUE(Eventually(30s, "fsck finds nothing", [&] {
      check = Run({"region", "fsck"});
      return check.code == 0;
    })) << check.Text();
    EXPECT_TRUE(Eventually(30s, "each region has its extent",
                           [&] {
                             names = Run({"region", "list", "-f", "name"});
                             return names.code == 0 && Extents().size() == Lines(names.out).size();
                           }))
        << Extents().size() << " extents of\n"
        << names.Text();
    for (const std::string& name : Lines(names.out)) {
      // Leases that nobody took over after a restart end within 10 s.
      Outcome removed;
      const bool gone = Eventually(30s, name + " is removed", [&] {
        removed = Run({"region", "rm", name.substr(name.find('/') + 1)});
        return removed.code == 0;
      });
      EXPECT_TRUE(gone) << removed.Text();
    }
    EXPECT_TRUE(Eventually(30s, "no extent is left", [&] { return Extents().empty(); }))
        << testing::PrintToString(Extents());
  }

  // Files of regions, pending ones too.
  std::vector<std::string> Extents() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(cluster_->dir() + "/nam/nam0")) {
      const std::string extension = entry.path().extension();
      if (extension == ".extent" || extension == ".pending") out.push_back(entry.path());
    }
    return out;
  }
};

TEST_F(NamFaults, NamdKilledAtRandomPointsLosesNothingAcknowledged) { KillUnderLoad({"namd-nam0"}, "n"); }

TEST_F(NamFaults, TheControllerKilledAtRandomPointsLosesNothingAcknowledged) {
  KillUnderLoad({"controller"}, "c");
}

TEST_F(NamFaults, AnyDaemonOfTheWayKilledLosesNothingAcknowledged) {
  KillUnderLoad({"namd-nam0", "controller", "noded-nam0"}, "a");
}

}  // namespace
}  // namespace msa::e2e
