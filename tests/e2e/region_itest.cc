// Regions as a user of msactl meets them: every verb, who may do what, and what interruptions and deaths of
// daemons leave.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "noise.h"
#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Regions : public SharedCluster {
 protected:
  void TearDown() override {
    const Json regions = cluster_ != nullptr ? cluster_->Query({"region", "list"}) : Json();
    for (const Json& region : regions["items"].list())
      EXPECT_EQ(Run({"region", "rm", "--force", region["name"].text()}).code, 0);
    SharedCluster::TearDown();
  }

  static std::string Path(const std::string& name) { return cluster_->scratch().path() + "/" + name; }
  static std::string File(const std::string& name, const std::string& text) {
    return cluster_->scratch().Write(name, text);
  }
  static std::string Held(const std::string& region) {
    const Outcome outcome = Run({"region", "get", region, "-"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  static void Create(const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(), {"region", "create", name});
    const Outcome outcome = Run(std::move(options));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
  }
  static void Put(const std::string& file, const std::string& region) {
    const Outcome outcome = Run({"region", "put", file, region});
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
  }
  // The namd of the only NAM node, 0 if it does not run.
  static pid_t Namd() {
    for (const auto& process : cluster_->Processes())
      if (process.command.substr(0, process.command.find(' ')).ends_with("/msa-namd")) return process.pid;
    return 0;
  }
  static Command With(Command command, const std::string& fault) {
    command.env["MSA_FAULT"] = fault;
    return command;
  }
};

TEST_F(Regions, ARegionIsCreatedListedShownAndRemoved) {
  Create("fields", {"--segment", "1M:8", "--segment", "100B:4", "--mode", "0640"});
  const Json shown = cluster_->Query({"region", "show", "fields"});
  EXPECT_EQ(shown["kind"].text(), "Region");
  EXPECT_EQ(shown["state"].text(), "READY");
  EXPECT_EQ(shown["lifetime"].text(), "persistent");
  EXPECT_EQ(shown["mode"].text(), "0640");
  ASSERT_EQ(shown["segments"].list().size(), 2u);
  EXPECT_EQ(shown["segments"].list()[0]["node"].text(), "nam0");
  EXPECT_EQ(shown["segments"].list()[0]["displacement_unit"].number(), 8);
  EXPECT_EQ(shown["segments"].list()[1]["bytes"].number(), 100);
  EXPECT_TRUE(shown["holders"].list().empty());
  EXPECT_EQ(cluster_->Query({"nam", "show", shown["port"].text()})["name"].text(), "fields");
  EXPECT_EQ(cluster_->Query({"nam", "show", shown["uuid"].text()})["name"].text(), "fields");
  EXPECT_EQ(Run({"region", "list", "-f", "name"}).out, "fields\n");
  EXPECT_EQ(Run({"completion", "words", "--", "region", "show", "fi"}).out.substr(0, 6), "fields");
  EXPECT_EQ(Held("fields"), std::string(kMiB + 100, '\0')) << "zeroed";
  const Outcome again = Run({"region", "create", "fields", "--size", "1M"});
  EXPECT_EQ(again.code, 7) << again.Text();
  EXPECT_EQ(Run({"region", "rm", "fields"}).code, 0);
  EXPECT_EQ(Run({"region", "show", "fields"}).code, 3);
  EXPECT_EQ(Run({"region", "rm", "fields"}).code, 3);
}

TEST_F(Regions, BytesGoInAndOutByFileAndByPipeWhole) {
  const std::string data = Noise(9 * kMiB + 77, 1);
  const std::string file = File("in", data);
  Create("fields", {"--size", std::to_string(data.size()) + "B", "--segments", "3"});
  const Outcome put = Run({"region", "put", "--checksum", file, "fields"});
  ASSERT_EQ(put.code, 0) << put.Text();
  EXPECT_EQ(put.err, "") << "no progress without a terminal";
  const Outcome got = Run({"region", "get", "--checksum", "fields", Path("out")});
  ASSERT_EQ(got.code, 0) << got.Text();
  EXPECT_TRUE(support::ReadFile(Path("out")) == data);
  EXPECT_EQ(put.out.substr(0, 32), got.out.substr(0, 32));
  EXPECT_TRUE(Held("fields") == data);
  Command pipe = cluster_->Msactl({"region", "put", "-", "fields/1@10"});
  pipe.input = "a piped text";
  ASSERT_EQ(support::RunCommand(pipe).code, 0);
  const Outcome part = Run({"region", "get", "fields/1@10", "-", "--length", "12"});
  EXPECT_EQ(part.out, "a piped text") << part.err;
  const Outcome beyond = Run({"region", "put", file, "fields@1"});
  EXPECT_EQ(beyond.code, 5) << beyond.Text();
  EXPECT_EQ(Run({"region", "get", "fields/3", "-"}).code, 3);
  EXPECT_EQ(Run({"region", "get", "fields/0@99999999", "-"}).code, 5);
  EXPECT_EQ(Run({"region", "put", "/nowhere/file", "fields"}).code, 3);
}

TEST_F(Regions, ACopyHasTheSameSegmentsAndBytes) {
  const std::string data = Noise(2 * kMiB + 5, 2);
  Create("fields", {"--segment", "1M:8", "--segment", std::to_string(kMiB + 5) + "B"});
  Put(File("in", data), "fields");
  ASSERT_EQ(Run({"region", "copy", "fields", "again"}).code, 0);
  EXPECT_TRUE(Held("again") == data);
  const Json again = cluster_->Query({"region", "show", "again"});
  EXPECT_EQ(again["segments"].list()[0]["displacement_unit"].number(), 8);
  EXPECT_EQ(Run({"region", "copy", "fields", "again"}).code, 7);
  EXPECT_EQ(Run({"region", "copy", "--force", "fields", "again"}).code, 0);
  EXPECT_EQ(Run({"region", "copy", "fields", "fields"}).code, 2);
}

TEST_F(Regions, AResizeKeepsWhatBothSizesHaveInCommon) {
  const std::string data = Noise(2 * kMiB, 3);
  Create("fields", {"--size", "2M", "--segments", "2"});
  Put(File("in", data), "fields");
  const Outcome resized = Run({"region", "resize", "fields", "--segment", "0=3M"});
  ASSERT_EQ(resized.code, 0) << resized.Text();
  EXPECT_TRUE(Held("fields/0") == data.substr(0, kMiB) + std::string(2 * kMiB, '\0'));
  EXPECT_TRUE(Held("fields/1") == data.substr(kMiB));
  EXPECT_EQ(Run({"region", "resize", "fields", "--segment", "2=1M"}).code, 2);
}

TEST_F(Regions, OneInUseIsNotRemovedAndTheTextSaysByWhom) {
  Create("fields", {"--size", "1M"});
  Command put = cluster_->Msactl({"region", "put", "-", "fields"});
  put.input = "x";
  put.keep_input_open = true;
  Process user(put);
  ASSERT_TRUE(Eventually(30s, "it is attached", [] {
    return !cluster_->Query({"region", "show", "fields"})["holders"].list().empty();
  }));
  const Json holder = cluster_->Query({"region", "show", "fields"})["holders"].list()[0];
  EXPECT_THAT(holder["who"].text(), HasSubstr(std::to_string(user.pid())));
  EXPECT_EQ(holder["rights"].text().substr(0, 2), "rw");
  const Outcome refused = Run({"region", "rm", "fields"});
  EXPECT_EQ(refused.code, 7) << refused.Text();
  EXPECT_THAT(refused.err, AllOf(HasSubstr("fields"), HasSubstr(std::to_string(user.pid()))));
  EXPECT_EQ(Run({"region", "resize", "fields", "--size", "2M"}).code, 7);
  user.CloseInput();
  EXPECT_EQ(user.Wait().code, 0);
  EXPECT_EQ(Run({"region", "rm", "fields"}).code, 0) << "a command that has ended uses it no more";
}

TEST_F(Regions, CommandsInAJobThatIsBoundToReadLeaveTheRegionAsItIs) {
  Create("fields", {"--size", "1M"});
  const std::string text(kMiB, 'f');
  Put(File("fields.bin", text), "fields");
  const std::string other = File("other.bin", std::string(kMiB, 'o'));
  Create("source", {"--size", "1M"});
  const auto in_job = [](const std::string& binding, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"run", "-n", "1", "--nam-region", binding, support::BinaryPath("msactl")};
    all.insert(all.end(), words.begin(), words.end());
    return Run(std::move(all));
  };
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"region", "put", other, "fields"},
                                             {"region", "copy", "--force", "source", "fields"},
                                             {"region", "rm", "fields"},
                                             {"region", "rm", "--force", "fields"},
                                             {"region", "resize", "fields", "--size", "2M"},
                                             {"region", "acl", "fields", "--mode", "0666"}}) {
    const Outcome outcome = in_job("fields:ro", words);
    EXPECT_EQ(outcome.code, 4) << words[1] << ": " << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("fields"), HasSubstr("--nam-region"))) << words[1];
  }
  EXPECT_EQ(in_job("fields:ro", {"region", "get", "fields", "-"}).out, text);
  EXPECT_EQ(in_job("fields:ro", {"region", "acl", "fields"}).code, 0) << "to look is no change";
  EXPECT_EQ(cluster_->Query({"region", "show", "fields"})["mode"].text(), "0600");
  EXPECT_EQ(Held("fields"), text);
  EXPECT_EQ(in_job("fields:rw", {"region", "put", other, "fields"}).code, 0);
  EXPECT_EQ(in_job("fields:rw", {"region", "acl", "fields", "--mode", "0640"}).code, 0);
  EXPECT_EQ(Held("fields"), std::string(kMiB, 'o'));
}

