// Every finding of 'msactl doctor' that can be provoked.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

namespace fs = std::filesystem;

struct Diagnosis {
  int code = -1;
  Json items;
  std::string text;

  // "LEVEL found -> remedy" of one check; of several with one name the first that is not OK.
  std::string Of(const std::string& check) const {
    std::string ok;
    for (const Json& item : items.list()) {
      if (item["check"].text() != check) continue;
      std::string line = item["level"].text() + " " + item["found"].text();
      if (!item["remedy"].is_null()) line += " -> " + item["remedy"].text();
      if (item["level"].text() != "OK") return line;
      ok = line;
    }
    return ok;
  }
};

Diagnosis Read(const Outcome& outcome) {
  const auto document = Json::Parse(outcome.out);
  return {outcome.code, document ? (*document)["items"] : Json(), outcome.Text()};
}

// Without a system, unless `command` names one.
Diagnosis Doctor(Command command) {
  command.argv.insert(command.argv.end(), {"doctor", "-f", "json"});
  return Read(support::RunCommand(std::move(command)));
}

Command In(const std::string& dir) {
  return {.argv = {support::BinaryPath("msactl")}, .env = {{"MSA_DIR", dir}}};
}

// In a namespace of its own, prepared by a line of sh.
Diagnosis DoctorAfter(const std::string& dir, const std::string& what, const std::string& line) {
  Command command = In(dir);
  std::vector<std::string> argv = {"unshare", what};
  if (::geteuid() != 0) argv.push_back("--map-root-user");
  argv.insert(argv.end(), {"sh", "-c", line + "; exec \"$0\" doctor -f json", command.argv[0]});
  command.argv = argv;
  return Read(support::RunCommand(std::move(command)));
}

bool IsSaid(const std::string& line, const std::string& level, const std::string& text) {
  return line.starts_with(level + " ") && line.find(text) != std::string::npos;
}
MATCHER_P2(Says, level, text, "") { return IsSaid(arg, level, text); }

constexpr char kTwoNodes[] = R"([[module]]
name = "cluster"
id = 0
[[module.node]]
names = "cn[0-1]"
cores = 2
)";

TEST(Doctor, FindsARunningSystemWell) {
  auto cluster = MiniCluster::Start();
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  const Diagnosis found = Doctor((*cluster)->Msactl({}));
  EXPECT_EQ(found.code, 0) << found.text;
  EXPECT_THAT(found.Of("system"), Says("OK", "answers"));
  EXPECT_THAT(found.Of("nodes"), Says("OK", "6 nodes up"));
  EXPECT_THAT(found.Of("clocks"), Says("OK", "oldest heartbeat"));
  EXPECT_THAT(found.Of("directory"), Says("OK", "mode 0700"));
  EXPECT_THAT(found.Of("sockets"), Says("OK", "6 nodes"));
  EXPECT_THAT(found.Of("executables"), Says("OK", "all daemons"));
  EXPECT_THAT(found.Of("libpmix"), Says("OK", "built with"));
  EXPECT_THAT(found.Of("openmpi"), Says("OK", "version 4."));
  EXPECT_THAT(found.Of("mpich"), Says("OK", "version 4."));
  EXPECT_THAT(found.Of("loopback"), Says("OK", "127.0.0.1"));
  EXPECT_THAT(found.Of("leftovers"), Says("OK", ""));
  ASSERT_EQ((*cluster)->Run({"node", "drain", "bn1", "--reason", "fan"}).code, 0);
  EXPECT_THAT(Doctor((*cluster)->Msactl({})).Of("nodes"), Says("OK", "drained: bn1"));
}

