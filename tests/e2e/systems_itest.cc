// Local systems as wholes: up, down, side by side, as an ordinary user, on a full disk.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <regex>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<MiniCluster> StartOrFail(support::MiniClusterOptions options = {}) {
  auto started = MiniCluster::Start(std::move(options));
  EXPECT_TRUE(started.ok()) << started.status().message();
  return started.ok() ? *std::move(started) : nullptr;
}

constexpr char kTwoNodes[] = R"([[module]]
name = "cluster"
id = 0
[[module.node]]
names = "cn[0-1]"
cores = 4
)";

TEST(LocalSystem, LeavesNoProcessSocketOrSharedMemoryBehind) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  ASSERT_EQ(cluster->Run({"run", "-N", "2", "-n", "2", ProgramPath("mpi_hello")}).code, 0);
  Process run(cluster->Msactl({"run", "-N", "2", "-n", "4", ProgramPath("task"), "family"}));
  ASSERT_TRUE(run.ReadUntil([&] { return Lines(run.out()).size() == 4; })) << run.err();
  const Outcome down = cluster->Down();
  EXPECT_EQ(down.code, 0) << down.Text();
  EXPECT_NE(run.Wait().code, 0);
  EXPECT_THAT(cluster->Leftovers(), testing::IsEmpty());
}

TEST(LocalSystem, KeepsItsJobsOverDownAndUp) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  ASSERT_EQ(cluster->Run({"run", "-J", "before", "true"}).code, 0);
  ASSERT_EQ(cluster->Run({"node", "drain", "cn1", "--reason", "fan broken"}).code, 0);
  ASSERT_EQ(cluster->Down().code, 0);
  const std::string topology = cluster->scratch().path() + "/topology.toml";
  ASSERT_EQ(cluster->Run({"cluster", "up", "--topology", topology}).code, 0);
  const auto jobs = cluster->Query({"job", "list", "-a"})["items"].list();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["name"].text(), "before");
  EXPECT_EQ(cluster->Query({"node", "show", "cn1"})["reason"].text(), "fan broken");
}

TEST(LocalSystem, TakenDownAfterItsDaemonsWereKilledForgetsItsJobs) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  const std::string mark = cluster->scratch().path() + "/started";
  ASSERT_EQ(cluster->Run({"run", "-J", "done", "true"}).code, 0);
  ASSERT_EQ(cluster->Run({"run", "--detach", "--exclusive", "-N", "2", "-J", "runs", "sleep", "1000"}).code,
            0);
  ASSERT_EQ(cluster->Run({"run", "--detach", "-J", "waits", "touch", mark}).code, 0);
  ASSERT_TRUE(Eventually(30s, "a job runs", [&] { return cluster->SlotsUsed() > 0; }));
  ::kill(cluster->Daemon("supervisor"), SIGKILL);
  for (const support::ProcessEntry& process : cluster->Processes())
    if (process.command.find("msa-controllerd") != std::string::npos ||
        process.command.find("msa-noded") != std::string::npos)
      ::kill(process.pid, SIGKILL);
  ASSERT_TRUE(Eventually(30s, "the controller is dead", [&] { return cluster->Daemon("controller") == 0; }));
  const Outcome down = cluster->Down();
  EXPECT_EQ(down.code, 0) << down.Text();
  EXPECT_THAT(down.out, HasSubstr("2 jobs cancelled"));
  EXPECT_LE(Lines(down.err).size(), 1u) << down.err;
  EXPECT_THAT(cluster->Leftovers(), testing::IsEmpty());
  const std::string topology = cluster->scratch().path() + "/topology.toml";
  ASSERT_EQ(cluster->Run({"cluster", "up", "-q", "--topology", topology}).code, 0);
  EXPECT_TRUE(cluster->Query({"job", "list"})["items"].list().empty());
  const auto jobs = cluster->Query({"job", "list", "-a"})["items"].list();
  ASSERT_EQ(jobs.size(), 3u);
  for (const Json& job : jobs)
    EXPECT_EQ(job["state"].text(), job["name"].text() == "done" ? "COMPLETED" : "CANCELLED");
  EXPECT_FALSE(fs::exists(mark)) << "a job that was cancelled has run";
}