TEST_F(Regions, MoreThanThereIsIsRefusedWithNumbersAndTakesNothing) {
  const auto used = [] { return cluster_->Query({"region", "df"})["nodes"].list()[0]["used"].number(); };
  Create("most", {"--size", "900M"});
  const double before = used();
  EXPECT_GE(before, 900.0 * kMiB);
  const Outcome outcome = Run({"region", "create", "rest", "--size", "200M"});
  EXPECT_EQ(outcome.code, 5) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("M"));
  EXPECT_EQ(used(), before);
  EXPECT_EQ(Run({"region", "show", "rest"}).code, 3);
  const Outcome never = Run({"region", "create", "rest", "--size", "2G"});
  EXPECT_EQ(never.code, 5) << never.Text();
  const Outcome df = Run({"region", "df"});
  EXPECT_THAT(df.out, AllOf(HasSubstr("nam0"), HasSubstr("USER"), HasSubstr("no job uses NAM")));
  ASSERT_EQ(Run({"region", "rm", "most"}).code, 0);
  EXPECT_TRUE(Eventually(30s, "all is free", [&] { return used() == 0; }));
}

TEST_F(Regions, AnInterruptedPutGoesOnWhereItWas) {
  const std::string data = Noise(96 * kMiB, 4);
  const std::string file = File("in", data);
  Create("fields", {"--size", "96M"});
  // Killed without a word.
  const Outcome killed = support::RunCommand(
      With(cluster_->Msactl({"region", "put", file, "fields"}), "msactl.transfer.chunk=kill@14"));
  EXPECT_EQ(killed.code, 128 + 9) << killed.Text();
  ASSERT_TRUE(fs::exists(file + ".msa-part"));
  EXPECT_TRUE(Eventually(30s, "its lease has ended", [] {
    return cluster_->Query({"region", "show", "fields"})["holders"].list().empty();
  }));
  const Outcome resumed = Run({"region", "put", "--resume", "--checksum", file, "fields"});
  ASSERT_EQ(resumed.code, 0) << resumed.Text();
  EXPECT_FALSE(fs::exists(file + ".msa-part"));
  EXPECT_TRUE(Held("fields") == data);
  const Outcome whole = Run({"region", "get", "--checksum", "fields", Path("out")});
  EXPECT_EQ(whole.out.substr(0, 32), resumed.out.substr(0, 32));
}