TEST(Doctor, WorksWithoutASystemAndSaysHowToStartOne) {
  const support::ScratchDirectory scratch;
  const Diagnosis found = Doctor(In(scratch.path() + "/d"));
  EXPECT_EQ(found.code, 0) << found.text;
  EXPECT_THAT(found.Of("system"), Says("WARN", "start one with 'msactl cluster up'"));
  EXPECT_THAT(found.Of("directory"), Says("OK", "not there yet"));
  Command people = In("/nowhere");
  people.argv.insert(people.argv.end(), {"doctor", "--dir", scratch.path() + "/d"});
  const Outcome outcome = support::RunCommand(people);
  EXPECT_EQ(outcome.code, 0) << outcome.Text();
  EXPECT_THAT(outcome.out, HasSubstr("-> start one with 'msactl cluster up --dir " + scratch.path() + "/d'"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("[0-9]+ checks: [0-9]+ ok, [0-9]+ warning"));
}

TEST(Doctor, AccusesADirectoryThatOthersReachOrThatIsNone) {
  const support::ScratchDirectory scratch;
  const std::string dir = scratch.path() + "/d";
  fs::create_directory(dir);
  fs::permissions(dir, fs::perms(0777));
  const Diagnosis open = Doctor(In(dir));
  EXPECT_EQ(open.code, 1) << open.text;
  EXPECT_THAT(open.Of("directory"), Says("FAIL", "mode 0777"));
  EXPECT_THAT(open.Of("directory"), HasSubstr((::geteuid() == 0 ? "chmod 755 " : "chmod 700 ") + dir));
  // Root's may be one for all users.
  fs::permissions(dir, fs::perms(0755));
  const bool root = ::geteuid() == 0;
  EXPECT_THAT(Doctor(In(dir)).Of("directory"),
              Says(root ? "OK" : "FAIL", root ? std::string("every user") : "chmod 700 " + dir));
  fs::permissions(dir, fs::perms(0500));
  EXPECT_THAT(Doctor(In(dir)).Of("directory"), Says("FAIL", "cannot write"));
  EXPECT_THAT(Doctor(In(scratch.Write("file", ""))).Of("directory"), Says("FAIL", "no directory"));
  EXPECT_THAT(DoctorAfter(dir + "/below", "--mount", "mount -t tmpfs -o ro tmpfs " + dir).Of("directory"),
              Says("FAIL", "no right to write in '" + dir + "'"));
  // Root gives one away; another user has one that is root's.
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir.c_str(), 65534, 65534), 0);
  }
  EXPECT_THAT(Doctor(In(::geteuid() == 0 ? dir : "/etc")).Of("directory"), Says("FAIL", "belongs to user"));
}

TEST(Doctor, AccusesSocketPathsThatAreTooLongAndABadTopology) {
  const support::ScratchDirectory scratch;
  const Diagnosis found = Doctor(In(scratch.path() + "/" + std::string(90, 'x')));
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.Of("sockets"), Says("FAIL", "shorter directory"));
  scratch.Write("topology.toml", "[[module]]\nname = 7\n");
  fs::permissions(scratch.path(), fs::perms(0700));
  EXPECT_THAT(Doctor(In(scratch.path())).Of("sockets"), Says("FAIL", "name"));
}

TEST(Doctor, AccusesScarceRoom) {
  const support::ScratchDirectory scratch;
  const std::string dir = scratch.path() + "/d";
  fs::create_directory(dir);
  const auto disk = [&](const std::string& size) {
    return DoctorAfter(dir, "--mount", "mount -t tmpfs -o mode=0700,size=" + size + " tmpfs " + dir);
  };
  EXPECT_THAT(disk("8m").Of("disk"), Says("FAIL", "8"));
  EXPECT_THAT(disk("100m").Of("disk"), Says("WARN", "100M"));
  EXPECT_THAT(disk("300m").Of("disk"), Says("OK", "300M"));
  EXPECT_THAT(disk("300m,nr_inodes=20").Of("disk"), Says("FAIL", "inodes"));
  const auto shm = [&](const std::string& options) {
    return DoctorAfter(dir, "--mount", "mount -t tmpfs -o " + options + " tmpfs /dev/shm");
  };
  EXPECT_THAT(shm("mode=1777,size=8m").Of("shm"), Says("FAIL", "4 MiB a rank"));
  EXPECT_THAT(shm("mode=1777,size=64m").Of("shm"), Says("WARN", "64M"));
  EXPECT_THAT(
      DoctorAfter(dir, "--mount", "mount -t tmpfs tmpfs /dev && mkdir /dev/pts && mknod /dev/null c 1 3")
          .Of("shm"),
      Says("FAIL", "no '/dev/shm'"));
}