TEST(LocalSystem, ThatDoesNotComeUpInTimeIsStoppedAgain) {
  const support::ScratchDirectory scratch;
  const std::string dir = scratch.path() + "/d";
  const auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {support::BinaryPath("msactl"), "--dir", dir});
    return support::RunCommand({.argv = arguments});
  };
  for (const char* timeout : {"0", "5ms", "60ms"}) {
    const Outcome up = call({"cluster", "up", "--timeout", timeout});
    // A fast machine may be up within 60 ms.
    if (up.code == 0) {
      EXPECT_EQ(call({"cluster", "down"}).code, 0);
      continue;
    }
    EXPECT_EQ(up.code, 6) << up.Text();
    EXPECT_THAT(up.err, HasSubstr("what was started is stopped again"));
    EXPECT_EQ(call({"cluster", "status"}).code, 8) << "something runs on";
  }
  const Outcome down = call({"cluster", "down", "--purge", "-q"});
  EXPECT_EQ(down.code, 0) << down.Text();
  EXPECT_EQ(down.out + down.err, "");
  EXPECT_FALSE(fs::exists(dir));
}

TEST(LocalSystem, RemovesOnlyWhatIsItsOwn) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  const std::string mine = cluster->dir() + "/mine";
  fs::create_directory(mine);
  std::ofstream(mine + "/p") << "p";
  const Outcome down = cluster->Run({"cluster", "down", "--purge"});
  EXPECT_EQ(down.code, 0) << down.Text();
  EXPECT_THAT(down.err, AllOf(HasSubstr("not msa's"), HasSubstr("mine")));
  EXPECT_EQ(support::ReadFile(mine + "/p"), "p");
  EXPECT_FALSE(fs::exists(cluster->dir() + "/state.db"));
  // It is nobody's system any more.
  const Outcome again = cluster->Run({"cluster", "down", "--purge"});
  EXPECT_EQ(again.code, 7) << again.Text();
  EXPECT_THAT(again.err, HasSubstr("nothing is removed"));
  const Outcome up = cluster->Run({"cluster", "up"});
  EXPECT_EQ(up.code, 2) << up.Text();
  EXPECT_THAT(up.err, AllOf(HasSubstr("mine"), HasSubstr("--dir")));
  EXPECT_EQ(support::ReadFile(mine + "/p"), "p");
}

TEST(LocalSystem, StartsFromTheExampleTopology) {
  const auto cluster = StartOrFail({.up = {"--topology", MSA_EXAMPLES "/topology.toml"}});
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(cluster->Query({"node", "list"})["items"].list().size(), 7u);
  EXPECT_EQ(cluster->Run({"run", "-m", "booster", "-N", "2", "--gpus-per-node", "1", "true"}).code, 0);
  EXPECT_THAT(cluster->Run({"cluster", "up", "--help"}).out,
              AllOf(HasSubstr("msa-topology(5)"), HasSubstr("examples/topology.toml")));
}

TEST(LocalSystem, LogsTellTimeInOneWay) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  ASSERT_EQ(cluster->Run({"run", "-N", "2", "true"}).code, 0);
  for (const char* daemon : {"supervisor", "controller", "noded-cn0", "jobd-cn0"}) {
    for (const std::string& line : Lines(cluster->Run({"cluster", "logs", daemon}).out))
      EXPECT_TRUE(std::regex_search(line, std::regex(R"(^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )")))
          << daemon << ": " << line;
  }
}

TEST(LocalSystem, StatusAndLogsNameItsDaemons) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  const Outcome status = cluster->Run({"cluster", "status"});
  EXPECT_EQ(status.code, 0) << status.Text();
  for (const char* name : {"supervisor", "controller", "noded-cn0", "noded-cn1"})
    EXPECT_THAT(status.out, HasSubstr(name));
  EXPECT_EQ(cluster->Run({"cluster", "logs", "controller"}).code, 0);
  EXPECT_NE(cluster->Run({"cluster", "logs", "controler"}).code, 0);
}

