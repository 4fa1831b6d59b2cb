#include "msa/pmi1/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::pmi1 {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kInit[] = "cmd=init pmi_version=1 pmi_subversion=1\n";

// Ranks 0 and 1 on this node, 2 on another.
class Pmi1Server : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options;
    options.kvsname = "msa.7.1.0";
    options.rank_node = {0, 0, 1};
    options.app_sizes = {1, 2};
    options.local_ranks = {0, 1};
    options.universe_size = 12;
    return options;
  }
  void SetUp() override {
    for (const std::uint32_t rank : {0u, 1u}) Say(rank, kInit);
  }
  Effects Say(std::uint32_t rank, std::string_view text) {
    Effects effects = server.OnData(rank, text);
    Check();
    return effects;
  }
  // The reply to a line, which has no other effect.
  std::string Answer(std::uint32_t rank, const std::string& line) {
    const Effects effects = Say(rank, line + "\n");
    EXPECT_EQ(effects.size(), 1u) << line;
    const auto* reply = effects.empty() ? nullptr : std::get_if<Reply>(&effects.back());
    return reply == nullptr || reply->rank != rank ? "no reply" : reply->text;
  }
  // Both ranks of this node enter; what they put.
  std::string Enter() {
    EXPECT_THAT(Say(0, "cmd=barrier_in\n"), IsEmpty());
    const Effects effects = Say(1, "cmd=barrier_in\n");
    const auto* enter = effects.size() == 1 ? std::get_if<EnterBarrier>(&effects[0]) : nullptr;
    EXPECT_NE(enter, nullptr);
    return enter == nullptr ? "" : enter->data;
  }
  void Check() {
    const Status status = server.CheckInvariants();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  template <class E>
  static const E* Only(const Effects& effects) {
    return effects.size() == 1 ? std::get_if<E>(&effects[0]) : nullptr;
  }
  Server server{Options()};
};

