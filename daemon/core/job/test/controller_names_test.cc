// Jobs of one user that connect: names, tickets, restarts.
#include "msa/job/port_name.h"

#include "harness.h"

namespace msa::job_test {
namespace {

const std::string kSecret(64, 'a');

class ControllerNames : public ::testing::Test {
 protected:
  ControllerNames() { h.RegisterAll(); }

  JobId Run(const UserIdentity& user = kAda) {
    auto request = Harness::Request(Harness::Spec("cluster", 1));
    request.user = user;
    const auto id = h.Submit(std::move(request));
    EXPECT_TRUE(id.ok());
    h.FromHead(*id, wire::JobStarted{1});
    h.Clear();
    return *id;
  }
  static wire::NamePublish Publish(const std::string& key,
                                   wire::NameChange change = wire::NameChange::kPublish) {
    return {1, change, {{key, "port", "n", 0}}, {}};
  }
  template <class M>
  std::vector<M> Told(JobId job) {
    std::vector<M> out;
    for (const auto& e : h.Sent<effect::SendToJobd>())
      if (e.job == job && e.type == M::kType) out.push_back(*wire::Decode<M>(e.payload));
    return out;
  }
  static std::uint32_t PortOf(JobId job) { return PortOwnerOf(fmt::format("msa.{}.1.0", job)); }
  void Offer(JobId asker, JobId owner, std::uint64_t request = 5) {
    h.FromHead(asker, wire::LinkAsk{request, PortOf(owner), kSecret});
  }