TEST(LocalSystem, TwoLiveSideBySideWithoutKnowingOfEachOther) {
  const auto first = StartOrFail({.topology = kTwoNodes});
  const auto second = StartOrFail({.topology = kTwoNodes});
  ASSERT_TRUE(first != nullptr && second != nullptr);
  Process one(first->Msactl({"run", "-N", "2", "-n", "2", ProgramPath("mpi_ring")}));
  Process two(second->Msactl({"run", "-N", "2", "-n", "2", ProgramPath("mpi_ring")}));
  EXPECT_EQ(one.Wait().out, "ring ok size=2\n");
  EXPECT_EQ(two.Wait().out, "ring ok size=2\n");
  ASSERT_EQ(first->Down().code, 0);
  EXPECT_EQ(second->Run({"run", "-N", "2", ProgramPath("mpi_hello")}).code, 0)
      << "the other system's end disturbed it";
}

// As root: everything as this user, who may not read the build tree. As somebody else: that is an ordinary
// user.
support::MiniClusterOptions OfOrdinaryUser(uid_t uid, const support::ScratchDirectory& bin) {
  support::MiniClusterOptions options{.topology = kTwoNodes};
  if (::geteuid() != 0) return options;
  options.uid = uid;
  options.bin = bin.path();
  fs::permissions(bin.path(), fs::perms(0755));
  for (const char* name : {"msactl", "msa-controllerd", "msa-noded", "msa-jobd", "msa-exec", "msa-namd"})
    fs::copy(support::BinaryPath(name), bin.path() + "/" + name);
  for (const char* name : {"mpi_hello", "mpi_spawn"}) fs::copy(ProgramPath(name), bin.path() + "/" + name);
  return options;
}

TEST(LocalSystem, NeedsNeitherAnAccountNorAHome) {
  const support::ScratchDirectory bin;
  support::MiniClusterOptions options = OfOrdinaryUser(64'103, bin);
  options.without_home = true;
  const auto cluster = StartOrFail(options);
  ASSERT_NE(cluster, nullptr);
  const Outcome id = cluster->Run({"run", "-N", "2", "id", "-u"});
  EXPECT_EQ(id.code, 0) << id.Text();
  const std::string own = std::to_string(options.uid != 0 ? options.uid : ::geteuid()) + "\n";
  EXPECT_EQ(id.out, own + own);
}

TEST(LocalSystem, WorksAsAnOrdinaryUser) {
  const support::ScratchDirectory bin;
  const support::MiniClusterOptions options = OfOrdinaryUser(65'534, bin);
  const std::string programs =
      options.uid != 0 ? bin.path() : fs::path(ProgramPath("mpi_hello")).parent_path().string();
  const auto cluster = StartOrFail(options);
  ASSERT_NE(cluster, nullptr);
  const Outcome hello = cluster->Run({"run", "-N", "2", "-n", "2", programs + "/mpi_hello"});
  EXPECT_EQ(hello.code, 0) << hello.Text();
  EXPECT_THAT(hello.out, AllOf(HasSubstr("rank=0 size=2 node=cn0"), HasSubstr("rank=1 size=2 node=cn1")));
  const Outcome spawn = cluster->Run({"run", "-n", "1", programs + "/mpi_spawn", "--children", "2"});
  EXPECT_EQ(spawn.code, 0) << spawn.Text();
  EXPECT_EQ(cluster->Run({"run", "id", "-u"}).out,
            std::to_string(options.uid != 0 ? options.uid : ::geteuid()) + "\n");
  ASSERT_EQ(cluster->Down().code, 0);
  EXPECT_THAT(cluster->Leftovers(), testing::IsEmpty());
}

// Programs of one directory at the same time.
class LocalSystemRaces : public testing::Test {
 protected:
  Command Call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {support::BinaryPath("msactl"), "--dir", scratch_.path() + "/d"});
    return {.argv = std::move(arguments)};
  }
  Outcome Run(std::vector<std::string> arguments) const {
    return support::RunCommand(Call(std::move(arguments)));
  }
  // Processes that name the directory, the shared memory and sockets of this system.
  std::vector<std::string> Left() const {
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string line = support::ReadFile(entry.path().string() + "/cmdline");
      if (line.find(scratch_.path() + "/d") != std::string::npos) left.push_back(line);
    }
    if (fs::exists(scratch_.path() + "/d/n")) left.push_back("run directories");
    if (fs::exists(scratch_.path() + "/d/controller.sock")) left.push_back("controller.sock");
    return left;
  }
  void TearDown() override {
    const Outcome down = Run({"cluster", "down"});
    EXPECT_EQ(down.code, 0) << down.Text();
    EXPECT_THAT(Left(), testing::IsEmpty());
  }

  support::ScratchDirectory scratch_;
};

