// The host in this process, with real PMIx clients. libpmix keeps its state in globals: one host at a time.

#include "msa/pmix/pmix_host.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

namespace msa::pmix {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class Host;

// libpmix starts once in a process: the cases of this program share what the first one starts.
struct SharedHost {
  std::optional<support::ScratchDirectory> directory;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<PmixHost> host;
  std::chrono::microseconds took{};
  Host* user = nullptr;  // the case that runs
};
SharedHost g_shared;

class RemoveDirectory : public ::testing::Environment {
 public:
  void TearDown() override {
    g_shared.host.reset();
    g_shared.directory.reset();
  }
};
const auto* const g_remove = ::testing::AddGlobalTestEnvironment(new RemoveDirectory);

class Host : public ::testing::Test {
 public:
  void OnUpcall(Upcall upcall) {
    std::visit([this](auto& call) { On(call); }, upcall);
  }

 protected:
  void SetUp() override {
    if (!g_shared.loop) StartShared();
    ASSERT_NE(host(), nullptr);
    g_shared.user = this;
  }
  void TearDown() override {
    g_shared.user = nullptr;
    publishes_.clear();
    if (host() == nullptr) return;
    for (const std::string& nspace : registered_) {
      bool done = false;
      host()->DeregisterNamespace(nspace, [&] { done = true; });
      EXPECT_TRUE(Eventually([&] { return done; }));
    }
  }
  static PmixHostOptions Options() {
    return {.nspace = fmt::format("test-host.{}", getpid()),
            .hostname = "n0",
            .directory = g_shared.directory->path(),
            .topology_xml = MSA_TEST_TOPOLOGY,
            .on_event = {},
            .on_log = {}};
  }
  static void StartShared() {
    g_shared.directory.emplace();
    auto loop = EventLoop::Create();
    ASSERT_TRUE(loop.ok());
    g_shared.loop = std::move(*loop);
    const SteadyTime before = SteadyNow();
    auto host = PmixHost::Start(Options(), *g_shared.loop, [](Upcall upcall) {
      if (g_shared.user != nullptr) g_shared.user->OnUpcall(std::move(upcall));
    });
    g_shared.took = std::chrono::duration_cast<std::chrono::microseconds>(SteadyNow() - before);
    ASSERT_TRUE(host.ok()) << host.status().ToString();
    g_shared.host = std::move(*host);
  }
  static PmixHost* host() { return g_shared.host.get(); }
  NamespaceInfo OneRank(const std::string& nspace) const {
    NamespaceInfo info{.nspace = nspace, .job_id = "1", .nodes = {"n0"}, .rank_node = {0}};
    info.apps = {{0, 1, "/", "program"}};
    info.universe_size = 1;
    info.tmpdir = g_shared.directory->path();
    return info;
  }
  Status Register(const NamespaceInfo& info) {
    std::optional<Status> done;
    registered_.insert(info.nspace);
    host()->RegisterNamespace(info, "n0", {getuid(), getgid()}, [&](const Status& status) { done = status; });
    EXPECT_TRUE(Eventually([&] { return done.has_value(); }));
    return done.value_or(Status(Code::kDeadlineExceeded, "no callback"));
  }
  // Starts the test's PMIx program as rank 0 of a registered namespace.
  void StartClient(const std::string& nspace, const std::string& action) {
    const auto lines = host()->ClientEnvironment({nspace, 0});
    ASSERT_TRUE(lines.ok()) << lines.status().ToString();
    std::vector<std::string> env = CurrentEnvironment();
    env.insert(env.end(), (*lines).begin(), (*lines).end());
    auto client = msa::Spawn(SpawnSpec{.argv = {MSA_TEST_CLIENT, action}, .env = env, .out = 1, .err = 2});
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    client_ = std::move(*client);
  }
  int ClientCode() {
    std::optional<int> status;
    EXPECT_TRUE(Eventually([&] { return (status = ReapChild(client_.pid)).has_value(); }));
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }
  template <class Condition>
  bool Eventually(Condition condition, Millis limit = 10s) {
    return support::RunUntil(*g_shared.loop, limit, condition);
  }

  void On(ClientConnected&) { ++connected_; }
  void On(ClientFinalized& call) { call.reply(kPmixSuccess); }
  void On(Aborted& call) { call.reply(kPmixSuccess); }
  void On(Fence& call) { call.reply(kPmixSuccess, call.data); }
  void On(DirectModex& call) { call.reply(kPmixErrNotFound, ""); }
  void On(Publish& call) { publishes_.push_back(std::move(call)); }
  void On(Lookup& call) { lookups_.push_back(std::move(call)); }
  void On(Unpublish& call) { call.reply(kPmixSuccess); }
  void On(pmix::Spawn& call) { call.reply(kPmixErrNotSupported, ""); }
  void On(Connect& call) { call.reply(kPmixSuccess); }
  void On(Disconnect& call) { call.reply(kPmixSuccess); }

