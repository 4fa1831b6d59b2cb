// One system of root's for several users, as deploy/doc/several-users.md has it: each runs jobs of his own,
// shares what he gives away, and reaches nothing else. The users have numbers and no accounts.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "noise.h"
#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr uid_t kAda = 64101;
constexpr uid_t kBob = 64102;
constexpr char kTopology[] = R"([nam]
user_quota = "8M"

[[module]]
name = "cluster"
id = 0
[[module.node]]
names = "cn[0-1]"
cores = 4

[[module]]
name = "nam"
id = 1
[[module.node]]
names = "nam0"
cores = 1
nam = "64M"
)";

class Users : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::geteuid() != 0) return;
    ::unsetenv("HOME");  // as a service manager starts daemons
    auto started = MiniCluster::Start({.topology = kTopology, .all_users = true});
    ASSERT_TRUE(started.ok()) << started.status().message();
    cluster_ = *std::move(started);
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "NEEDS ROOT: only root has a system for several users; run it as root";
    ASSERT_NE(cluster_, nullptr) << "the system did not start";
  }
  void TearDown() override {
    if (cluster_ == nullptr) return;
    const Json regions = cluster_->Query({"region", "list"});
    for (const Json& region : regions["items"].list())
      EXPECT_EQ(Root({"region", "rm", "--force", region["name"].text()}).code, 0);
    std::vector<std::string> left;
    EXPECT_TRUE(Eventually(30s, "nothing of a job is left", [&] {
      left = cluster_->Leftovers();
      return left.empty() && cluster_->SlotsUsed() == 0;
    })) << testing::PrintToString(left);
  }

  static Outcome Root(std::vector<std::string> arguments) { return cluster_->Run(std::move(arguments)); }
  static Outcome As(uid_t uid, std::vector<std::string> arguments, const std::string& input = "") {
    Command command = cluster_->MsactlAs(uid, std::move(arguments));
    command.input = input;
    return support::RunCommand(std::move(command));
  }
  // A program outside any job.
  static Outcome AsProgram(uid_t uid, std::vector<std::string> argv) {
    Command command = cluster_->MsactlAs(uid, {});
    command.argv = std::move(argv);
    command.env["LD_LIBRARY_PATH"] = cluster_->scratch().path() + "/opt/lib";
    return support::RunCommand(std::move(command));
  }
  static void Must(const Outcome& outcome) { EXPECT_EQ(outcome.code, 0) << outcome.Text(); }
  static void Refused(const Outcome& outcome, int code, const std::vector<std::string>& texts) {
    EXPECT_EQ(outcome.code, code) << outcome.Text();
    for (const std::string& text : texts) EXPECT_THAT(outcome.err, HasSubstr(text));
  }
  static std::string Detach(uid_t uid, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "--detach"});
    const Outcome outcome = As(uid, std::move(arguments));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    const auto lines = Lines(outcome.out);
    return lines.empty() ? "" : lines[0].substr(lines[0].rfind(' ') + 1);
  }
  static std::string StateOf(const std::string& job) {
    return cluster_->Query({"job", "show", job})["state"].text();
  }

  static inline std::unique_ptr<MiniCluster> cluster_;
};

TEST_F(Users, EachRunsJobsAsHimself) {
  const std::string hello = cluster_->ProgramForAll("mpi_hello");
  for (const uid_t uid : {kAda, kBob}) {
    EXPECT_EQ(As(uid, {"run", "id", "-u"}).out, std::to_string(uid) + "\n");
    const Outcome mpi = As(uid, {"run", "-N", "2", "-n", "2", hello});
    Must(mpi);
    EXPECT_THAT(mpi.out, AllOf(HasSubstr("rank=0 size=2 node=cn0"), HasSubstr("rank=1 size=2 node=cn1")));
    EXPECT_EQ(As(uid, {"run", "cat"}, "what is typed").out, "what is typed");
  }
}

TEST_F(Users, JobsOfTwoRunAtTheSameTimeOverTheSameNodes) {
  const std::string ring = cluster_->ProgramForAll("mpi_ring");
  Process ada(cluster_->MsactlAs(kAda, {"run", "-N", "2", "-n", "2", ring}));
  Process bob(cluster_->MsactlAs(kBob, {"run", "-N", "2", "-n", "2", ring}));
  EXPECT_EQ(ada.Wait().out, "ring ok size=2\n");
  EXPECT_EQ(bob.Wait().out, "ring ok size=2\n");
}