TEST_F(Regions, CtrlCLeavesAStateAndSaysSoAndAChangedSourceIsRefused) {
  const std::string file = File("in", Noise(64 * kMiB, 5));
  Create("fields", {"--size", "64M"});
  Process put(
      With(cluster_->Msactl({"region", "put", file, "fields"}), "msactl.transfer.chunk=sleep:3000@9"));
  ASSERT_TRUE(Eventually(30s, "it is under way", [&] {
    return support::ReadFile(file + ".msa-part").find("position 33554432") != std::string::npos;
  }));
  put.Signal(SIGINT);
  const Outcome outcome = put.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("interrupted"), HasSubstr(".msa-part"), HasSubstr("--resume")));
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(5).write("x", 1);
  const Outcome refused = Run({"region", "put", "--resume", file, "fields"});
  EXPECT_EQ(refused.code, 7) << refused.Text();
  EXPECT_THAT(refused.err, HasSubstr("has changed"));
  EXPECT_EQ(Run({"region", "put", file, "fields"}).code, 0) << "anew";
}

TEST_F(Regions, AGetOverTheFabricIsInterruptedAsOneOverMappedMemoryAndGoesOn) {
  const std::string data = Noise(64 * kMiB, 8);
  Create("fields", {"--size", "64M"});
  Put(File("in", data), "fields");
  const std::string out = Path("out");
  for (const int signal : {SIGINT, SIGTERM}) {
    Command command =
        With(cluster_->Msactl({"region", "get", "fields", out}), "msactl.transfer.chunk=sleep:3000@9");
    command.env["MSA_NAM_TRANSPORT"] = "fabric";
    Process get(std::move(command));
    ASSERT_TRUE(Eventually(30s, "it is under way", [&] {
      return support::ReadFile(out + ".msa-part").find("position 33554432") != std::string::npos;
    }));
    get.Signal(signal);
    const Outcome outcome = get.Wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.Text();
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("interrupted"), HasSubstr(".msa-part"), HasSubstr("--resume")));
    Command resume = cluster_->Msactl({"region", "get", "--resume", "fields", out});
    resume.env["MSA_NAM_TRANSPORT"] = "fabric";
    const Outcome resumed = support::RunCommand(std::move(resume));
    EXPECT_EQ(resumed.code, 0) << resumed.Text();
    EXPECT_TRUE(support::ReadFile(out) == data);
  }
}