  std::set<std::string> registered_;
  ProcessHandle client_;
  int connected_ = 0;
  std::vector<Publish> publishes_;
  std::vector<Lookup> lookups_;
};

TEST_F(Host, StartsInMillisecondsWithAGivenTopology) {
  fmt::print("PMIx_server_init with a given topology: {} us\n", g_shared.took.count());
  // 2.2 to 3.5 ms on a quiet machine; a discovery by hwloc's plugins alone would take 10.
  EXPECT_LT(g_shared.took, std::chrono::milliseconds(MSA_TEST_START_LIMIT_MS));
}

TEST_F(Host, RefusesASecondHostInOneProcess) {
  const auto second = PmixHost::Start(Options(), *g_shared.loop, [](Upcall) {});
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
}

TEST_F(Host, RefusesNamespacesThatDoNotFitTogether) {
  const auto code = [&](auto change) {
    auto info = OneRank("broken");
    change(info);
    return Register(info).code();
  };
  EXPECT_EQ(code([](NamespaceInfo& i) { i.nspace.clear(); }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.nspace = std::string(300, 'x'); }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.nspace = "../x"; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.rank_node.clear(); }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.rank_node = {1}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.nodes = {"n0", "n1"}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.nodes = {"a,b"}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.apps[0].size = 2; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](NamespaceInfo& i) { i.apps[0].first_rank = 1; }), Code::kInvalidArgument);
  EXPECT_TRUE(Register(OneRank("whole")).ok());
  EXPECT_EQ(Register(OneRank("whole")).code(), Code::kInvalidArgument) << "twice";
}

TEST_F(Host, KeepsASessionDirectoryFromRegistrationToTheEnd) {
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  struct stat info {};
  ASSERT_EQ(stat((*g_shared.directory / "ns").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  bool done = false;
  host()->DeregisterNamespace("ns", [&] { done = true; });
  ASSERT_TRUE(Eventually([&] { return done; }));
  EXPECT_NE(stat((*g_shared.directory / "ns").c_str(), &info), 0);
  EXPECT_TRUE(Register(OneRank("ns")).ok()) << "the name is free again";
}

TEST_F(Host, DeregisteringAnUnknownNamespaceIsDone) {
  bool done = false;
  host()->DeregisterNamespace("unknown", [&] { done = true; });
  EXPECT_TRUE(Eventually([&] { return done; }));
}

TEST_F(Host, GivesClientsWhatTheyNeedToFindTheServer) {
  EXPECT_EQ(host()->ClientEnvironment({"unknown", 0}).status().code(), Code::kNotFound);
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  const auto lines = host()->ClientEnvironment({"ns", 0});
  ASSERT_TRUE(lines.ok());
  EXPECT_THAT(*lines, Contains("PMIX_NAMESPACE=ns"));
  EXPECT_THAT(*lines, Contains("PMIX_RANK=0"));
  EXPECT_THAT(*lines, Contains(StartsWith("PMIX_SERVER_URI")));
}

TEST_F(Host, AReplyThatIsDroppedAnswersAnError) {
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  StartClient("ns", "dropped");
  ASSERT_TRUE(Eventually([&] { return publishes_.size() == 1; }));
  publishes_.clear();
  EXPECT_EQ(ClientCode(), 0);
}

TEST_F(Host, AReplyThatIsGivenTwiceCountsOnce) {
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  StartClient("ns", "dropped");
  ASSERT_TRUE(Eventually([&] { return publishes_.size() == 1; }));
  publishes_[0].reply(kPmixErr);
  publishes_[0].reply(kPmixSuccess);
  EXPECT_EQ(ClientCode(), 0);
}

TEST_F(Host, ServesOneNamespaceAfterTheOther) {
  for (int i = 0; i < 20; ++i) {
    const std::string nspace = fmt::format("ns{}", i);
    ASSERT_TRUE(Register(OneRank(nspace)).ok());
    StartClient(nspace, "fence");
    EXPECT_EQ(ClientCode(), 0);
    bool done = false;
    host()->DeregisterNamespace(nspace, [&] { done = true; });
    ASSERT_TRUE(Eventually([&] { return done; }));
  }
  EXPECT_EQ(connected_, 20);
}

TEST_F(Host, ModexOfAnUnknownRankIsAnError) {
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  std::optional<PmixStatus> status;
  host()->LocalModex({"", 0}, [&](PmixStatus s, const std::string&) { status = s; });
  ASSERT_TRUE(Eventually([&] { return status.has_value(); }));
  EXPECT_NE(*status, kPmixSuccess);
}

TEST_F(Host, TellsAClientOfAnEvent) {
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  StartClient("ns", "event");
  ASSERT_TRUE(Eventually([&] { return publishes_.size() == 1; })) << "it publishes when it listens";
  publishes_[0].reply(kPmixSuccess);
  host()->NotifyEvent(kPmixErrJobAborted, {"other", 0}, {{"other", kRankWildcard}});
  EXPECT_EQ(ClientCode(), 0);
}

// The last case: it ends the host.
class HostEnd : public Host {};

TEST_F(HostEnd, RepliesAfterTheHostIsGoneAreSilent) {
  ASSERT_TRUE(Register(OneRank("ns")).ok());
  StartClient("ns", "dropped");
  ASSERT_TRUE(Eventually([&] { return publishes_.size() == 1; }));
  g_shared.host.reset();
  publishes_[0].reply(kPmixSuccess);
  publishes_.clear();
  // libpmix leaves the connections of its clients open; the job daemon kills what is left.
  SignalProcess(client_, SIGKILL);
  EXPECT_EQ(ClientCode(), -1);
}

TEST(StatusTextTest, NamesPmixStatuses) {
  EXPECT_THAT(StatusText(kPmixErrNotFound), HasSubstr("NOT"));
  EXPECT_THAT(StatusText(kPmixSuccess), HasSubstr("SUCCESS"));
}

}  // namespace
}  // namespace msa::pmix