TEST_F(Users, ABatchJobWritesIntoItsUsersDirectory) {
  const Outcome submitted = As(kBob, {"submit", "-o", "out", "--wrap", "id -u; id -g"});
  Must(submitted);
  const std::string id = std::to_string(
      static_cast<int>(cluster_->Query({"job", "list", "-a"})["items"].list().back()["id"].number()));
  Must(As(kBob, {"job", "wait", id}));
  const std::string out = cluster_->scratch().path() + "/" + std::to_string(kBob) + "/out";
  EXPECT_EQ(support::ReadFile(out), std::to_string(kBob) + "\n" + std::to_string(kBob) + "\n");
  struct stat info {};
  ASSERT_EQ(::stat(out.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kBob);
}

TEST_F(Users, AJobSpawnsInItsUsersName) {
  const std::string spawn = cluster_->ProgramForAll("mpi_spawn");
  const Outcome own = As(kBob, {"run", "-n", "1", spawn, "--children", "2"});
  Must(own);
  EXPECT_THAT(own.out, HasSubstr("child rank=1 size=2"));
  // Onto a node that is lent for it, where the user had no job daemon.
  const Outcome lent = As(kBob, {"run", "-w", "cn0", "-n", "4", spawn, "--children", "3"});
  Must(lent);
  EXPECT_THAT(lent.out, HasSubstr("node=cn1"));
}

TEST_F(Users, AnothersJobIsSeenAndNotTouched) {
  const std::string job = Detach(kAda, {"-J", "hers", "-o", "none", "sleep", "1000"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return StateOf(job) == "RUNNING"; }));
  EXPECT_THAT(As(kBob, {"job", "list"}).out, HasSubstr("hers"));
  const std::vector<std::string> whose = {"job " + job, "uid 64101"};
  for (const std::vector<std::string>& words : {std::vector<std::string>{"job", "cancel", job},
                                                {"job", "cancel", "--now", job},
                                                {"job", "signal", "KILL", job},
                                                {"job", "attach", job},
                                                {"run", "--job", job, "true"}})
    Refused(As(kBob, words), 4, whose);
  for (const char* verb : {"drain", "resume"}) {
    std::vector<std::string> words = {"node", verb, "cn1"};
    if (words[1] == "drain") words.insert(words.end(), {"--reason", "because"});
    Refused(As(kBob, words), 4, {"uid 64102", "operator"});
  }
  // The kernel and the job's own daemon, too.
  const Outcome killed = AsProgram(kBob, {"sh", "-c", "kill -9 $(pgrep -u 64101)"});
  EXPECT_NE(killed.code, 0);
  EXPECT_EQ(StateOf(job), "RUNNING");
  Must(As(kAda, {"job", "cancel", "--now", job}));
  EXPECT_TRUE(Eventually(30s, "it has ended", [&] { return StateOf(job) == "CANCELLED"; }));
  const std::string other = Detach(kBob, {"-o", "none", "sleep", "1000"});
  Must(Root({"job", "cancel", "--now", other}));
}

TEST_F(Users, ARegionIsItsOwnersUntilHeGivesRights) {
  const std::string data = Noise(kMiB, 3);
  Must(As(kAda, {"region", "create", "fields", "--size", "1M"}));
  Must(As(kAda, {"region", "put", "-", "fields"}, data));
  EXPECT_EQ(As(kBob, {"region", "list", "-f", "name"}).out, "") << "no right, not seen";
  EXPECT_NE(As(kBob, {"region", "get", "fields", "-"}).code, 0);
  Must(As(kAda, {"region", "acl", "fields", "--set", "user:64102:r"}));
  const Outcome read = As(kBob, {"region", "get", "fields", "-"});
  EXPECT_TRUE(read.out == data) << read.err;
  const Outcome refused = As(kBob, {"region", "put", "-", "fields"}, data);
  Refused(refused, 4, {"fields", "64102", "64101"});
  for (const std::vector<std::string>& words : {std::vector<std::string>{"region", "rm", "fields"},
                                                {"region", "resize", "fields", "--size", "2M"},
                                                {"region", "acl", "fields", "--set", "user:64102:rw"},
                                                {"region", "fsck", "--repair"}})
    Refused(As(kBob, words), 4, {"64102"});
  Must(As(kAda, {"region", "acl", "fields", "--set", "user:64102:rw"}));
  Must(As(kBob, {"region", "put", "-", "fields"}, Noise(kMiB, 4)));
  EXPECT_TRUE(As(kAda, {"region", "get", "fields", "-"}).out == Noise(kMiB, 4));
  Must(As(kAda, {"region", "acl", "fields", "--remove", "user:64102"}));
  EXPECT_NE(As(kBob, {"region", "get", "fields", "-"}).code, 0);
}

