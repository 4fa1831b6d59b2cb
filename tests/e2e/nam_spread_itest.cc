// Three NAM nodes: regions on one and on all of them, over both transports, and what the death of one NAM
// daemon, a removal, and a directory of the topology's choice leave.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "noise.h"
#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMiB = std::size_t{1} << 20;
const std::vector<std::string> kNodes = {"nam0", "nam1", "nam2"};

std::string Topology(const std::string& backing) {
  return (backing.empty() ? std::string() : "[nam]\nbacking = \"" + backing + "\"\n") +
         "[[module]]\nname = \"cluster\"\nid = 0\n[[module.node]]\nnames = \"cn0\"\ncores = 4\n"
         "[[module]]\nname = \"nam\"\nid = 1\n[[module.node]]\nnames = \"nam[0-2]\"\ncores = 1\nnam = "
         "\"64M\"\n";
}

class SpreadRegions : public SharedCluster {
 protected:
  static void SetUpTestSuite() {
    backing_ = std::make_unique<support::ScratchDirectory>();
    auto started = MiniCluster::Start({.topology = Topology(backing_->path())});
    ASSERT_TRUE(started.ok()) << started.status().message();
    cluster_ = *std::move(started);
  }
  static void TearDownTestSuite() {
    cluster_.reset();
    backing_.reset();
  }
  void TearDown() override {
    const Json regions = cluster_ != nullptr ? cluster_->Query({"region", "list"}) : Json();
    for (const Json& region : regions["items"].list())
      EXPECT_EQ(Run({"region", "rm", "--force", region["name"].text()}).code, 0);
    EXPECT_TRUE(Eventually(30s, "no extent is left on any node",
                           [] { return FilesOf("nam0") + FilesOf("nam1") + FilesOf("nam2") == 0; }));
    EXPECT_EQ(Used(), (std::vector<double>{0, 0, 0}));
    SharedCluster::TearDown();
  }

  static Outcome Over(const std::string& transport, std::vector<std::string> arguments,
                      const std::string& input = "") {
    Command command = cluster_->Msactl(std::move(arguments));
    command.env["MSA_NAM_TRANSPORT"] = transport;
    command.input = input;
    return support::RunCommand(command);
  }
  static void Create(const std::string& name, const std::string& placement) {
    const Outcome outcome =
        Run({"region", "create", name, "--size", "6M", "--segments", "6", "--placement", placement});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
  }
  static void Holds(const std::string& name, const std::string& data) {
    for (const char* transport : {"local", "fabric"}) {
      const Outcome outcome = Over(transport, {"region", "get", name, "-"});
      EXPECT_EQ(outcome.code, 0) << transport << outcome.err;
      EXPECT_TRUE(outcome.out == data) << transport;
    }
  }
  static std::vector<std::string> NodesOf(const std::string& name) {
    std::vector<std::string> nodes;
    const Json shown = cluster_->Query({"region", "show", name});
    for (const Json& segment : shown["segments"].list()) nodes.push_back(segment["node"].text());
    return nodes;
  }
  static int FilesOf(const std::string& node) {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(backing_->path() + "/" + node)) {
      const std::string end = entry.path().extension();
      files += end == ".extent" || end == ".pending" ? 1 : 0;
    }
    return files;
  }
  static std::vector<double> Used() {
    std::vector<double> used;
    const Json usage = cluster_->Query({"region", "df"});
    for (const Json& node : usage["nodes"].list()) used.push_back(node["used"].number());
    return used;
  }

  static inline std::unique_ptr<support::ScratchDirectory> backing_;
};

TEST_F(SpreadRegions, PackTakesOneNodeAndSpreadAllAndDfSaysHowMuchOfEach) {
  Create("packed", "pack");
  const auto packed = NodesOf("packed");
  ASSERT_EQ(packed.size(), 6u);
  EXPECT_EQ(packed, std::vector<std::string>(6, packed[0]));
  ASSERT_EQ(Run({"region", "rm", "packed"}).code, 0);
  Create("spread", "spread");
  const auto spread = NodesOf("spread");
  for (const std::string& node : kNodes) {
    EXPECT_EQ(std::count(spread.begin(), spread.end(), node), 2) << node;
    EXPECT_EQ(FilesOf(node), 1) << node;
  }
  for (const double used : Used()) {
    EXPECT_GE(used, 2.0 * kMiB);
    EXPECT_LT(used, 2.1 * kMiB);
  }
}