TEST_F(LocalSystemRaces, TwoUpsOfOneNewDirectoryMakeOneSystem) {
  for (int round = 0; round < 5; ++round) {
    Process first(Call({"cluster", "up", "-q"}));
    Process second(Call({"cluster", "up", "-q"}));
    const std::array<Outcome, 2> outcomes = {first.Wait(), second.Wait()};
    ASSERT_EQ(std::min(outcomes[0].code, outcomes[1].code), 0) << outcomes[0].Text() << outcomes[1].Text();
    const Outcome& other = outcomes[0].code == 0 ? outcomes[1] : outcomes[0];
    EXPECT_EQ(other.code, 7) << other.Text();
    EXPECT_THAT(other.err, HasSubstr("runs in '" + scratch_.path() + "/d' already"));
    EXPECT_EQ(Run({"run", "true"}).code, 0);
    ASSERT_EQ(Run({"cluster", "down"}).code, 0);
    EXPECT_THAT(Left(), testing::IsEmpty());
  }
}

TEST_F(LocalSystemRaces, ADownWithinAnUpEndsBothWithAPlainText) {
  for (int delay = 0; delay <= 200; delay += 10) {
    Process up(Call({"cluster", "up", "-q"}));
    up.ReadUntil([] { return false; }, support::Millis(delay));
    const Outcome down = Run({"cluster", "down"});
    EXPECT_EQ(down.code, 0) << "after " << delay << " ms: " << down.Text();
    const Outcome outcome = up.Wait();
    if (outcome.code == 0) {  // the down came first, or last
      ASSERT_EQ(Run({"cluster", "down"}).code, 0);
    } else {
      EXPECT_EQ(outcome.code, 7) << "after " << delay << " ms: " << outcome.Text();
      EXPECT_THAT(outcome.err, HasSubstr("was taken down while it came up"));
    }
    EXPECT_THAT(Left(), testing::IsEmpty()) << "after " << delay << " ms";
  }
}

TEST_F(LocalSystemRaces, DownsAndUpsInAnyOrderLeaveASystemOrNone) {
  for (int round = 0; round < 6; ++round) {
    std::vector<std::unique_ptr<Process>> calls;
    for (const char* what : {"up", "down", "up", "down", "down"}) {
      calls.push_back(std::make_unique<Process>(Call({"cluster", what, "-q"})));
      calls.back()->ReadUntil([] { return false; }, support::Millis(20 * round));
    }
    for (const auto& call : calls) {
      const Outcome outcome = call->Wait();
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 7) << outcome.Text();
      EXPECT_FALSE(outcome.timed_out);
    }
    if (Run({"cluster", "status"}).code == 0) {
      const Outcome run = Run({"run", "true"});
      EXPECT_EQ(run.code, 0) << run.Text();
    } else {
      EXPECT_THAT(Left(), testing::IsEmpty());
    }
    ASSERT_EQ(Run({"cluster", "down"}).code, 0);
  }
}