TEST(Doctor, AccusesLowLimits) {
  const support::ScratchDirectory scratch;
  const auto with = [&](int resource, unsigned long limit) {
    Command command = In(scratch.path() + "/d");
    command.limits[resource] = limit;
    return Doctor(command);
  };
  const Diagnosis few = with(RLIMIT_NOFILE, 200);
  EXPECT_EQ(few.code, 1);
  EXPECT_THAT(few.Of("nofile"), Says("FAIL", "200 open files"));
  EXPECT_THAT(with(RLIMIT_NOFILE, 1000).Of("nofile"), Says("WARN", "ulimit -n"));
  EXPECT_THAT(with(RLIMIT_CORE, 0).Of("core"), Says("OK", "no core file"));
  EXPECT_THAT(with(RLIMIT_MEMLOCK, 65536).Of("memlock"), HasSubstr("64K"));
}

TEST(Doctor, AccusesALowLimitOfProcessesForAnOrdinaryUser) {
  // Root is not bound by it: as `nobody`, who may not read the build tree.
  const support::ScratchDirectory scratch;
  Command command = In(scratch.path() + "/d");
  if (::geteuid() == 0) {
    fs::permissions(scratch.path(), fs::perms(0777));
    for (const char* name : {"msactl", "msa-controllerd", "msa-noded", "msa-jobd", "msa-exec", "msa-namd"})
      fs::copy(support::BinaryPath(name), scratch.path() + "/" + name);
    command.argv = {scratch.path() + "/msactl"};
    command.uid = 65534;
  }
  command.cwd = scratch.path();
  command.limits[RLIMIT_NPROC] = 250;
  const Diagnosis found = Doctor(command);
  EXPECT_THAT(found.Of("nproc"), Says("FAIL", "250 processes")) << found.text;
  command.limits[RLIMIT_NPROC] = 1000;
  EXPECT_THAT(Doctor(command).Of("nproc"), Says("WARN", "ulimit -u"));
}

TEST(Doctor, NamesProgramsThatAreMissingOrMute) {
  const support::ScratchDirectory scratch;
  Command command = In(scratch.path() + "/d");
  command.env["PATH"] = scratch.path();
  const Diagnosis none = Doctor(command);
  EXPECT_EQ(none.code, 0) << none.text;
  EXPECT_THAT(none.Of("openmpi"), Says("WARN", "apt-get install openmpi-bin"));
  EXPECT_THAT(none.Of("mpich"), Says("WARN", "apt-get install mpich"));
  EXPECT_THAT(none.Of("slurm"), Says("OK", "not there"));
  scratch.Write("sinfo", "#!/bin/sh\necho slurm-wlm 22.05.8\n", 0755);
  scratch.Write("mpirun", "#!/bin/sh\nexit 3\n", 0755);
  const Diagnosis some = Doctor(command);
  EXPECT_THAT(some.Of("slurm"), Says("OK", "version 22.05.8"));
  EXPECT_THAT(some.Of("openmpi"), Says("WARN", "--version' fails"));
}

TEST(Doctor, AccusesMissingExecutablesAndAnotherLibpmix) {
  const support::ScratchDirectory scratch;
  Command alone = In(scratch.path() + "/d");
  fs::copy(support::BinaryPath("msactl"), scratch.path() + "/msactl");
  alone.argv = {scratch.path() + "/msactl"};
  const Diagnosis found = Doctor(alone);
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.Of("executables"), Says("FAIL", "msa-controllerd' is not there"));
  EXPECT_THAT(found.Of("libpmix"), Says("FAIL", "no libpmix"));

  const auto other = [&](const std::string& version) {
    const std::string source = scratch.Write(
        "pmix.c", "const char *PMIx_Get_version(void) { return \"OpenPMIx " + version + " (x)\"; }\n");
    const std::string library = scratch.path() + "/libpmix.so.2";
    EXPECT_EQ(support::RunCommand({.argv = {"cc", "-shared", "-fPIC", "-o", library, source}}).code, 0);
    Command command = In(scratch.path() + "/d");
    command.env["LD_LIBRARY_PATH"] = scratch.path();
    return Doctor(command).Of("libpmix");
  };
  EXPECT_THAT(other("3.2.1"), Says("FAIL", "version 3.2.1"));
  EXPECT_THAT(other("4.9.9"), Says("WARN", "version 4.9.9"));
}