TEST_F(SpreadRegions, BytesCrossExtentsOverBothTransports) {
  Create("spread", "spread");
  for (const char* transport : {"local", "fabric"}) {
    const std::string data = Noise(6 * kMiB, transport[0]);
    const Outcome put = Over(transport, {"region", "put", "-", "spread"}, data);
    ASSERT_EQ(put.code, 0) << transport << put.Text();
    Holds("spread", data);
    const Outcome across = Over(transport, {"region", "put", "-", "spread/2@1048570"}, "a text");
    EXPECT_EQ(across.code, 0) << across.Text();
    EXPECT_EQ(Over(transport, {"region", "get", "spread/2@1048570", "-"}).out, "a text");
  }
}

TEST_F(SpreadRegions, TheDeathOfOneNamDaemonLosesNothing) {
  const std::string data = Noise(6 * kMiB, 7);
  Create("spread", "spread");
  ASSERT_EQ(Over("auto", {"region", "put", "-", "spread"}, data).code, 0);
  for (const std::string& node : kNodes) {
    ASSERT_TRUE(cluster_->KillDaemon("namd-" + node).ok());
    Holds("spread", data);
  }
  EXPECT_EQ(Run({"region", "fsck"}).code, 0);
}

TEST_F(SpreadRegions, SnapshotRestoreCopyAndResizeKeepTheBytesOfAllNodes) {
  const std::string data = Noise(6 * kMiB, 8);
  const std::string store = cluster_->scratch().path() + "/store";
  Create("spread", "spread");
  ASSERT_EQ(Over("auto", {"region", "put", "-", "spread"}, data).code, 0);
  ASSERT_EQ(Run({"region", "snapshot", "spread", store, "--name", "one"}).code, 0);
  ASSERT_EQ(Run({"region", "copy", "spread", "copied"}).code, 0);
  Holds("copied", data);
  EXPECT_EQ(NodesOf("copied").size(), 6u);
  const Outcome resized = Run({"region", "resize", "spread", "--segment", "1=2M"});
  ASSERT_EQ(resized.code, 0) << resized.Text();
  Holds("spread", data.substr(0, 2 * kMiB) + std::string(kMiB, '\0') + data.substr(2 * kMiB));
  ASSERT_EQ(Run({"region", "rm", "spread"}).code, 0);
  ASSERT_EQ(Run({"region", "restore", store + ":one"}).code, 0);
  Holds("spread", data);
  for (const std::string& node : kNodes)
    EXPECT_THAT(NodesOf("spread"), testing::Contains(node)) << "restored as it was placed";
}

// What the process asks goes by way of nam0, the first; what it has lies on nam1. It computes, and calls
// nothing of the library that would notice.
TEST_F(SpreadRegions, ALeaseOfAProcessOutsideJobsOutlivesTheNamDaemonThatRelaysForIt) {
  ASSERT_EQ(Run({"region", "create", "fill", "--size", "1M", "-w", "nam1"}).code, 0);
  for (const std::string transport : {"local", "fabric"}) {
    Command hold;
    hold.argv = {ProgramPath("nam_hold"), "held-" + transport};
    hold.env["MSA_DIR"] = cluster_->dir();
    hold.env["MSA_NAM_TRANSPORT"] = transport;
    hold.keep_input_open = true;
    Process holder(hold);
    ASSERT_TRUE(holder.ReadUntilText("held", 30s));
    ASSERT_EQ(NodesOf("held-" + transport), std::vector<std::string>{"nam1"}) << "the fullest that has room";
    ASSERT_THAT(cluster_->Query({"region", "show", "held-" + transport})["holders"].list()[0]["who"].text(),
                HasSubstr("on nam0"));
    ASSERT_TRUE(cluster_->KillDaemon("namd-nam0").ok());
    // Leases that nobody takes over end after 10 s, and such a region with them.
    EXPECT_FALSE(Eventually(14s, "", [&] { return Run({"region", "show", "held-" + transport}).code == 3; }));
    holder.CloseInput();
    const Outcome outcome = holder.Wait();
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_TRUE(Eventually(30s, "it ends with its holder", [&] {
      return Run({"region", "show", "held-" + transport}).code == 3;
    }));
  }
}