TEST_F(Regions, AProgramThatOpensOneOverTheFabricKeepsItsSignalHandlers) {
  Create("fields", {"--size", "1M"});
  for (const char* transport : {"local", "fabric"}) {
    const Outcome outcome = Run({"run", "-n", "1", "env", std::string("MSA_NAM_TRANSPORT=") + transport,
                                 ProgramPath("nam_signals"), "fields"});
    EXPECT_THAT(outcome.out, HasSubstr("kept ")) << transport << outcome.Text();
    EXPECT_EQ(outcome.code, 42) << transport << ": its own handler of SIGTERM; " << outcome.Text();
  }
}

TEST_F(Regions, APutOutlivesTheDeathOfItsNamdOrSaysWhyNot) {
  const std::string data = Noise(64 * kMiB, 6);
  const std::string file = File("in", data);
  Create("fields", {"--size", "64M"});
  Process put(With(cluster_->Msactl({"region", "put", "--timeout", "60s", file, "fields"}),
                   "msactl.transfer.chunk=sleep:3000@9"));
  ASSERT_TRUE(Eventually(30s, "it is under way", [&] {
    return support::ReadFile(file + ".msa-part").find("position 33554432") != std::string::npos;
  }));
  const pid_t namd = Namd();
  ASSERT_NE(namd, 0);
  ASSERT_EQ(::kill(namd, SIGKILL), 0);
  const Outcome outcome = put.Wait();
  if (outcome.code != 0) {
    EXPECT_EQ(outcome.code, 8) << outcome.Text();
    EXPECT_THAT(outcome.err, HasSubstr("--resume"));
    const Outcome resumed = Run({"region", "put", "--resume", file, "fields"});
    EXPECT_EQ(resumed.code, 0) << resumed.Text();
  }
  EXPECT_TRUE(Held("fields") == data);
  ASSERT_TRUE(cluster_->KillDaemon("controller").ok());
  EXPECT_TRUE(Held("fields") == data) << "the controller's death loses no region";
}