TEST_F(Pmi1Server, ConnectsATaskThatCallsInit) {
  Server fresh(Options());
  const Effects effects = fresh.OnData(1, kInit);
  ASSERT_THAT(effects, SizeIs(2));
  EXPECT_EQ(std::get<Reply>(effects[0]).text, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(std::get<Connected>(effects[1]).rank, 1u);
}

TEST_F(Pmi1Server, RefusesPmi2WithoutConnecting) {
  Server fresh(Options());
  const Effects effects = fresh.OnData(0, "cmd=init pmi_version=2 pmi_subversion=0\n");
  ASSERT_NE(Only<Reply>(effects), nullptr);
  EXPECT_THAT(Only<Reply>(effects)->text, HasSubstr("rc=-1"));
}

TEST_F(Pmi1Server, SaysWhatMpichAsksInItsInit) {
  EXPECT_EQ(Answer(0, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(Answer(0, "cmd=get_appnum"), "cmd=appnum appnum=0\n");
  EXPECT_EQ(Answer(1, "cmd=get_appnum"), "cmd=appnum appnum=1\n");
  EXPECT_EQ(Answer(0, "cmd=get_universe_size"), "cmd=universe_size size=12\n");
  EXPECT_EQ(Answer(0, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=msa.7.1.0\n");
  EXPECT_EQ(Answer(0, "cmd=get kvsname=msa.7.1.0 key=PMI_process_mapping"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))\n");
}

TEST_F(Pmi1Server, TakesLinesCutAnywhere) {
  const std::string text = "cmd=get_appnum\ncmd=get_universe_size\n";
  std::string replies;
  for (const char c : text)
    for (const Effect& effect : Say(0, std::string(1, c))) replies += std::get<Reply>(effect).text;
  EXPECT_EQ(replies, "cmd=appnum appnum=0\ncmd=universe_size size=12\n");
}

TEST_F(Pmi1Server, ExchangesWhatWasPutAtTheBarrier) {
  EXPECT_EQ(Answer(0, "cmd=put kvsname=msa.7.1.0 key=a value=1=x y"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(Answer(1, "cmd=put kvsname=msa.7.1.0 key=b value=2"), "cmd=put_result rc=0 msg=success\n");
  const std::string mine = Enter();
  EXPECT_EQ(mine, "a 1=x y\nb 2\n");
  const Effects out = server.OnBarrier(mine + "c 3\n");
  Check();
  ASSERT_THAT(out, SizeIs(2));
  for (const Effect& effect : out) EXPECT_EQ(std::get<Reply>(effect).text, "cmd=barrier_out\n");
  EXPECT_EQ(Answer(1, "cmd=get kvsname=msa.7.1.0 key=a"), "cmd=get_result rc=0 msg=success value=1=x y\n");
  EXPECT_EQ(Answer(0, "cmd=get kvsname=msa.7.1.0 key=c"), "cmd=get_result rc=0 msg=success value=3\n");
  EXPECT_EQ(Enter(), "") << "nothing is said twice";
}

TEST_F(Pmi1Server, SaysOfAnUnknownKeyThatItIsNotThere) {
  EXPECT_EQ(Answer(0, "cmd=get kvsname=msa.7.1.0 key=PMI_dead_processes"),
            "cmd=get_result rc=-1 msg=key_not_found\n");
  EXPECT_EQ(Answer(0, "cmd=get kvsname=other key=a"), "cmd=get_result rc=-1 msg=unknown_kvsname\n");
}

TEST_F(Pmi1Server, LeavesOutAMappingThatNoValueHolds) {
  ServerOptions options = Options();
  options.rank_node.clear();
  std::uint32_t state = 1;  // no period: a linear congruence, high bits
  for (int rank = 0; rank < 1000; ++rank)
    options.rank_node.push_back((state = state * 1664525 + 1013904223) >> 28);
  Server large(options);
  EXPECT_THAT(large.OnData(0, kInit), SizeIs(2));
  const Effects effects = large.OnData(0, "cmd=get kvsname=msa.7.1.0 key=PMI_process_mapping\n");
  ASSERT_NE(Only<Reply>(effects), nullptr);
  EXPECT_EQ(Only<Reply>(effects)->text, "cmd=get_result rc=-1 msg=key_not_found\n");
}

TEST_F(Pmi1Server, RefusesPutsBeyondItsLimits) {
  const std::string put = "cmd=put kvsname=msa.7.1.0 key=";
  EXPECT_THAT(Answer(0, put + std::string(65, 'k') + " value=1"), HasSubstr("rc=-1 msg=key_too_long"));
  EXPECT_THAT(Answer(0, put + "k value=" + std::string(1025, 'v')), HasSubstr("rc=-1 msg=value_too_long"));
  EXPECT_THAT(Answer(0, put + "k value=" + std::string(1024, 'v')), HasSubstr("rc=0"));
  EXPECT_THAT(Answer(1, put + "k value=1"), HasSubstr("rc=-1 msg=duplicate_key"));
  EXPECT_THAT(Answer(0, put + "k2"), HasSubstr("rc=-1"));
  EXPECT_THAT(Answer(0, "cmd=put kvsname=other key=a value=1"), HasSubstr("rc=-1 msg=unknown_kvsname"));
  ServerOptions options = Options();
  options.max_kvs_bytes = 10;
  Server small(options);
  small.OnData(0, kInit);
  EXPECT_THAT(Only<Reply>(small.OnData(0, put + "abc value=1234567\n"))->text, HasSubstr("rc=0"));
  EXPECT_THAT(Only<Reply>(small.OnData(0, put + "d value=\n"))->text, HasSubstr("rc=-1 msg=kvs_is_full"));
}

TEST_F(Pmi1Server, AFailedBarrierClosesAllWhoWaitInIt) {
  Enter();
  const Effects out = server.OnBarrier(Error(Code::kUnavailable, "node bn0 is lost"));
  Check();
  ASSERT_THAT(out, SizeIs(2));
  for (const Effect& effect : out) EXPECT_THAT(std::get<Close>(effect).reason, HasSubstr("node bn0 is lost"));
  EXPECT_THAT(Say(0, "cmd=get_appnum\n"), IsEmpty());
}

TEST_F(Pmi1Server, DamagedDataFailsTheBarrier) {
  for (const char* data : {"a", "a 1", "noline\n", " 1\n"}) {
    Server one([] {
      ServerOptions options = Options();
      options.local_ranks = {0};
      return options;
    }());
    one.OnData(0, kInit);
    one.OnData(0, "cmd=barrier_in\n");
    EXPECT_NE(Only<Close>(one.OnBarrier(std::string(data))), nullptr) << data;
  }
}

TEST_F(Pmi1Server, FinalizeIsAnsweredAndAllowsAnotherInit) {
  const Effects effects = Say(0, "cmd=finalize\n");
  ASSERT_THAT(effects, SizeIs(2));
  EXPECT_EQ(std::get<Finalized>(effects[0]).rank, 0u);
  EXPECT_EQ(std::get<Reply>(effects[1]).text, "cmd=finalize_ack\n");
  EXPECT_THAT(Answer(0, "cmd=get_appnum"), HasSubstr("rc=-1 msg=init_comes_first"));
  EXPECT_THAT(Say(0, kInit), SizeIs(2));
}

TEST_F(Pmi1Server, AbortCarriesItsCode) {
  const Effects effects = Say(1, "cmd=abort exitcode=17\n");
  ASSERT_NE(Only<Aborted>(effects), nullptr);
  EXPECT_EQ(Only<Aborted>(effects)->exit_code, 17);
  EXPECT_EQ(Only<Aborted>(effects)->rank, 1u);
  EXPECT_THAT(Say(0, "cmd=barrier_in\n"), IsEmpty());
  EXPECT_EQ(Only<Aborted>(Say(0, "cmd=abort\n"))->exit_code, 1) << "also while it waits";
}

TEST_F(Pmi1Server, UnknownCommandsAreAnsweredWithAnError) {
  EXPECT_EQ(Answer(0, "cmd=create_kvs"), "cmd=error rc=-1 msg=unknown_command\n");
}

TEST_F(Pmi1Server, ATaskOutOfStepIsClosed) {
  for (const std::string text : {"hello\n", "mcmd=other\n", "cmd=put value\n", kInit}) {
    Server fresh(Options());
    fresh.OnData(0, kInit);
    EXPECT_NE(Only<Close>(fresh.OnData(0, text)), nullptr) << text;
    EXPECT_THAT(fresh.OnData(0, "cmd=get_appnum\n"), IsEmpty());
  }
  Say(0, "cmd=barrier_in\n");
  EXPECT_NE(Only<Close>(Say(0, "cmd=barrier_in\n")), nullptr);
}

TEST_F(Pmi1Server, ALineWithoutEndIsClosed) {
  EXPECT_THAT(Say(0, std::string(kMaxLine - 1, 'x')), IsEmpty());
  const Effects effects = Say(0, "x");
  ASSERT_NE(Only<Close>(effects), nullptr);
  EXPECT_THAT(Only<Close>(effects)->reason, HasSubstr("8192"));
  EXPECT_NE(Only<Close>(Say(1, "cmd=put key=a value=" + std::string(100'000, 'x') + "\n")), nullptr);
}

TEST_F(Pmi1Server, RefusesASpawnWithAReasonAndAnAnswer) {
  const Effects effects = Say(0,
                              "mcmd=spawn\nnprocs=2\nexecname=./child\ntotspawns=1\nspawnssofar=1\n"
                              "argcnt=1\narg1=two words = x\npreput_num=0\ninfo_num=0\nendcmd\n");
  ASSERT_THAT(effects, SizeIs(2));
  EXPECT_THAT(std::get<SpawnRefused>(effects[0]).text,
              ::testing::AllOf(HasSubstr("spawn of './child' refused"), HasSubstr("get_local_upids")));
  EXPECT_THAT(std::get<Reply>(effects[1]).text, StartsWith("cmd=spawn_result rc=-1 msg="));
  EXPECT_EQ(Answer(0, "cmd=get_appnum"), "cmd=appnum appnum=0\n") << "it goes on";
}

TEST_F(Pmi1Server, ASpawnOfSeveralCommandsHasOneAnswer) {
  EXPECT_THAT(Say(0, "mcmd=spawn\nexecname=a\ntotspawns=2\nspawnssofar=1\nendcmd\n"), IsEmpty());
  const Effects effects = Say(0, "mcmd=spawn\nexecname=b\ntotspawns=2\nspawnssofar=2\nendcmd\n");
  ASSERT_THAT(effects, SizeIs(2));
  EXPECT_THAT(std::get<SpawnRefused>(effects[0]).text, HasSubstr("'a'"));
}

TEST_F(Pmi1Server, NamesAreAskedOfTheJob) {
  Effects effects = Say(0, "cmd=publish_name service=s port=tag#0$x\n");
  ASSERT_NE(Only<NameRequest>(effects), nullptr);
  EXPECT_EQ(Only<NameRequest>(effects)->service, "s");
  EXPECT_EQ(Only<NameRequest>(effects)->port, "tag#0$x");
  EXPECT_EQ(Only<Reply>(server.OnName(0, std::string()))->text,
            "cmd=publish_result info=ok rc=0 msg=success\n");
  effects = Say(1, "cmd=lookup_name service=s\n");
  ASSERT_NE(Only<NameRequest>(effects), nullptr);
  EXPECT_EQ(Only<NameRequest>(effects)->verb, NameVerb::kLookup);
  EXPECT_EQ(Only<Reply>(server.OnName(1, std::string("p q")))->text,
            "cmd=lookup_result info=ok rc=0 msg=success port=p q\n");
  Say(1, "cmd=lookup_name service=t\n");
  EXPECT_THAT(Only<Reply>(server.OnName(1, Error(Code::kNotFound, "no 't'")))->text,
              StartsWith("cmd=lookup_result info=error rc=-1"));
  Say(0, "cmd=unpublish_name service=s\n");
  EXPECT_THAT(Only<Reply>(server.OnName(0, std::string()))->text, StartsWith("cmd=unpublish_result info=ok"));
  EXPECT_THAT(Answer(0, "cmd=publish_name service=s"), HasSubstr("rc=-1 msg=no_port"));
  EXPECT_THAT(server.OnName(0, std::string()), IsEmpty()) << "nobody asked";
}

TEST_F(Pmi1Server, AnswersNobodyWhoIsGone) {
  Say(0, "cmd=lookup_name service=s\n");
  server.OnGone(0);
  EXPECT_THAT(server.OnName(0, std::string("p")), IsEmpty());
  EXPECT_THAT(Say(0, "cmd=get_appnum\n"), IsEmpty());
  EXPECT_THAT(Say(5, "cmd=get_appnum\n"), IsEmpty()) << "a rank of another node";
}

}  // namespace
}  // namespace msa::pmi1
