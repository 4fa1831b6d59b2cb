// Two jobs of one user meet: MPI_Open_port, MPI_Comm_accept, MPI_Comm_connect and published names, with real
// daemons and unmodified Open MPI.
#include <signal.h>

#include <fmt/format.h>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

// cn[0-1] of 4 cores (module cluster), bn[0-1] of 8 (booster), dn0 of 4 (dam).
class Connect : public SharedCluster {
 protected:
  static std::vector<std::string> Line(std::vector<std::string> place, std::vector<std::string> options) {
    place.insert(place.begin(), "run");
    place.push_back(ProgramPath("mpi_connect"));
    place.insert(place.end(), options.begin(), options.end());
    return place;
  }
  // A job of its own, by msactl run.
  static std::unique_ptr<Process> Begin(std::vector<std::string> place, std::vector<std::string> options) {
    return std::make_unique<Process>(cluster_->Msactl(Line(std::move(place), std::move(options))));
  }
  static Outcome Whole(std::vector<std::string> place, std::vector<std::string> options) {
    return Run(Line(std::move(place), std::move(options)), 120s);
  }
  static std::string IdOf(const std::string& name) {
    const Json jobs = cluster_->Query({"job", "list"});
    for (const Json& job : jobs["items"].list())
      if (job["name"].text() == name) return job["id"].text();
    return "";
  }
  static std::string PortFile() { return cluster_->scratch().path() + "/port"; }

  const std::vector<std::string> server_ = {"-J", "server", "-m", "cluster", "-N", "2", "-n", "3"};
  const std::vector<std::string> client_ = {"-J", "client", "-m", "booster", "-N", "2", "-n", "2"};
};

TEST_F(Connect, ThreeClientsOfAnotherModuleFindAServerByItsName) {
  auto server = Begin(server_, {"server", "ocean", "3"});
  ASSERT_TRUE(server->ReadUntilText("server listens", 60s)) << server->out();
  for (int i = 0; i < 3; ++i) {
    const Outcome client = Whole(client_, {"client", "ocean"});
    EXPECT_EQ(client.code, 0) << client.Text();
    EXPECT_THAT(client.out, HasSubstr("client done remote=3 wrong=0"));
  }
  const Outcome outcome = server->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  for (const char* line : {"server client 0 remote=2 wrong=0", "server client 2 remote=2 wrong=0"})
    EXPECT_THAT(outcome.out, HasSubstr(line));
}

TEST_F(Connect, AClientThatIsFirstWaitsForTheName) {
  auto client = Begin(client_, {"client", "late"});
  ASSERT_TRUE(client->ReadUntilText("client waits", 60s)) << client->out();
  const Outcome server = Whole(server_, {"server", "late", "1"});
  EXPECT_EQ(server.code, 0) << server.Text();
  const Outcome outcome = client->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
}

TEST_F(Connect, APortGoesFromHandToHandToo) {
  auto client = Begin({"-m", "cluster", "-n", "1"}, {"client", "@" + PortFile()});
  // The same nodes: jobs that share one talk over TCP.
  const Outcome server = Whole({"-m", "cluster", "-n", "2"}, {"server", "@" + PortFile(), "1"});
  EXPECT_EQ(server.code, 0) << server.Text();
  const Outcome outcome = client->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
}

TEST_F(Connect, TwoServersAndClientsThatComeAtOnce) {
  const std::vector<std::string> one = {"-m", "booster", "-n", "1"};
  auto red = Begin({"-m", "cluster", "-n", "2"}, {"server", "red", "3"});
  auto blue = Begin({"-m", "cluster", "-n", "1"}, {"server", "blue", "1"});
  std::vector<std::unique_ptr<Process>> clients;
  for (const char* name : {"red", "blue", "red", "red"}) clients.push_back(Begin(one, {"client", name}));
  for (auto& client : clients) {
    const Outcome outcome = client->Wait();
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
  }
  EXPECT_EQ(red->Wait().code, 0);
  EXPECT_EQ(blue->Wait().code, 0);
}

TEST_F(Connect, AnUnknownNameIsAnErrorAtOnceAndATakenOneIsRefused) {
  const Outcome outcome = Whole({"-n", "1"}, {"names", "lake"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("MPI_Lookup_name failed class=38"), HasSubstr("names same"),
                                 HasSubstr("MPI_Publish_name failed"), Not(HasSubstr("MPI_Unpublish_name"))))
      << outcome.out;
  auto server = Begin({"-n", "1"}, {"server", "lake", "1"});
  ASSERT_TRUE(server->ReadUntilText("server listens", 60s));
  const Outcome second = Whole({"-n", "1"}, {"server", "lake", "1"});
  EXPECT_EQ(second.code, 3) << second.Text();
  EXPECT_THAT(second.out, HasSubstr("MPI_Publish_name failed"));
  EXPECT_EQ(Whole({"-n", "1"}, {"client", "lake"}).code, 0);
  EXPECT_EQ(server->Wait().code, 0);
}