TEST_F(Regions, SnapshotsAreDifferentialAndRestoreWhatWasThere) {
  const std::string store = Path("store");
  std::string data = Noise(8 * kMiB + 9, 7);
  Create("fields", {"--size", std::to_string(data.size()) + "B", "--segments", "2", "--mode", "0640"});
  Put(File("in", data), "fields");
  const Json first = cluster_->Query({"region", "snapshot", "fields", store, "--name", "one"});
  EXPECT_EQ(first["blocks_reused"].number(), 0);
  EXPECT_EQ(first["bytes"].number(), static_cast<double>(data.size()));
  const std::string before = data;
  data[3] = static_cast<char>(data[3] ^ 1);
  Put(File("in", data), "fields");
  const Json second = cluster_->Query({"region", "snapshot", "fields", store, "--name", "two"});
  EXPECT_EQ(second["blocks_written"].number(), 1);
  EXPECT_EQ(Run({"region", "snapshot", "--list", store, "-f", "name"}).out, "one\ntwo\n");
  EXPECT_EQ(Run({"region", "snapshot", "fields", store, "--name", "two"}).code, 7);

  EXPECT_EQ(Run({"region", "restore", store + ":one"}).code, 7) << "it is there";
  ASSERT_EQ(Run({"region", "restore", store + ":one", "again"}).code, 0);
  EXPECT_TRUE(Held("again") == before);
  EXPECT_EQ(cluster_->Query({"region", "show", "again"})["mode"].text(), "0640");
  ASSERT_EQ(Run({"region", "rm", "fields"}).code, 0);
  ASSERT_EQ(Run({"region", "restore", store}).code, 0);
  EXPECT_TRUE(Held("fields") == data) << "the newest one";
  ASSERT_EQ(Run({"region", "restore", "--force", store + ":one"}).code, 0);
  EXPECT_TRUE(Held("fields") == before);

  // A block that is damaged, then a manifest that is torn: refused, and nothing is made.
  for (const auto& entry : fs::recursive_directory_iterator(store + "/blocks"))
    if (entry.is_regular_file()) {
      std::ofstream(entry.path(), std::ios::app) << "x";
      break;
    }
  const Outcome damaged = Run({"region", "restore", store + ":one", "third"});
  const Outcome damaged_two = Run({"region", "restore", store + ":two", "third"});
  EXPECT_TRUE(damaged.code == 1 || damaged_two.code == 1) << damaged.Text() << damaged_two.Text();
  EXPECT_THAT(damaged.err + damaged_two.err, HasSubstr("is damaged"));
  if (damaged.code == 1 && damaged_two.code == 1) {
    EXPECT_EQ(Run({"region", "show", "third"}).code, 3);
  }
  const std::string manifest = store + "/snapshots/two.manifest";
  fs::resize_file(manifest, fs::file_size(manifest) - 1);
  const Outcome torn = Run({"region", "restore", store + ":two", "fourth"});
  EXPECT_EQ(torn.code, 1) << torn.Text();
  EXPECT_THAT(torn.err, HasSubstr("it is torn"));
  EXPECT_EQ(Run({"region", "show", "fourth"}).code, 3);
}

TEST_F(Regions, FsckFindsNothingInASystemThatWasLeftAlone) {
  Create("fields", {"--size", "1M"});
  const Outcome outcome = Run({"region", "fsck"});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("agree"));
}

TEST_F(Regions, FsckTellsOfFilesThatAreMissingForeignOrOfTheWrongLength) {
  const auto extents = [] {
    std::set<std::string> files;
    for (const auto& entry : fs::directory_iterator(cluster_->dir() + "/nam/nam0"))
      if (entry.path().extension() == ".extent") files.insert(entry.path());
    return files;
  };
  const auto make = [&](const std::string& name) {
    const std::set<std::string> before = extents();
    Create(name, {"--size", "1M"});
    for (const std::string& file : extents())
      if (!before.contains(file)) return file;
    return std::string();
  };
  const std::string gone = make("gone");
  const std::string cut = make("cut");
  const std::string grown = make("grown");
  make("whole");
  fs::remove(gone);
  fs::resize_file(cut, 4096);
  const std::string stray = cluster_->dir() + "/nam/nam0/thesis.tex";
  std::ofstream(stray) << "mine";
  // Of a region that is none.
  std::string copy = grown;
  char& digit = copy[cluster_->dir().size() + sizeof "/nam/nam0/" - 1];
  digit = digit == 'a' ? 'b' : 'a';
  fs::copy(grown, copy);

  Outcome found;
  // Once more where namd has just given back what was too much, which it does every 5 s.
  for (int attempt = 0; attempt < 2 && found.out.find("grown") == std::string::npos; ++attempt) {
    fs::resize_file(grown, 4 * kMiB);
    found = Run({"region", "fsck"});
  }
  EXPECT_EQ(found.code, 1) << found.Text();
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("gone"), HasSubstr("cut"), HasSubstr("grown"), Not(HasSubstr("whole")),
                    HasSubstr("thesis.tex"), HasSubstr("that no region knows")));
  EXPECT_EQ(Run({"region", "get", "gone", "-"}).code, 1) << "it is known to be damaged now";
  EXPECT_EQ(Run({"region", "get", "whole", "-"}).code, 0);
  EXPECT_EQ(Run({"region", "get", "grown", "-"}).out.size(), kMiB);

  Run({"region", "fsck", "--repair"});
  EXPECT_FALSE(fs::exists(copy)) << "freed";
  EXPECT_TRUE(fs::exists(stray)) << "no file of msa's";
  fs::remove(stray);
  fs::resize_file(grown, fs::file_size(make("model")));
  for (const char* name : {"gone", "cut"}) EXPECT_EQ(Run({"region", "rm", name}).code, 0);
  const Outcome clean = Run({"region", "fsck"});
  EXPECT_EQ(clean.code, 0) << clean.Text();
}