  Harness h;
};

TEST_F(ControllerNames, ANameIsFoundByAnotherJobOfTheUserUntilItsJobEnds) {
  const JobId server = Run();
  const JobId client = Run();
  h.FromHead(server, Publish("ocean"));
  EXPECT_EQ(Told<wire::NameAnswer>(server).at(0).status, wire::NameStatus::kOk);
  h.FromHead(client, wire::NameLookup{2, {"ocean"}, false, false});
  EXPECT_EQ(Told<wire::NameAnswer>(client).at(0).names.at(0).value, "port");
  h.End(server);
  h.Clear();
  h.FromHead(client, wire::NameLookup{3, {"ocean"}, false, false});
  EXPECT_EQ(Told<wire::NameAnswer>(client).at(0).status, wire::NameStatus::kNotFound);
}

TEST_F(ControllerNames, AnotherUsersJobFindsNeitherNameNorPort) {
  const JobId server = Run();
  const JobId stranger = Run(kBob);
  h.FromHead(server, Publish("ocean"));
  h.FromHead(stranger, wire::NameLookup{2, {"ocean"}, false, false});
  EXPECT_EQ(Told<wire::NameAnswer>(stranger).at(0).status, wire::NameStatus::kNotFound);
  Offer(stranger, server);
  h.Sleep(Millis(1500));
  Offer(stranger, server);
  EXPECT_TRUE(Told<wire::LinkOffer>(server).empty());
  EXPECT_EQ(Told<wire::LinkAnswer>(stranger).at(0).job, JobId());
}

TEST_F(ControllerNames, ATicketGoesToTheJobThatOpenedThePortAndItsAnswerBack) {
  const JobId server = Run();
  const JobId client = Run();
  Offer(client, server);
  const auto offer = Told<wire::LinkOffer>(server).at(0);
  EXPECT_EQ(offer.asker, client);
  EXPECT_EQ(offer.secret, kSecret);
  h.FromHead(server, wire::LinkReady{client, Incarnation(1), 5, "unix:/x", {}});
  const auto answer = Told<wire::LinkAnswer>(client).at(0);
  EXPECT_EQ(answer.job, server);
  EXPECT_EQ(answer.address, "unix:/x");
}

TEST_F(ControllerNames, PortsOfSpawnedNamespacesAreFoundToo) {
  const JobId server = Run();
  const JobId client = Run();
  wire::NamespaceReport report;
  report.nspace = "msa.1.1.0.4";
  h.FromHead(server, report);
  h.FromHead(client, wire::LinkAsk{5, PortOwnerOf("msa.1.1.0.4"), kSecret});
  EXPECT_EQ(Told<wire::LinkOffer>(server).size(), 1u);
}

TEST_F(ControllerNames, AForgedAnswerIsIgnored) {
  const JobId server = Run();
  const JobId client = Run();
  const JobId other = Run();
  const wire::LinkReady ready{client, Incarnation(1), 5, "unix:/evil", {}};
  h.FromHead(other, ready);  // nobody has asked
  Offer(client, server);
  h.FromHead(other, ready);  // not this one
  EXPECT_TRUE(Told<wire::LinkAnswer>(client).empty());
  h.FromHead(server, ready);
  h.FromHead(server, ready);  // a ticket serves once
  EXPECT_EQ(Told<wire::LinkAnswer>(client).size(), 1u);
}

TEST_F(ControllerNames, APortOfAJobThatHasEndedIsRefusedAtOnce) {
  const JobId server = Run();
  const JobId client = Run();
  h.End(server);
  Offer(client, server);
  const auto answer = Told<wire::LinkAnswer>(client).at(0);
  EXPECT_EQ(answer.job, JobId());
  EXPECT_EQ(answer.reason, "job 1, which opened the port, has ended");
}

TEST_F(ControllerNames, APortThatNobodyKnowsIsRefusedWhenItsReportCannotBeOnItsWayAnyMore) {
  const JobId client = Run();
  const wire::LinkAsk ask{5, 1234, kSecret};
  h.FromHead(client, ask);
  EXPECT_TRUE(Told<wire::LinkAnswer>(client).empty());
  h.Sleep(Millis(2000));
  h.FromHead(client, ask);
  EXPECT_EQ(Told<wire::LinkAnswer>(client).at(0).reason, "no running job of this user has opened the port");
}

TEST_F(ControllerNames, AJobThatAsksForTooManyLinksIsRefusedAndNoOther) {
  const JobId server = Run();
  const JobId greedy = Run();
  const JobId client = Run();
  for (std::uint64_t request = 1; request <= 65; ++request)
    h.FromHead(greedy, wire::LinkAsk{request, 1234, kSecret});
  ASSERT_EQ(Told<wire::LinkAnswer>(greedy).size(), 1u);
  EXPECT_EQ(Told<wire::LinkAnswer>(greedy)[0].reason, "64 links are being made already, the limit");
  Offer(client, server);
  EXPECT_EQ(Told<wire::LinkOffer>(server).size(), 1u);
}

TEST_F(ControllerNames, TheOtherSideOfALinkHearsOfAJobsEnd) {
  const JobId server = Run();
  const JobId client = Run();
  Offer(client, server);
  h.FromHead(server, wire::LinkReady{client, Incarnation(1), 5, "unix:/x", {}});
  h.End(client);
  EXPECT_EQ(Told<wire::LinkEnd>(server).at(0).job, client);
  h.Clear();
  h.End(server);
  EXPECT_TRUE(h.ToJobd<wire::LinkEnd>().empty());
}

TEST_F(ControllerNames, AfterARestartNobodyIsToldThatANameIsMissingBeforeAllHeadsHaveSpoken) {
  const JobId server = Run();
  const JobId client = Run();
  h.FromHead(server, Publish("ocean"));
  h.Restart();
  h.Clear();
  const wire::NameLookup lookup{2, {"ocean"}, false, false};
  h.FromHead(client, Publish("none", wire::NameChange::kAll));
  h.FromHead(client, lookup);
  h.FromHead(client, Publish("ocean"));
  EXPECT_TRUE(Told<wire::NameAnswer>(client).empty());
  auto all = Publish("ocean", wire::NameChange::kAll);
  all.links = {client};
  h.FromHead(server, all);
  h.FromHead(client, lookup);
  EXPECT_EQ(Told<wire::NameAnswer>(client).at(0).names.at(0).value, "port");
  h.FromHead(client, Publish("ocean"));
  EXPECT_EQ(Told<wire::NameAnswer>(client).at(1).status, wire::NameStatus::kTaken);
  h.End(client);
  EXPECT_EQ(Told<wire::LinkEnd>(server).size(), 1u) << "links are said again, too";
}

TEST_F(ControllerNames, AHeadThatStaysSilentAfterARestartIsNotWaitedForLong) {
  Run();
  const JobId client = Run();
  h.Restart();
  h.RegisterAll();
  h.Clear();
  const wire::NameLookup lookup{2, {"ocean"}, false, false};
  h.FromHead(client, lookup);
  EXPECT_TRUE(Told<wire::NameAnswer>(client).empty());
  h.now += ControllerOptions().node_timeout;
  h.FromHead(client, lookup);
  EXPECT_EQ(Told<wire::NameAnswer>(client).at(0).status, wire::NameStatus::kNotFound);
}

}  // namespace
}  // namespace msa::job_test