TEST_F(SpreadRegions, APutIntoARegionThatIsRemovedMeanwhileIsNoSuccess) {
  Create("fields", "spread");
  Command put = cluster_->Msactl({"region", "put", "--no-verify", "-", "fields"});
  put.input = "x";
  put.keep_input_open = true;
  put.env["MSA_NAM_TRANSPORT"] = "local";
  Process writer(put);
  ASSERT_TRUE(Eventually(30s, "it is attached", [] {
    return !cluster_->Query({"region", "show", "fields"})["holders"].list().empty();
  }));
  ASSERT_EQ(Run({"region", "rm", "--force", "fields"}).code, 0);
  Create("fields", "pack");
  writer.CloseInput();
  const Outcome outcome = writer.Wait();
  EXPECT_EQ(outcome.code, 7) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("removed"));
}

TEST_F(SpreadRegions, AJobWhoseRegionIsRemovedByForceIsToldAndLeavesNothing) {
  Create("fields", "spread");
  const std::string id = Detach({"-n", "1", "--nam-region", "fields", "sleep", "60"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(id, "RUNNING"); }));
  const std::string queued = Detach({"-n", "4", "--nam-region", "fields", "true"});
  const Outcome refused = Run({"region", "rm", "fields"});
  EXPECT_EQ(refused.code, 7) << refused.Text();
  EXPECT_THAT(refused.err, HasSubstr("job " + id));
  ASSERT_EQ(Run({"region", "rm", "--force", "fields"}).code, 0);
  EXPECT_TRUE(JobIsIn(id, "RUNNING")) << "it may not need it any more";
  EXPECT_EQ(Run({"job", "cancel", id}).code, 0);
  ASSERT_TRUE(Eventually(30s, "the queued one is refused", [&] { return JobIsIn(queued, "FAILED"); }))
      << Job(queued)["state"].text();
  EXPECT_THAT(Job(queued)["reason"].text(), AllOf(HasSubstr("--nam-region"), HasSubstr("fields")));
}

// ---------------------------------------------------------------------------------- directory of the memory

class Backing : public testing::Test {
 protected:
  // What `cluster up` says with it.
  std::string Refusal(const std::string& backing) {
    auto started = MiniCluster::Start({.topology = Topology(backing)});
    return started.ok() ? "" : started.status().message();
  }
  support::ScratchDirectory scratch_;
};

TEST_F(Backing, ThatCannotBeUsedIsRefusedBeforeAnythingStarts) {
  const std::string& path = scratch_.path();
  EXPECT_THAT(Refusal("nam"), AllOf(HasSubstr("key 'backing' of [nam]"), HasSubstr("absolute path")));
  EXPECT_THAT(Refusal(path + "/nowhere"), AllOf(HasSubstr("/nowhere"), HasSubstr("make this directory")));
  EXPECT_THAT(Refusal(scratch_.Write("file", "")), HasSubstr("is no directory"));
  fs::create_directory(path + "/nam1");
  fs::create_directory_symlink("nam1", path + "/nam0");
  EXPECT_THAT(Refusal(path), HasSubstr("nodes 'nam0' and 'nam1' have the same directory"));
}

TEST_F(Backing, IsOfOneSystemAtATimeAndIsClearedByAPurgeOfWhatIsItsOwn) {
  const std::string& path = scratch_.path();
  auto first = MiniCluster::Start({.topology = Topology(path)});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_THAT(Refusal(path), HasSubstr("used by another system's NAM daemon"));
  ASSERT_EQ((*first)->Run({"region", "create", "fields", "--size", "1M"}).code, 0);
  scratch_.Write("nam2/thesis.tex", "mine");
  ASSERT_EQ((*first)->Run({"cluster", "down", "--purge"}).code, 0);
  EXPECT_FALSE(fs::exists(path + "/nam0"));
  EXPECT_TRUE(fs::exists(path + "/nam2/thesis.tex"));
}

}  // namespace
}  // namespace msa::e2e