TEST_F(LocalSystemRaces, AnUpAfterEverythingWasKilledRunsTheJobsThatWereAccepted) {
  ASSERT_EQ(Run({"cluster", "up", "-q"}).code, 0);
  ASSERT_EQ(Run({"run", "--detach", "-m", "dam", "-c", "4", "-o", "none", "sleep", "3599"}).code, 0);
  const std::string mark = scratch_.path() + "/ran";
  for (int job = 0; job < 3; ++job)
    ASSERT_EQ(Run({"run", "--detach", "-m", "dam", "-c", "4", "-o", "none", "sh", "-c",
                   "echo $MSA_JOB_ID >> " + mark})
                  .code,
              0);
  // All at once, and twice: what starts a daemon again must not be left.
  for (int sweep = 0; sweep < 2; ++sweep)
    for (const auto& entry : fs::directory_iterator("/proc"))
      if (support::ReadFile(entry.path().string() + "/cmdline").find(scratch_.path() + "/d") !=
          std::string::npos)
        ::kill(std::atoi(entry.path().filename().c_str()), SIGKILL);
  const Outcome up = Run({"cluster", "up", "-q"});
  ASSERT_EQ(up.code, 0) << up.Text();
  EXPECT_EQ(Run({"job", "wait", "1"}).code, 125);
  for (const char* job : {"2", "3", "4"}) EXPECT_EQ(Run({"job", "wait", job}).code, 0) << "job " << job;
  EXPECT_THAT(Lines(support::ReadFile(mark)), testing::ElementsAre("2", "3", "4"));
}

TEST(LocalSystem, IsNotBegunOnAFullDisk) {
  // A small file system of its own in a mount namespace, which any user may have.
  const support::ScratchDirectory scratch;
  const std::string script = scratch.Write("full.sh", R"(set -u
for size in 4k 64k 256k; do
  mount -t tmpfs -o size=$size,mode=0700 tmpfs "$1/d" || exit 99
  "$2" cluster up -q --dir "$1/d/s"; echo "up $?"
  ls -A "$1/d"
  umount "$1/d" || exit 98
done
)");
  fs::create_directory(scratch.path() + "/d");
  std::vector<std::string> argv = {"unshare", "--mount"};
  if (::geteuid() != 0) argv.push_back("--map-root-user");
  argv.insert(argv.end(), {"sh", script, scratch.path(), support::BinaryPath("msactl")});
  const Outcome outcome = support::RunCommand({.argv = argv});
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_EQ(outcome.out, "up 5\nup 5\nup 5\n") << outcome.Text();
  EXPECT_THAT(outcome.err, testing::ContainsRegex("the disk of '.*/d/s' is full: 256 KiB are free"));
}

TEST(LocalSystem, SaysThatItsDiskIsFullAndGoesOnWhenThereIsRoomAgain) {
  // A small file system of its own in a mount namespace, which any user may have.
  const support::ScratchDirectory scratch;
  const std::string script = scratch.Write("full.sh", R"(set -u
mount -t tmpfs -o size=12m,mode=0700 tmpfs "$1/d" || exit 99
export MSA_DIR="$1/d/s"
"$2" cluster up -q || exit 98
"$2" run true; echo "before $?"
cat /dev/zero > "$1/d/fill" 2>/dev/null
"$2" run true; echo "full $?"
rm "$1/d/fill"
i=0; while ! "$2" run true 2>/dev/null && [ $((i += 1)) -lt 50 ]; do sleep 0.1; done
"$2" run true; echo "after $?"
"$2" cluster down
)");
  fs::create_directory(scratch.path() + "/d");
  std::vector<std::string> argv = {"unshare", "--mount"};
  if (::geteuid() != 0) argv.push_back("--map-root-user");
  argv.insert(argv.end(), {"sh", script, scratch.path(), support::BinaryPath("msactl")});
  const Outcome outcome = support::RunCommand({.argv = argv});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("before 0\n"), HasSubstr("full 5\n"), HasSubstr("after 0\n")))
      << outcome.Text();
  EXPECT_THAT(outcome.err, testing::ContainsRegex("full|No space|no space"));
}