TEST_F(Users, AGroupSharesByTheModeAndByAnEntry) {
  Must(As(kAda, {"region", "create", "fields", "--size", "1M", "--mode", "0640"}));
  EXPECT_EQ(As(kBob, {"region", "list", "-f", "name"}).out, "");
  Must(As(kAda, {"region", "acl", "fields", "--set", "group:64102:r"}));
  EXPECT_EQ(As(kBob, {"region", "list", "-f", "name"}).out, "fields\n");
  Must(As(kBob, {"region", "get", "fields", "-"}));
  Refused(As(kBob, {"region", "put", "-", "fields"}, "x"), 4, {"fields"});
  Must(As(kAda, {"region", "acl", "fields", "--remove", "group:64102"}));
  // Root hands it to Bob's group, whose right the mode names.
  Must(Root({"region", "acl", "fields", "--group", "64102"}));
  Must(As(kBob, {"region", "get", "fields", "-"}));
}

TEST_F(Users, TheQuotaOfOneIsNotTheOthersAndIsRefusedWithNumbers) {
  Must(As(kAda, {"region", "create", "hers", "--size", "6M"}));
  Refused(As(kAda, {"region", "create", "more", "--size", "3M"}), 5, {"uid 64101", "quota is 8M", "6M used"});
  Must(As(kBob, {"region", "create", "his", "--size", "6M"}));
  const auto used = [](const Json& listing) {
    std::vector<std::string> users;
    for (const Json& user : listing["items"].list())
      users.push_back(std::to_string(static_cast<long>(user["uid"].number())));
    return users;
  };
  const auto df = [&](uid_t uid) {
    Command command = uid == 0 ? cluster_->Msactl({}) : cluster_->MsactlAs(uid, {});
    command.argv.insert(command.argv.end(), {"region", "df", "--by", "user", "-f", "json"});
    return used(Json::Parse(support::RunCommand(command).out).value_or(Json()));
  };
  EXPECT_EQ(df(kAda), std::vector<std::string>{"64101"});
  EXPECT_EQ(df(kBob), std::vector<std::string>{"64102"});
  EXPECT_THAT(df(0), testing::IsSupersetOf({"64101", "64102"}));
}

TEST_F(Users, AProgramOutsideAnyJobFindsTheNamDaemonAndHasItsUsersRights) {
  const std::string program = cluster_->ProgramForAll("nam_outside");
  Must(As(kAda, {"region", "create", "counter", "--size", "1M"}));
  EXPECT_EQ(AsProgram(kAda, {program, "counter", "rw"}).out, "0\n");
  const Outcome closed = AsProgram(kBob, {program, "counter", "r"});
  EXPECT_EQ(closed.code, 1) << closed.Text();
  EXPECT_THAT(closed.err, testing::ContainsRegex("MSA_NAM_ERR_(DENIED|NOT_FOUND)"));
  Must(As(kAda, {"region", "acl", "counter", "--set", "user:64102:r"}));
  EXPECT_EQ(AsProgram(kBob, {program, "counter", "r"}).out, "1\n");
  EXPECT_THAT(AsProgram(kBob, {program, "counter", "rw"}).err, HasSubstr("MSA_NAM_ERR_DENIED"));
  Must(As(kAda, {"region", "acl", "counter", "--set", "user:64102:rw"}));
  EXPECT_EQ(AsProgram(kBob, {program, "counter", "rw"}).out, "1\n");
  EXPECT_EQ(AsProgram(kAda, {program, "counter", "r"}).out, "2\n");
}

TEST_F(Users, WithoutADirectoryOfHisOwnAUserFindsTheMachinesSystem) {
  // /run of a mount namespace, with the link that deploy/doc/several-users.md has root make.
  const std::string program = cluster_->ProgramForAll("nam_outside");
  Must(As(kBob, {"region", "create", "counter", "--size", "1M"}));
  Command command = cluster_->MsactlAs(kBob, {});
  const std::string msactl = command.argv[0];
  command.argv = {"unshare",
                  "--mount",
                  "sh",
                  "-c",
                  "mount -t tmpfs tmpfs /run && chmod 755 /run && ln -s \"$0\" /run/msa && unset MSA_DIR && "
                  "cd / && exec setpriv --reuid 64102 --regid 64102 --clear-groups sh -c \"$1\"",
                  cluster_->dir(),
                  msactl + " run id -u && " + program + " counter rw && " + msactl + " region list -f name"};
  command.env["LD_LIBRARY_PATH"] = cluster_->scratch().path() + "/opt/lib";
  command.uid = 0;
  EXPECT_EQ(support::RunCommand(command).out, "64102\n0\ncounter\n");
}