TEST(Doctor, AccusesAMachineWithoutLoopbackOrName) {
  const support::ScratchDirectory scratch;
  const std::string dir = scratch.path() + "/d";
  EXPECT_THAT(DoctorAfter(dir, "--net", "true").Of("loopback"), Says("FAIL", "ip link set lo up"));
  // hostname(1) itself refuses such a name.
  const std::string set_name = "/usr/bin/python3 -c 'import socket; socket.sethostname(\"bad_name\")'";
  EXPECT_THAT(DoctorAfter(dir, "--uts", set_name).Of("hostname"), Says("WARN", "no valid name"));
  EXPECT_THAT(DoctorAfter(dir, "-nu", "hostname nobody-knows-me").Of("hostname"),
              Says("WARN", "127.0.1.1 nobody-knows-me"));
}

TEST(Doctor, NamesDaemonsThatDoNotAnswer) {
  auto started = MiniCluster::Start({.topology = kTwoNodes});
  ASSERT_TRUE(started.ok()) << started.status().message();
  MiniCluster& cluster = **started;
  const auto doctor = [&] { return Doctor(cluster.Msactl({})); };
  // A supervisor that sleeps starts nothing again.
  const pid_t supervisor = cluster.Daemon("supervisor");
  ::kill(supervisor, SIGSTOP);
  ::kill(cluster.Daemon("noded-cn1"), SIGKILL);
  EXPECT_TRUE(Eventually(30s, "cn1 is missed", [&] { return IsSaid(doctor().Of("nodes"), "WARN", "cn1"); }));
  ::kill(cluster.Daemon("controller"), SIGKILL);
  const Diagnosis found = doctor();
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.Of("system"), Says("FAIL", "cluster logs controller"));
  ::kill(supervisor, SIGCONT);
  EXPECT_TRUE(
      Eventually(30s, "all is well again", [&] { return IsSaid(doctor().Of("nodes"), "OK", "2 nodes up"); }));
}

TEST(Doctor, FindsWhatADeadSystemLeftAndTheRemedyHelps) {
  auto started = MiniCluster::Start({.topology = kTwoNodes});
  ASSERT_TRUE(started.ok()) << started.status().message();
  MiniCluster& cluster = **started;
  ASSERT_EQ(cluster.Run({"run", "-N", "2", "-n", "2", ProgramPath("mpi_hello")}).code, 0);
  const auto doctor = [&] { return Doctor(cluster.Msactl({})); };
  ::kill(cluster.Daemon("supervisor"), SIGKILL);
  EXPECT_TRUE(Eventually(30s, "nobody supervises",
                         [&] { return IsSaid(doctor().Of("system"), "WARN", "without supervisor"); }));
  ::kill(cluster.Daemon("controller"), SIGKILL);
  EXPECT_TRUE(Eventually(30s, "no controller",
                         [&] { return IsSaid(doctor().Of("system"), "FAIL", "cluster down"); }));
  EXPECT_THAT(doctor().Of("strays"), Says("WARN", cluster.dir()));
  const support::ScratchDirectory elsewhere;
  EXPECT_THAT(Doctor(In(elsewhere.path() + "/d")).Of("strays"),
              HasSubstr("msactl cluster down --dir " + cluster.dir()));
  // The last of them: node daemons first, they would start job daemons again.
  for (const char* node : {"noded-cn0", "noded-cn1"}) ::kill(cluster.Daemon(node), SIGKILL);
  EXPECT_TRUE(Eventually(30s, "all are dead", [&] {
    for (const auto& process : cluster.Processes()) ::kill(process.pid, SIGKILL);
    return cluster.Processes().empty();
  }));
  const Diagnosis dead = doctor();
  EXPECT_EQ(dead.code, 0) << dead.text;
  EXPECT_THAT(dead.Of("leftovers"), Says("WARN", "msactl cluster down"));
  EXPECT_THAT(dead.Of("shm-left"), Says("WARN", "rm -r /dev/shm/msa-"));
  ASSERT_EQ(cluster.Run({"cluster", "down"}).code, 0);
  const Diagnosis clean = doctor();
  EXPECT_THAT(clean.Of("leftovers"), Says("OK", ""));
  EXPECT_THAT(clean.Of("strays"), Not(HasSubstr(cluster.dir())));
}

}  // namespace
}  // namespace msa::e2e