TEST(LocalSystem, UsesItsRegionsOnAFullDiskAndRefusesToMakeMore) {
  // The memory of regions lies elsewhere: what is full is the directory of the controller's state.
  const support::ScratchDirectory scratch;
  fs::create_directory(scratch.path() + "/nam");
  const std::string topology = scratch.Write(
      "t.toml", "[nam]\nbacking = \"" + scratch.path() + "/nam\"\n[[module]]\nname = \"n\"\nid = 0\n" +
                    "[[module.node]]\nnames = \"nam0\"\ncores = 1\nnam = \"64M\"\n");
  const std::string script = scratch.Write("full.sh", R"(set -u
mount -t tmpfs -o size=12m,mode=0700 tmpfs "$1/d" || exit 99
export MSA_DIR="$1/d/s"
scratch=$1 msactl=$2
m() { "$msactl" region "$@" > "$scratch/out" 2> "$scratch/err"; echo "$1 $?"; }
"$msactl" cluster up -q --topology "$1/t.toml" || exit 98
m create fields --size 1M
m create spare --size 1M
echo before > "$1/text"
m put "$1/text" fields
cat /dev/zero > "$1/d/fill" 2> /dev/null
m create more --size 1M; cat "$1/err"
for round in 1 2; do
  m list; grep -c fields "$1/out"
  m show fields
  m df
  m fsck
  m get fields - --length 6; cat "$1/out"
  echo "full $round" > "$1/text"
  m put "$1/text" fields
  m get fields - --length 6; cat "$1/out"
  m create more --size 1M
  m acl fields --mode 0644
done
m rm spare
m list; grep -c -e fields -e spare "$1/out"
rm "$1/d/fill"
i=0; until "$msactl" region create more --size 1M > /dev/null 2>&1; do
  [ $((i += 1)) -lt 100 ] || exit 97
  sleep 0.1
done
m list; grep -c -e fields -e more "$1/out"
m fsck
"$msactl" cluster down -q
"$msactl" cluster up -q --topology "$1/t.toml" || exit 96
m get fields - --length 6; cat "$1/out"
m fsck
m rm fields
m rm more
"$msactl" cluster down -q
)");
  fs::create_directory(scratch.path() + "/d");
  std::vector<std::string> argv = {"unshare", "--mount"};
  if (::geteuid() != 0) argv.push_back("--map-root-user");
  argv.insert(argv.end(), {"sh", script, scratch.path(), support::BinaryPath("msactl")});
  const Outcome outcome = support::RunCommand({.argv = argv, .timeout = 120s});
  ASSERT_EQ(outcome.code, 0) << outcome.Text();
  const std::string refused = "create 5\nacl 5\n";
  const auto round = [&](const std::string& before, const std::string& now) {
    return "list 0\n1\nshow 0\ndf 0\nfsck 0\nget 0\n" + before + "put 0\nget 0\n" + now + refused;
  };
  const std::string text = Lines(outcome.out).size() > 2 ? Lines(outcome.out).at(4) : "";
  EXPECT_THAT(text, AllOf(HasSubstr("nothing was changed"), HasSubstr("/d/s'"), HasSubstr("free space")));
  EXPECT_EQ(outcome.out, "create 0\ncreate 0\nput 0\ncreate 5\n" + text + "\n" + round("before", "full 1") +
                             round("full 1", "full 2") +
                             "rm 5\nlist 0\n1\nlist 0\n2\nfsck 0\nget 0\nfull 2fsck 0\nrm 0\nrm 0\n")
      << outcome.err;
}

TEST(LocalSystem, AJobThatCannotWriteItsOutputFileFailsWithTheReason) {
  const auto cluster = StartOrFail({.topology = kTwoNodes});
  ASSERT_NE(cluster, nullptr);
  const Outcome outcome = cluster->Run({"run", "-o", "/dev/full", "echo", "lost"});
  EXPECT_NE(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("/dev/full"), HasSubstr("o space left")));
  const Outcome folder = cluster->Run({"run", "-o", "/no/such/dir/out", "echo", "lost"});
  EXPECT_NE(folder.code, 0);
  EXPECT_THAT(folder.err, HasSubstr("/no/such/dir/out"));
}

}  // namespace
}  // namespace msa::e2e