TEST_F(Users, AWindowThatOneLeavesIsReadByTheJobOfAnother) {
  const std::string create = cluster_->ProgramForAll("nam_window_create");
  const std::string attach = cluster_->ProgramForAll("nam_window_attach");
  const Outcome made = As(kAda, {"run", "-n", "4", "--nam", "1M", create, "results"});
  Must(made);
  const auto at = made.out.find("port ");
  ASSERT_NE(at, std::string::npos) << made.Text();
  const std::string port = Lines(made.out.substr(at + 5)).at(0);
  EXPECT_NE(As(kBob, {"run", "-n", "2", attach, port}).code, 0);
  Must(As(kAda, {"region", "acl", "results", "--set", "user:64102:rw"}));
  Must(As(kBob, {"run", "-n", "2", attach, port}));
}

TEST_F(Users, FilesAndKeysAreClosedToOthers) {
  Must(As(kAda, {"region", "create", "fields", "--size", "1M"}));
  const std::string job = Detach(kAda, {"-N", "2", "-n", "2", "-o", "none", "sleep", "1000"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return StateOf(job) == "RUNNING"; }));
  // Every path of the system that is not his own, as Bob may use it: job daemons wait for his next job.
  const auto open = [&](const std::string& type, const std::string& right) {
    const Outcome all = support::RunCommand(
        {.argv = {"sh", "-c",
                  "find " + cluster_->dir() + " /dev/shm/msa-64101-* ! -user 64102 -type " + type}});
    Must(all);
    Command probe = cluster_->MsactlAs(kBob, {});
    probe.argv = {"sh", "-c",
                  "while read -r path; do [ -" + right + " \"$path\" ] && echo \"$path\"; done; true"};
    probe.input = all.out;
    std::vector<std::string> paths = Lines(support::RunCommand(probe).out);
    for (std::string& path : paths)
      if (path.starts_with(cluster_->dir())) path.erase(0, cluster_->dir().size());
    EXPECT_GT(Lines(all.out).size(), 10u);
    return paths;
  };
  for (const std::string& path : open("f", "r"))
    EXPECT_THAT(path, testing::MatchesRegex("/n/[a-z0-9]+/hwloc.xml"));
  EXPECT_THAT(open("f", "w"), testing::IsEmpty());
  EXPECT_THAT(open("d", "w"), testing::IsEmpty());
  EXPECT_THAT(open("d", "r"), testing::ElementsAre("", "/n"));
  // What the kernel lets pass decides by the credentials of its peer.
  for (const std::string& path : open("s", "w"))
    EXPECT_THAT(path, testing::MatchesRegex("/controller.sock|/n/[a-z0-9]+/(noded|namd|jobd).sock"));
  const Outcome keys = AsProgram(
      kBob, {"sh", "-c", "cat $MSA_DIR/nam.key $MSA_DIR/state.db $MSA_DIR/nam/nam0/* $MSA_DIR/log/*"});
  EXPECT_NE(keys.code, 0);
  EXPECT_EQ(keys.out, "");
  const Outcome secrets = AsProgram(kBob, {"sh", "-c", "cat /proc/$(pgrep -u 64101 -o)/environ"});
  EXPECT_NE(secrets.code, 0);
  EXPECT_EQ(secrets.out, "");
  Must(As(kAda, {"job", "cancel", "--now", job}));
}

TEST_F(Users, ASystemThatIsRootsAloneSaysSo) {
  const auto closed = MiniCluster::Start({.topology = kTopology});
  ASSERT_TRUE(closed.ok()) << closed.status().message();
  Command command = cluster_->MsactlAs(kBob, {"run", "true"});
  command.env["MSA_DIR"] = (*closed)->dir();
  Refused(support::RunCommand(command), 4, {(*closed)->dir(), "serves its own user alone", "cluster up"});
}

TEST_F(Users, TheSystemGoesOnForAllAfterItsDaemonsWereKilled) {
  const std::string job = Detach(kAda, {"-N", "2", "-n", "2", "-o", "none", "sleep", "1000"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return StateOf(job) == "RUNNING"; }));
  for (const char* daemon : {"noded-cn0", "controller", "namd-nam0"})
    EXPECT_TRUE(cluster_->KillDaemon(daemon).ok()) << daemon;
  EXPECT_TRUE(Eventually(30s, "Bob runs", [&] { return As(kBob, {"run", "-N", "2", "true"}).code == 0; }));
  EXPECT_EQ(StateOf(job), "RUNNING");
  Must(As(kBob, {"region", "create", "his", "--size", "1M"}));
  Must(As(kAda, {"job", "cancel", "--now", job}));
}

}  // namespace
}  // namespace msa::e2e