TEST_F(Connect, APortWhoseJobHasEndedIsRefusedWithTheReason) {
  const Outcome server = Whole({"-n", "1"}, {"server", "@" + PortFile(), "0"});
  ASSERT_EQ(server.code, 0) << server.Text();
  // One rank: of several, Open MPI 4.1 returns at the root alone.
  const Outcome client = Whole({"-n", "1"}, {"client", "@" + PortFile()});
  EXPECT_EQ(client.code, 3) << client.Text();
  EXPECT_THAT(client.out, HasSubstr("client rank 0: MPI_Comm_connect failed"));
  EXPECT_THAT(client.err, HasSubstr("which opened the port, has ended"));
  EXPECT_LT(client.wall, 30s);
}

TEST_F(Connect, ANameThatWasNotPublishedIsNoPortAtAnyRank) {
  const Outcome client = Whole({"-m", "booster", "-n", "3"}, {"client", "port:harbour"});
  EXPECT_EQ(client.code, 3) << client.Text();
  for (const char* rank : {"0", "1", "2"})
    EXPECT_THAT(client.out, HasSubstr(fmt::format(
                                "client rank {}: MPI_Comm_connect failed class=43 text=MPI_ERR_PORT: "
                                "MPI_Comm_connect: 'harbour' is no port; expected what MPI_Open_port or "
                                "MPI_Lookup_name gave",
                                rank)));
}

TEST_F(Connect, AClientThatIsKilledDoesNotTakeTheServerWithIt) {
  auto server = Begin({"-J", "server", "-m", "cluster", "-n", "1"}, {"server", "pond", "1"});
  ASSERT_TRUE(server->ReadUntilText("server listens", 60s));
  const Outcome client = Whole({"-m", "booster", "-n", "1"}, {"client", "pond", "die"});
  EXPECT_EQ(client.code, 137) << client.Text();
  // Open MPI itself never completes a receive from a dead process: the job goes on as it is.
  ASSERT_TRUE(server->ReadUntilText("server connected", 60s));
  const std::string id = IdOf("server");
  ASSERT_NE(id, "");
  EXPECT_TRUE(JobIsIn(id, "RUNNING"));
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  EXPECT_NE(server->Wait().code, 0);
}

TEST_F(Connect, ACancelledServerFailsTheClientThatWaitsForIt) {
  auto server = Begin({"-J", "server", "-m", "cluster", "-n", "1"}, {"server", "tarn", "2"});
  auto first = Begin({"-J", "first", "-m", "booster", "-n", "1"}, {"client", "tarn", "stay"});
  ASSERT_TRUE(server->ReadUntilText("server connected", 60s)) << server->out();
  // The server talks to the first and accepts nobody else.
  auto second = Begin({"-m", "booster", "-n", "1"}, {"client", "tarn"});
  ASSERT_TRUE(second->ReadUntilText("client connects", 60s)) << second->out();
  EXPECT_EQ(Run({"job", "cancel", IdOf("server")}).code, 0);
  EXPECT_NE(server->Wait().code, 0);
  const Outcome refused = second->Wait();
  EXPECT_EQ(refused.code, 3) << refused.Text();
  EXPECT_THAT(refused.out, HasSubstr("client rank 0: MPI_Comm_connect failed"));
  const std::string id = IdOf("first");
  EXPECT_TRUE(JobIsIn(id, "RUNNING")) << "its partner's end is not its own";
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  EXPECT_NE(first->Wait().code, 0);
}

TEST_F(Connect, AServerThatWaitsOutlivesTheController) {
  auto server = Begin({"-m", "cluster", "-n", "2"}, {"server", "fjord", "2"});
  ASSERT_TRUE(server->ReadUntilText("server listens", 60s));
  ASSERT_EQ(Whole({"-m", "booster", "-n", "1"}, {"client", "fjord"}).code, 0);
  ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
  const Outcome client = Whole({"-m", "booster", "-n", "1"}, {"client", "fjord"});
  EXPECT_EQ(client.code, 0) << client.Text();
  EXPECT_EQ(server->Wait().code, 0);
}

}  // namespace
}  // namespace msa::e2e