TEST_F(Regions, RightsAreShownAndChanged) {
  Create("fields", {"--size", "1M"});
  const Outcome changed = Run({"region", "acl", "fields", "--set", "user:12345:rw", "--mode", "0644"});
  EXPECT_EQ(changed.code, 0) << changed.Text();
  EXPECT_THAT(changed.out, AllOf(HasSubstr("user:12345:rw"), HasSubstr("0644")));
  EXPECT_THAT(Run({"region", "acl", "fields", "--remove", "user:12345"}).out, Not(HasSubstr("12345")));
  EXPECT_EQ(Run({"region", "acl", "fields", "--set", "user:no-such-user:r"}).code, 3);
  EXPECT_EQ(Run({"region", "acl", "fields", "--set", "fields:r"}).code, 2);
}

// A system of root that others reach, as the machine's own is.
class OthersRegions : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "NEEDS ROOT: only root has a system that other users reach";
    auto started = MiniCluster::Start({.all_users = true});
    ASSERT_TRUE(started.ok()) << started.status().message();
    cluster_ = *std::move(started);
  }

  Outcome AsNobody(std::vector<std::string> arguments) {
    Command command = cluster_->MsactlAs(65534, std::move(arguments));
    command.cwd = "/tmp";
    return support::RunCommand(std::move(command));
  }

  std::unique_ptr<MiniCluster> cluster_;
};

TEST_F(OthersRegions, AUserMayDoWhatHisRightsSayAndNoMore) {
  const std::string data = Noise(kMiB, 8);
  const std::string file = cluster_->scratch().Write("in", data);
  // A put leaves its state beside the file meanwhile.
  ASSERT_EQ(::chmod(cluster_->scratch().path().c_str(), 01777), 0);
  ASSERT_EQ(cluster_->Run({"region", "create", "fields", "--size", "1M"}).code, 0);
  ASSERT_EQ(cluster_->Run({"region", "put", file, "fields"}).code, 0);
  EXPECT_EQ(AsNobody({"region", "list", "-f", "name"}).out, "") << "no right, not seen";
  const Outcome closed = AsNobody({"region", "get", "fields", "-"});
  EXPECT_TRUE(closed.code == 4 || closed.code == 3) << closed.Text();
  ASSERT_EQ(cluster_->Run({"region", "acl", "fields", "--set", "user:65534:r"}).code, 0);
  EXPECT_EQ(AsNobody({"region", "list", "-f", "name"}).out, "fields\n");
  const Outcome read = AsNobody({"region", "get", "fields", "-"});
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_TRUE(read.out == data);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"region", "put", file, "fields"},
                                                {"region", "rm", "fields"},
                                                {"region", "resize", "fields", "--size", "2M"},
                                                {"region", "acl", "fields", "--mode", "0666"},
                                                {"region", "fsck", "--repair"}}) {
    const Outcome denied = AsNobody(words);
    EXPECT_EQ(denied.code, 4) << words[1] << "\n" << denied.Text();
  }
  EXPECT_TRUE(cluster_->Run({"region", "get", "fields", "-"}).out == data) << "untouched";
  ASSERT_EQ(cluster_->Run({"region", "acl", "fields", "--set", "user:65534:rw"}).code, 0);
  const Outcome written = AsNobody({"region", "put", file, "fields"});
  EXPECT_EQ(written.code, 0) << written.Text();
}

}  // namespace
}  // namespace msa::e2e
