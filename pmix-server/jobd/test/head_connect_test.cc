// The head's part in connections between jobs; the test plays the members, the controller and the head of job
// 9.
#include "msa/job/port_name.h"

#include "head_double.h"

namespace msa::jobd {
namespace {

const std::string kOwn = "msa.7.1.0";
const std::string kTheirs = "msa.9.1.0";

std::string PortOf(const std::string& nspace) { return fmt::format("{}.0:77", PortOwnerOf(nspace)); }

class HeadConnect : public HeadDouble {
 protected:
  static StorePublish Publish(const pmix::Proc& proc, const std::string& key,
                              pmix::Persistence persistence = pmix::Persistence::kFirstRead) {
    return {proc, pmix::Range::kSession, persistence, {{key, "value of " + key}}};
  }
  static StoreLookup Lookup(const pmix::Proc& proc, const std::string& key, bool wait = true,
                            std::uint32_t timeout_s = 600) {
    return {proc, {key}, pmix::Range::kSession, wait, timeout_s};
  }
  static ForeignRegister Their(const std::string& nspace) {
    ForeignRegister message;
    message.reg.spec.nspace = nspace;
    message.reg.spec.apps.resize(1);
    message.reg.spec.rank_member = {0};
    message.reg.nodes = {"job9.cn0"};
    message.reg.rank_node = {0};
    return message;
  }
  template <class M>
  void FromLink(const M& message, std::uint64_t id = 0, std::uint64_t link = 1) {
    head->OnLinkFrame(link, {M::kType, 0, id, wire::Encode(message)});
    Check();
  }
  template <class M>
  std::vector<std::pair<std::uint64_t, M>> ToldLink() const {
    std::vector<std::pair<std::uint64_t, M>> out;
    for (const Said& one : linked)
      if (one.type == M::kType) out.emplace_back(one.id, *wire::Decode<M>(one.payload));
    return out;
  }
  std::optional<StoreReply> Answer(std::uint32_t member, std::uint64_t id) const {
    for (const Said& one : said)
      if (one.member == member && one.type == StoreReply::kType && one.id == id)
        return *wire::Decode<StoreReply>(one.payload);
    return std::nullopt;
  }
  // Job 9 has connected to this one and introduced its namespace.
  void BeServer() {
    BeginRunning({0, 1});
    FromController(wire::LinkOffer{JobId(9), Incarnation(1), 3, std::string(64, 'b')});
    head->OnLinkUp(1);
    FromLink(Their(kTheirs));
    From(0, ForeignReady{kTheirs, {}});
    From(1, ForeignReady{kTheirs, {}});
  }
  // This job has a link to job 9, and a publish there under way.
  void BeClient() {
    BeginRunning({0, 1});
    From(0, Publish({kOwn, 0}, PortOf(kTheirs) + ":connect"), 50);
    const auto ask = ToldController<wire::LinkAsk>().at(0);
    FromController(wire::LinkAnswer{ask.request, JobId(9), Incarnation(1), "unix:/x", {}});
  }
};

TEST_F(HeadConnect, AsksTheControllerForTheJobOfAForeignPortAndPublishesThere) {
  BeClient();
  EXPECT_EQ(ToldController<wire::LinkAsk>().at(0).port_owner, PortOwnerOf(kTheirs));
  EXPECT_EQ(opened.at(1), "unix:/x");
  ASSERT_EQ(linked.size(), 2u);
  EXPECT_EQ(linked[0].type, ForeignRegister::kType) << "who we are comes first";
  const auto reg = ToldLink<ForeignRegister>().at(0).second.reg;
  EXPECT_EQ(reg.spec.nspace, kOwn);
  EXPECT_TRUE(reg.spec.env.empty());
  EXPECT_EQ(reg.nodes, (std::vector<std::string>{"job7.cn0", "job7.bn0"}));
  const auto forwarded = ToldLink<StorePublish>().at(0);
  EXPECT_FALSE(Answer(0, 50));
  FromLink(StoreReply{}, forwarded.first);
  ASSERT_TRUE(Answer(0, 50));
  EXPECT_EQ(Answer(0, 50)->status, pmix::kPmixSuccess);
}

TEST_F(HeadConnect, APortWithoutAJobFailsTheConnectWithTheReason) {
  BeginRunning({0, 1});
  From(0, Publish({kOwn, 0}, PortOf(kTheirs) + ":connect"), 50);
  Advance(Millis(2'000));
  EXPECT_EQ(ToldController<wire::LinkAsk>().size(), 2u) << "asked again until there is an answer";
  const auto ask = ToldController<wire::LinkAsk>().at(0);
  FromController(wire::LinkAnswer{ask.request, JobId(), Incarnation(), {}, "job 9 has ended"});
  ASSERT_TRUE(Answer(0, 50));
  EXPECT_NE(Answer(0, 50)->status, pmix::kPmixSuccess);
  EXPECT_NE(Notices().find("connect refused: job 9 has ended"), std::string::npos);
}

TEST_F(HeadConnect, OwnPortsStayInTheJob) {
  BeginRunning({0, 1});
  controller.clear();
  From(0, Lookup({kOwn, 0}, PortOf(kOwn) + ":connect"), 1);
  From(1, Publish({kOwn, 1}, PortOf(kOwn) + ":connect"), 2);
  ASSERT_TRUE(Answer(0, 1));
  EXPECT_TRUE(controller.empty());
}

TEST_F(HeadConnect, AServerWaitsForAClientWithoutALimit) {
  BeginRunning({0, 1});
  From(0, Lookup({kOwn, 0}, PortOf(kOwn) + ":connect"), 1);
  From(0, Lookup({kOwn, 0}, PortOf(kOwn) + ":other"), 2);
  Advance(Millis(3'600'000));
  EXPECT_FALSE(Answer(0, 1));
  EXPECT_EQ(Answer(0, 2)->status, pmix::kPmixErrTimeout);
}

TEST_F(HeadConnect, AClientWaitsForANameThatIsNoPortForAMinute) {
  BeginRunning({0, 1});
  From(0, Lookup({kOwn, 0}, "harbour:accept"), 1);
  From(0, Lookup({kOwn, 0}, "harbour:connect"), 2);
  From(0, Lookup({kOwn, 0}, "quay:accept"), 3);
  Advance(Millis(59'000));
  EXPECT_FALSE(Answer(0, 1));
  From(1, Publish({kOwn, 1}, "quay:accept"), 4);
  EXPECT_EQ(Answer(0, 3)->status, pmix::kPmixSuccess) << "programs that agree on a name of their own";
  Advance(Millis(1'001));
  ASSERT_TRUE(Answer(0, 1));
  EXPECT_EQ(Answer(0, 1)->status, pmix::kPmixErrTimeout);
  EXPECT_FALSE(Answer(0, 2)) << "a server waits as it said";
}

TEST_F(HeadConnect, NothingOfAnotherJobIsServedBeforeItsNamespaceIsHosted) {
  BeginRunning({0, 1});
  FromController(wire::LinkOffer{JobId(9), Incarnation(1), 3, std::string(64, 'b')});
  EXPECT_EQ(ToldController<wire::LinkReady>().at(0).address, "unix:/x9.3");
  head->OnLinkUp(1);
  From(0, Lookup({kOwn, 0}, PortOf(kOwn) + ":connect"), 1);
  FromLink(Their(kTheirs));
  FromLink(Publish({kTheirs, 0}, PortOf(kOwn) + ":connect"), 4);
  EXPECT_EQ(Told<ForeignRegister>(1).size(), 1u);
  From(0, ForeignReady{kTheirs, {}});
  EXPECT_FALSE(Answer(0, 1));
  From(1, ForeignReady{kTheirs, {}});
  ASSERT_TRUE(Answer(0, 1));
  EXPECT_EQ(Answer(0, 1)->values.at(0).proc.nspace, kTheirs);
  EXPECT_EQ(ToldLink<StoreReply>().at(0).first, 4u);
}

TEST_F(HeadConnect, ValuesForAnotherJobComeAfterTheirPublisher) {
  BeServer();
  FromLink(Lookup({kTheirs, 0}, PortOf(kOwn) + ":accept"), 5);
  From(0, Publish({kOwn, 0}, PortOf(kOwn) + ":accept"), 1);
  ASSERT_EQ(linked.size(), 2u);
  EXPECT_EQ(linked[0].type, ForeignRegister::kType);
  EXPECT_EQ(ToldLink<StoreReply>().at(0).second.values.at(0).proc.nspace, kOwn);
}

TEST_F(HeadConnect, AnotherJobReachesPortsOnlyAndInItsOwnName) {
  BeServer();
  FromLink(Publish({kTheirs, 0}, "a name"), 1);
  FromLink(Publish({kOwn, 0}, PortOf(kOwn) + ":connect"), 2);
  FromLink(Lookup({kOwn, 0}, PortOf(kOwn) + ":accept"), 3);
  FromLink(Lookup({kTheirs, 0}, "a name"), 4);
  const auto replies = ToldLink<StoreReply>();
  ASSERT_EQ(replies.size(), 4u);
  for (const auto& [id, reply] : replies) EXPECT_EQ(reply.status, pmix::kPmixErrBadParam) << id;
}

TEST_F(HeadConnect, ANamespaceOfANameThatIsNotItsEndsTheLink) {
  BeServer();
  FromLink(Their("msa.7.1.5"));
  EXPECT_EQ(closed, std::set<std::uint64_t>{1});
}

TEST_F(HeadConnect, ClientsOfAPortTakeTurns) {
  BeServer();
  const std::string port = PortOf(kOwn);
  FromLink(Publish({kTheirs, 0}, port + ":connect"), 1);
  FromLink(Publish({kTheirs, 1}, port + ":connect"), 2);
  FromLink(Lookup({kTheirs, 0}, port + ":accept"), 3);
  EXPECT_EQ(ToldLink<StoreReply>().size(), 1u) << "the second waits";
  From(0, Publish({kOwn, 0}, port + ":accept"), 60);
  EXPECT_EQ(ToldLink<StoreReply>().size(), 2u) << "the first has met the server, which has not read yet";
  From(0, Lookup({kOwn, 0}, port + ":connect"), 61);
  EXPECT_EQ(Answer(0, 61)->values.at(0).proc.rank, 0u);
  ASSERT_EQ(ToldLink<StoreReply>().size(), 3u);
  EXPECT_EQ(ToldLink<StoreReply>()[2].first, 2u);
  From(0, Lookup({kOwn, 0}, port + ":connect"), 62);
  EXPECT_EQ(Answer(0, 62)->values.at(0).proc.rank, 1u);
}

TEST_F(HeadConnect, AClientThatDiesBeforeTheServerAcceptsIsForgotten) {
  BeServer();
  const std::string port = PortOf(kOwn);
  FromLink(Publish({kTheirs, 0}, port + ":connect"), 1);
  FromLink(Lookup({kTheirs, 0}, port + ":accept"), 2);
  From(1, Publish({kOwn, 1}, port + ":connect"), 70);
  EXPECT_FALSE(Answer(1, 70));
  head->OnLinkLost(1, "it died");
  Check();
  EXPECT_EQ(Told<ForeignEnded>(0).at(0).nspace, kTheirs);
  ASSERT_TRUE(Answer(1, 70)) << "the next one's turn";
  From(0, Lookup({kOwn, 0}, port + ":connect"), 61);
  EXPECT_EQ(Answer(0, 61)->values.at(0).proc.nspace, kOwn);
}

pmix::CollectiveKey Both(pmix::CollectiveKind kind, std::uint64_t sequence = 0) {
  return {kind, {{kOwn, 0}, {kOwn, 1}, {kTheirs, 0}}, sequence};
}

TEST_F(HeadConnect, ACollectiveOverTwoJobsTakesBothParts) {
  BeServer();
  const auto key = Both(pmix::CollectiveKind::kFence);
  From(0, ForeignCollective{key, "a", 0}, 80);
  EXPECT_TRUE(ToldLink<ForeignPart>().empty());
  From(1, ForeignCollective{key, "b", 0}, 81);
  EXPECT_EQ(ToldLink<ForeignPart>().at(0).second.data, "ab");
  EXPECT_TRUE(Told<ForeignResult>(0).empty());
  FromLink(ForeignPart{key, "c", pmix::kPmixSuccess, {}});
  EXPECT_EQ(Told<ForeignResult>(0).at(0).data, "abc");
  EXPECT_EQ(Told<ForeignResult>(1).at(0).data, "abc");
}

TEST_F(HeadConnect, APartComesAfterTheNamespaceThatGaveIt) {
  BeServer();
  const auto key = Both(pmix::CollectiveKind::kConnect);
  From(0, ForeignCollective{key, {}, 0}, 80);
  From(1, ForeignCollective{key, {}, 0}, 81);
  ASSERT_EQ(linked.size(), 2u);
  EXPECT_EQ(linked[0].type, ForeignRegister::kType);
  EXPECT_EQ(linked[1].type, ForeignPart::kType);
}

TEST_F(HeadConnect, TheOtherJobMayBeFirst) {
  BeServer();
  const auto key = Both(pmix::CollectiveKind::kConnect);
  FromLink(ForeignPart{key, {}, pmix::kPmixSuccess, {}});
  From(0, ForeignCollective{key, {}, 0}, 80);
  From(1, ForeignCollective{key, {}, 0}, 81);
  EXPECT_EQ(Told<ForeignResult>(1).at(0).status, pmix::kPmixSuccess);
}

TEST_F(HeadConnect, TheEndOfTheOtherJobFailsTheOperationAndIsAnEventForTheConnected) {
  BeServer();
  const auto key = Both(pmix::CollectiveKind::kConnect);
  FromLink(ForeignPart{key, {}, pmix::kPmixSuccess, {}});
  From(0, ForeignCollective{key, {}, 0}, 80);
  From(1, ForeignCollective{key, {}, 0}, 81);
  From(0, ForeignCollective{Both(pmix::CollectiveKind::kFence), {}, 0}, 82);
  said.clear();
  FromController(wire::LinkEnd{JobId(9), Incarnation(1), "cancelled"});
  EXPECT_EQ(Told<ForeignResult>(0).at(0).status, pmix::kPmixErrUnreachable);
  EXPECT_EQ(Told<ForeignResult>(0).at(0).reason, "cancelled");
  EXPECT_EQ(Told<NamespaceEvent>(0).at(0).targets, std::vector<std::string>{kOwn});
  EXPECT_EQ(Told<NamespaceEvent>(0).at(0).source.nspace, kTheirs);
  EXPECT_TRUE(Told<NamespaceSignal>(0).empty()) << "nothing here is ended for it";
  From(1, ForeignCollective{Both(pmix::CollectiveKind::kFence), {}, 0}, 83);
  EXPECT_EQ(Told<ForeignResult>(1).at(0).status, pmix::kPmixErrUnreachable);
}

TEST_F(HeadConnect, AfterTheyPartedAnEndIsNoEvent) {
  BeServer();
  for (const auto kind : {pmix::CollectiveKind::kConnect, pmix::CollectiveKind::kFence}) {
    FromLink(ForeignPart{Both(kind), {}, pmix::kPmixSuccess, {}});
    From(0, ForeignCollective{Both(kind), {}, 0}, 80);
    From(1, ForeignCollective{Both(kind), {}, 0}, 81);
  }
  FromLink(ForeignEnded{kTheirs, true, "failed"});
  EXPECT_TRUE(Told<NamespaceEvent>(0).empty());
}

TEST_F(HeadConnect, TheOtherJobIsToldOfEndsHere) {
  BeServer();
  FromLink(Lookup({kTheirs, 0}, PortOf(kOwn) + ":accept"), 5);
  From(0, Publish({kOwn, 0}, PortOf(kOwn) + ":accept"), 1);
  End(0, 0, 0);
  End(1, 1, 0);
  Advance(Millis(0));
  EXPECT_EQ(ToldLink<ForeignEnded>().at(0).second.nspace, kOwn);
  EXPECT_FALSE(ToldLink<ForeignEnded>().at(0).second.failed);
}

TEST_F(HeadConnect, ServesTheModexOfAProcessThatTheOtherJobKnows) {
  BeServer();
  FromLink(ForeignModex{{kOwn, 1}}, 31);
  EXPECT_EQ(ToldLink<ForeignModexReply>().at(0).second.status, pmix::kPmixErrNotFound) << "not introduced";
  FromLink(Lookup({kTheirs, 0}, PortOf(kOwn) + ":accept"), 5);
  From(0, Publish({kOwn, 0}, PortOf(kOwn) + ":accept"), 1);
  FromLink(ForeignModex{{kOwn, 1}}, 32);
  ASSERT_EQ(Told<ForeignModexServe>(1).size(), 1u);
  const auto asked = std::find_if(said.begin(), said.end(),
                                  [](const Said& one) { return one.type == ForeignModexServe::kType; });
  From(1, ForeignModexReply{pmix::kPmixSuccess, "blob"}, asked->id);
  EXPECT_EQ(ToldLink<ForeignModexReply>().at(1).first, 32u);
  EXPECT_EQ(ToldLink<ForeignModexReply>().at(1).second.data, "blob");
}

TEST_F(HeadConnect, ANameIsPublishedOnceTheControllerAgrees) {
  BeginRunning({0, 1});
  From(0, Publish({kOwn, 0}, "ocean", pmix::Persistence::kApp), 1);
  From(1, Lookup({kOwn, 1}, "ocean", true), 2);
  EXPECT_FALSE(Answer(0, 1));
  const auto asked = ToldController<wire::NamePublish>().at(0);
  FromController(wire::NameAnswer{asked.request, wire::NameStatus::kOk, {}, {}});
  EXPECT_EQ(Answer(0, 1)->status, pmix::kPmixSuccess);
  EXPECT_EQ(Answer(1, 2)->values.size(), 1u);
  controller.clear();
  head->OnControllerLink();
  const auto again = ToldController<wire::NamePublish>().at(0);
  EXPECT_EQ(again.change, wire::NameChange::kAll);
  EXPECT_EQ(again.names.at(0).key, "ocean");
}

TEST_F(HeadConnect, AControllerThatWasStartedAnewHearsOfNamesAndLinks) {
  BeServer();
  controller.clear();
  FromController(wire::MembersChanged{Epoch(1), launch.members, {}});
  const auto all = ToldController<wire::NamePublish>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].change, wire::NameChange::kAll);
  EXPECT_EQ(all[0].links, std::vector<JobId>{JobId(9)});
}

TEST_F(HeadConnect, APublishUnderWayIsToldOnceMoreAfterAllNames) {
  BeginRunning({0, 1});
  From(0, Publish({kOwn, 0}, "ocean", pmix::Persistence::kApp), 1);
  controller.clear();
  FromController(wire::MembersChanged{Epoch(1), launch.members, {}});
  const auto told = ToldController<wire::NamePublish>();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].change, wire::NameChange::kAll);
  EXPECT_EQ(told[1].change, wire::NameChange::kPublish);
}

TEST_F(HeadConnect, ALookupIsAnsweredThoughTheControllerIsAway) {
  BeginRunning({0, 1});
  From(0, Lookup({kOwn, 0}, "ocean", false), 1);
  EXPECT_FALSE(Answer(0, 1));
  Advance(Millis(11'000));
  ASSERT_TRUE(Answer(0, 1));
  EXPECT_EQ(Answer(0, 1)->status, pmix::kPmixErrNotFound);
}

TEST_F(HeadConnect, ANameOfAnotherJobIsRefused) {
  BeginRunning({0, 1});
  From(0, Publish({kOwn, 0}, "ocean", pmix::Persistence::kApp), 1);
  const auto asked = ToldController<wire::NamePublish>().at(0);
  FromController(wire::NameAnswer{asked.request, wire::NameStatus::kTaken, "job 9 has it", {}});
  EXPECT_EQ(Answer(0, 1)->status, pmix::kPmixErrExists);
}

TEST_F(HeadConnect, ALookupFindsTheNamesOfOtherJobs) {
  BeginRunning({0, 1});
  From(0, Lookup({kOwn, 0}, "ocean", false), 1);
  From(1, Lookup({kOwn, 1}, "ice", true), 2);
  const auto asked = ToldController<wire::NameLookup>();
  ASSERT_EQ(asked.size(), 2u);
  FromController(wire::NameAnswer{asked[0].request, wire::NameStatus::kNotFound, {}, {}});
  EXPECT_EQ(Answer(0, 1)->status, pmix::kPmixErrNotFound);
  FromController(wire::NameAnswer{asked[1].request, wire::NameStatus::kOk, {}, {{"ice", "v", kTheirs, 3}}});
  EXPECT_EQ(Answer(1, 2)->values.at(0).proc.rank, 3u);
}

TEST_F(HeadConnect, NamesGoWithTheirPublisherAndWaitsWithTheirs) {
  BeginRunning({0, 1});
  From(0, Publish({kOwn, 0}, "ocean", pmix::Persistence::kProc), 1);
  FromController(
      wire::NameAnswer{ToldController<wire::NamePublish>().at(0).request, wire::NameStatus::kOk, {}, {}});
  From(0, Lookup({kOwn, 0}, "ice", true), 2);
  controller.clear();
  End(0, 0, 0);
  EXPECT_EQ(ToldController<wire::NamePublish>().at(0).change, wire::NameChange::kWithdraw);
  EXPECT_TRUE(ToldController<wire::NameLookup>().at(0).withdraw);
}

TEST_F(HeadConnect, AnUnpublishIsAnsweredWhenOtherJobsMayHaveTheName) {
  BeginRunning({0, 1});
  From(0, Publish({kOwn, 0}, "ocean", pmix::Persistence::kApp), 1);
  FromController(
      wire::NameAnswer{ToldController<wire::NamePublish>().at(0).request, wire::NameStatus::kOk, {}, {}});
  From(0, StoreUnpublish{{kOwn, 0}, {"ocean"}, pmix::Range::kSession}, 2);
  EXPECT_FALSE(Answer(0, 2));
  FromController(
      wire::NameAnswer{ToldController<wire::NamePublish>().at(1).request, wire::NameStatus::kOk, {}, {}});
  ASSERT_TRUE(Answer(0, 2));
  EXPECT_EQ(Answer(0, 2)->status, pmix::kPmixSuccess);
}

}  // namespace
}  // namespace msa::jobd
