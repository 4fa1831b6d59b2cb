// The real msa-noded with a stand-in for the controller and one for the job daemon.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/base/clock.h"
#include "msa/base/messages.h"

#include "fake_controller.h"

namespace msa::node::test {
namespace {

using ::testing::HasSubstr;
constexpr Millis kLimit{10'000};

bool Eventually(Millis limit, const std::function<bool()>& condition) {
  const SteadyTime until = SteadyNow() + limit;
  while (!condition()) {
    if (SteadyNow() > until) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Dead; what is not our child is reaped by its new parent.
bool Dead(pid_t pid) {
  ::waitpid(pid, nullptr, WNOHANG);
  return ::kill(pid, 0) != 0;
}

class NodedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/msa-noded-XXXXXX";
    dir_ = ::mkdtemp(path);
    std::ofstream(dir_ + "/topology.toml")
        << "[[module]]\nname = \"cluster\"\nid = 0\n[[module.node]]\nnames = \"cn0\"\ncores = 64\n";
    // What a killed node daemon leaves comes to this process, which reaps it as an init would.
    ASSERT_TRUE(BecomeSubreaper().ok());
    controller_ = std::make_unique<FakeController>(dir_ + "/controller.sock");
    controller_->Start();
  }
  void TearDown() override {
    StopNoded(SIGINT);
    controller_.reset();
    EXPECT_TRUE(Eventually(kLimit, [this] { return Pids().empty(); })) << "processes were left over\n"
                                                                       << Log();
    EXPECT_FALSE(Exists(dir_ + "/n/cn0/w1")) << "the directory of a job daemon was left over";
    EXPECT_TRUE(RemoveTree(dir_).ok());
  }

  void StartNoded(std::vector<std::string> options = {}, std::vector<std::string> env = {}) {
    UniqueFd log(::open((dir_ + "/noded.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    SpawnSpec spec;
    spec.argv = {MSA_TEST_NODED,
                 "--name",
                 "cn0",
                 "--dir",
                 dir_,
                 "--topology",
                 dir_ + "/topology.toml",
                 "--jobd",
                 MSA_TEST_JOBD,
                 "--trampoline",
                 "/bin/true",
                 "--log-level",
                 "debug"};
    spec.argv.insert(spec.argv.end(), options.begin(), options.end());
    spec.env = CurrentEnvironment();
    spec.env.insert(spec.env.end(), env.begin(), env.end());
    spec.out = log.get();
    spec.err = log.get();
    auto started = Spawn(spec);
    ASSERT_TRUE(started.ok()) << started.status().message();
    noded_ = std::move(*started);
  }
  // Returns wait(2)'s status.
  int StopNoded(int signal) {
    if (noded_.pid == 0) return 0;
    SignalProcess(noded_, signal);
    pollfd wait{.fd = noded_.pidfd.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&wait, 1, 15'000), 1) << "msa-noded did not end on signal " << signal;
    const int status = ReapChild(noded_.pid).value_or(-1);
    noded_ = {};
    return status;
  }
  std::string Log() const { return ReadTail(dir_ + "/noded.log", 64 * 1024); }

  // Processes that name this test's directory in their arguments.
  std::vector<pid_t> Pids() const {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::vector<pid_t> out;
    const auto names = ListDirectory("/proc");
    for (const std::string& name : *names) {
      pid_t pid = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid == ::getpid())
        continue;
      const auto words = ReadFile("/proc/" + name + "/cmdline", 64 * 1024);
      if (words.ok() && words->find(dir_) != std::string::npos) out.push_back(pid);
    }
    return out;
  }
  // Those that it forks have no socket as stdin; 0: none runs.
  pid_t Zygote() const {
    for (const pid_t pid : Pids()) {
      char target[64] = {};
      const std::string link = "/proc/" + std::to_string(pid) + "/fd/0";
      if (pid != noded_.pid && ::readlink(link.c_str(), target, sizeof target - 1) > 0 &&
          std::string_view(target).starts_with("socket:"))
        return pid;
    }
    return 0;
  }
  bool WarmReaches(std::uint32_t warm) {
    return Eventually(
        kLimit, [&] { return controller_->heartbeats() > 0 && controller_->heartbeat().jobd_warm == warm; });
  }
  // argv of the job's program: mode words for the test jobd, "--" and a script.
  node_control::StartJob Job(std::uint64_t id, std::vector<std::string> argv = {}) const {
    wire::LaunchJob launch;
    launch.job = JobId(id);
    launch.incarnation = Incarnation(1);
    launch.user = {::geteuid(), ::getegid()};
    wire::App app;
    app.argv = std::move(argv);
    launch.step.apps.push_back(app);
    launch.step.cwd = dir_;
    node_control::StartJob start;
    start.job = launch.job;
    start.incarnation = launch.incarnation;
    start.user = launch.user;
    start.frame = {wire::LaunchJob::kType, 0, 0, wire::Encode(launch)};
    return start;
  }
  void StartJob(std::uint64_t id, std::vector<std::string> argv = {}) {
    controller_->Send(node_control::ToProto(Job(id, std::move(argv))));
  }
  template <class M>
  void ToJobd(std::uint64_t id, const M& message) {
    controller_->Send(node_control::ToProto(
        node_control::ToJobd{JobId(id), Incarnation(1), {M::kType, 0, 0, wire::Encode(message)}}));
  }
  void QuitJob(std::uint64_t id) {
    controller_->Send(node_control::ToProto(node_control::QuitJob{JobId(id), Incarnation(1), "test"}));
  }
  bool Started() {
    return Eventually(kLimit, [this] { return controller_->Got(wire::JobStarted::kType); });
  }
  bool GoneReaches(std::size_t count) {
    return Eventually(kLimit, [&] { return controller_->gone().size() >= count; });
  }
  bool RegistrationsReach(std::size_t count) {
    return Eventually(kLimit, [&] { return controller_->registrations() >= count; });
  }
  pid_t PidIn(const std::string& file) {
    pid_t pid = 0;
    EXPECT_TRUE(Eventually(kLimit, [&] {
      const std::string text = ReadTail(dir_ + "/" + file, 64);
      return text.ends_with('\n') &&
             std::from_chars(text.data(), text.data() + text.size(), pid).ec == std::errc();
    })) << file;
    return pid;
  }

  std::string dir_;
  std::unique_ptr<FakeController> controller_;
  ProcessHandle noded_;
};

TEST_F(NodedTest, RegistersItsDescriptionAndSendsHeartbeatsWithAWarmPool) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  const auto registration = controller_->registration();
  EXPECT_EQ(registration.description.name, "cn0");
  EXPECT_EQ(registration.description.cores, 64U);
  EXPECT_TRUE(registration.description.synthetic);
  EXPECT_GE(registration.description.machine_cores, 1U);
  EXPECT_GT(registration.description.memory.value, 0U);
  EXPECT_EQ(registration.attach_address, "unix:" + dir_ + "/n/cn0/noded.sock");
  EXPECT_EQ(registration.jobd_address, "unix:" + dir_ + "/n/cn0/j%J");
  EXPECT_TRUE(WarmReaches(2)) << Log();
  EXPECT_TRUE(Eventually(kLimit, [&] { return controller_->heartbeats() >= 4; }));
  EXPECT_TRUE(Exists(dir_ + "/n/cn0/hwloc.xml"));
}

TEST_F(NodedTest, ConnectsWheneverTheControllerComesBack) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  controller_->Stop();
  controller_->Clear();
  controller_->Start();
  ASSERT_TRUE(RegistrationsReach(2)) << Log();
  ASSERT_EQ(controller_->registration().jobds.size(), 1U);
  EXPECT_EQ(controller_->registration().jobds[0].job, JobId(7));
  EXPECT_TRUE(controller_->registration().jobds[0].is_head);
  EXPECT_TRUE(Started()) << "what may have been lost with the session is told again";
}

TEST_F(NodedTest, GivesAJobToAWarmJobDaemonOnceAndRefillsThePool) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7);
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  EXPECT_TRUE(WarmReaches(2)) << Log();
  QuitJob(7);
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_TRUE(controller_->gone()[0].clean);
  EXPECT_EQ(controller_->from_jobd().size(), 1U) << "one job daemon started once";
}

TEST_F(NodedTest, ABurstOfJobsGrowsThePoolAndAPauseShrinksIt) {
  StartNoded({"--pool-idle-ms", "2000"});
  ASSERT_TRUE(WarmReaches(2)) << Log();
  for (std::uint64_t id = 1; id <= 6; ++id) StartJob(id);
  EXPECT_TRUE(Eventually(kLimit, [&] { return controller_->from_jobd().size() == 6; })) << Log();
  EXPECT_TRUE(WarmReaches(6)) << Log();
  EXPECT_TRUE(WarmReaches(2)) << Log();
  EXPECT_EQ(controller_->gone().size(), 0U) << "no job is touched";
}

TEST_F(NodedTest, StartsAJobDaemonOnDemandWhenThePoolIsEmpty) {
  StartNoded({"--pool", "0"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  for (std::uint64_t id = 1; id <= 3; ++id) StartJob(id);
  EXPECT_TRUE(Eventually(kLimit, [&] { return controller_->from_jobd().size() == 3; })) << Log();
  EXPECT_EQ(controller_->heartbeat().jobd_warm, 0U);
}

TEST_F(NodedTest, StartsAnotherZygoteWhenItIsKilledAndLosesNoJob) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  const pid_t zygote = Zygote();
  ASSERT_NE(zygote, 0);
  for (std::uint64_t id = 8; id <= 10; ++id) StartJob(id);
  ::kill(zygote, SIGKILL);
  for (std::uint64_t id = 11; id <= 13; ++id) StartJob(id);
  EXPECT_TRUE(Eventually(kLimit, [&] { return controller_->from_jobd().size() == 7; })) << Log();
  EXPECT_TRUE(Eventually(kLimit, [&] { return Zygote() != 0 && Zygote() != zygote; })) << Log();
  EXPECT_EQ(controller_->gone().size(), 0U) << Log();
}

TEST_F(NodedTest, DoesWithoutAZygoteThatDoesNotStart) {
  StartNoded({}, {"TEST_JOBD=no-zygote"});
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7);
  EXPECT_TRUE(Started()) << Log();
  EXPECT_THAT(Log(), HasSubstr("job daemons are started one by one"));
}

TEST_F(NodedTest, FailsTheJobWithTheJobDaemonsWordsWhenNoneStarts) {
  StartNoded({}, {"TEST_JOBD=fail"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_THAT(controller_->gone()[0].reason,
              HasSubstr("no job daemon could be started for job 7 in 3 attempts"));
  EXPECT_THAT(controller_->gone()[0].reason, HasSubstr("exited with code 1; it wrote: libpmix is not there"));
  EXPECT_FALSE(controller_->gone()[0].clean);
}

TEST_F(NodedTest, GivesUpAJobDaemonThatNeverReports) {
  StartNoded({"--jobd-start-ms", "50"}, {"TEST_JOBD=mute"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_THAT(controller_->gone()[0].reason, HasSubstr("was killed by signal 9"));
}

TEST_F(NodedTest, RefusesAJobOfAnotherUserUnlessItRunsAsRoot) {
  StartNoded({"--jobd-start-ms", "50"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  auto job = Job(7);
  job.user = {::geteuid() + 4321, ::getegid() + 4321};
  controller_->Send(node_control::ToProto(job));
  if (::geteuid() == 0) {
    // The test's directories are closed to that user: its job daemon cannot reach the socket, and the text
    // says so.
    ASSERT_TRUE(GoneReaches(1)) << Log();
    EXPECT_THAT(controller_->gone()[0].reason, HasSubstr("no job daemon could be started for job 7"));
  } else {
    ASSERT_TRUE(GoneReaches(1)) << Log();
    EXPECT_THAT(controller_->gone()[0].reason, HasSubstr("run msa-noded as root to serve several users"));
  }
}

TEST_F(NodedTest, RunsAJobAsItsUserWhenItRunsAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start job daemons for other users";
  const UserIdentity user{65534, 65534};
  ASSERT_EQ(::chmod(dir_.c_str(), 0755), 0);
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  // msa-noded closes the directory of a system of its own to others; here it serves them.
  ASSERT_EQ(::chmod(dir_.c_str(), 0777), 0);
  auto job = Job(7, {"--", "id -u > user; id -g >> user; echo end >> user; exec sleep 1000"});
  job.user = user;
  controller_->Send(node_control::ToProto(job));
  ASSERT_TRUE(Started()) << Log() << ReadTail(dir_ + "/log/jobd-cn0.log", 4096);
  EXPECT_TRUE(Eventually(kLimit, [&] { return ReadTail(dir_ + "/user", 100) == "65534\n65534\nend\n"; }));
}

TEST_F(NodedTest, WhatAJobDaemonMayNotSendStaysOnItsNodeAndCostsNoSession) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  ToJobd(7, wire::SignalJob{SIGHUP});
  ASSERT_TRUE(Eventually(kLimit, [&] { return controller_->Got(wire::GrantRelease::kType); })) << Log();
  EXPECT_EQ(controller_->from_jobd().size(), 2U) << "the start and the release";
  EXPECT_EQ(controller_->registrations(), 1U) << Log();
  EXPECT_THAT(Log(), HasSubstr("is dropped"));
}

TEST_F(NodedTest, SweepsEverythingOfAJobDaemonThatDied) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7, {"--",
               "setsid sh -c 'echo $$ > session; exec sleep 1000' & env -i /bin/sh -c 'echo $$ > bare; exec "
               "/bin/sleep 1000' & "
               "echo $$ > task; wait"});
  ASSERT_TRUE(Started()) << Log();
  const std::vector<pid_t> pids{PidIn("task"), PidIn("session"), PidIn("bare")};
  ToJobd(7, wire::SignalJob{SIGUSR2});
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_EQ(controller_->gone()[0].reason, "job daemon of job 7 on cn0 was killed by signal 9 (Killed)");
  EXPECT_FALSE(controller_->gone()[0].clean);
  for (const pid_t pid : pids) EXPECT_TRUE(Eventually(kLimit, [&] { return Dead(pid); })) << pid;
  EXPECT_TRUE(WarmReaches(2)) << "the pool is not touched";
}

TEST_F(NodedTest, DeliversTheExitRecordOfAHeadThatDiedAndKeepsItUntilAcknowledged) {
  StartNoded({"--pool", "0"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  ToJobd(7, wire::SignalJob{SIGALRM});
  ASSERT_TRUE(GoneReaches(1)) << Log();
  ASSERT_TRUE(controller_->Got(wire::JobExit::kType));
  const auto exit = wire::Decode<wire::JobExit>(controller_->from_jobd().back().frame.payload);
  ASSERT_TRUE(exit.ok());
  EXPECT_EQ(exit->exit_code, 42);
  EXPECT_TRUE(Exists(dir_ + "/n/cn0/w1/exit"));
  // Not acknowledged: a new node daemon tells it again.
  StopNoded(SIGKILL);
  controller_->Clear();
  StartNoded({"--pool", "0"});
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_TRUE(controller_->Got(wire::JobExit::kType));
  ToJobd(7, wire::ExitAck{});
  EXPECT_TRUE(Eventually(kLimit, [&] { return !Exists(dir_ + "/n/cn0/w1"); }));
}

TEST_F(NodedTest, AdoptsItsJobDaemonsAfterItWasKilled) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7, {"--", "echo $$ > task; exec sleep 1000"});
  ASSERT_TRUE(Started()) << Log();
  const pid_t task = PidIn("task");
  StopNoded(SIGKILL);
  controller_->Clear();
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(2)) << Log();
  ASSERT_EQ(controller_->registration().jobds.size(), 1U);
  EXPECT_EQ(controller_->registration().jobds[0].job, JobId(7));
  EXPECT_TRUE(WarmReaches(2)) << Log();
  EXPECT_EQ(::kill(task, 0), 0);
  EXPECT_TRUE(controller_->gone().empty());
  // It is watched although it is no child any more.
  ToJobd(7, wire::SignalJob{SIGUSR2});
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_EQ(controller_->gone()[0].reason, "job daemon of job 7 on cn0 has ended");
  EXPECT_TRUE(Eventually(kLimit, [&] { return Dead(task); }));
}

TEST_F(NodedTest, TellsOfJobDaemonsThatDiedWhileItWasAway) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7, {"--", "echo $$ > task; exec sleep 1000"});
  ASSERT_TRUE(Started()) << Log();
  const pid_t task = PidIn("task");
  StopNoded(SIGKILL);
  for (const pid_t pid : Pids()) ::kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually(kLimit, [&] { return Pids().empty(); }));
  controller_->Clear();
  StartNoded();
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_EQ(controller_->gone()[0].reason, "job daemon of job 7 on cn0 ended while the node daemon was away");
  EXPECT_TRUE(Eventually(kLimit, [&] { return Dead(task); }));
  EXPECT_TRUE(WarmReaches(2)) << Log();
}

TEST_F(NodedTest, ComesUpWithinAFewMilliseconds) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StopNoded(SIGKILL);
  // The best of five: other work on the machine only adds.
  Millis best{100'000};
  for (std::size_t i = 0; i < 5; ++i) {
    const std::size_t before = controller_->registrations();
    const SteadyTime start = SteadyNow();
    StartNoded();
    ASSERT_TRUE(RegistrationsReach(before + 1)) << Log();
    best = std::min(best, std::chrono::duration_cast<Millis>(SteadyNow() - start));
    StopNoded(SIGKILL);
  }
  EXPECT_LT(best, Millis(100));
  const std::size_t before = controller_->registrations();
  StartNoded();
  EXPECT_TRUE(RegistrationsReach(before + 1)) << Log();
}

TEST_F(NodedTest, QuitsJobsThatTheControllerDoesNotKnow) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7, {"--", "echo $$ > task; exec sleep 1000"});
  ASSERT_TRUE(Started()) << Log();
  const pid_t task = PidIn("task");
  controller_->KeepNothing();
  controller_->Stop();
  controller_->Start();
  EXPECT_TRUE(GoneReaches(1)) << Log();
  ::kill(task,
         SIGKILL);  // the test jobd leaves without its tasks, and says code 0: they are its own business
}

TEST_F(NodedTest, KillsAJobDaemonThatIgnoresTheRequestToLeave) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7, {"ignore-quit", "--", "echo $$ > task; exec sleep 1000"});
  ASSERT_TRUE(Started()) << Log();
  const pid_t task = PidIn("task");
  QuitJob(7);
  ASSERT_TRUE(GoneReaches(1)) << Log();
  EXPECT_TRUE(Eventually(kLimit, [&] { return Dead(task); }));
}

TEST_F(NodedTest, LeavesJobsOnSigtermAndTakesItsPoolWithIt) {
  StartNoded();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  ASSERT_TRUE(WarmReaches(2)) << Log();
  EXPECT_EQ(StopNoded(SIGTERM), 0) << Log();
  EXPECT_EQ(Pids().size(), 1U);
  controller_->Clear();
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(2)) << Log();
  EXPECT_EQ(controller_->registration().jobds.size(), 1U);
}

TEST_F(NodedTest, EndsEverythingOnSigtermWhenAskedTo) {
  StartNoded({"--quit-jobs-on-term"});
  ASSERT_TRUE(WarmReaches(2)) << Log();
  StartJob(7, {"ignore-quit"});
  ASSERT_TRUE(Started()) << Log();
  EXPECT_EQ(StopNoded(SIGTERM), 0) << Log();
  EXPECT_TRUE(Pids().empty());
  const auto left = ListDirectory(dir_ + "/n/cn0");
  ASSERT_TRUE(left.ok());
  EXPECT_THAT(*left, ::testing::UnorderedElementsAre("hwloc.xml", "noded.lock"));
}

TEST_F(NodedTest, RefusesASecondNodeDaemonOfTheSameNode) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  const ProcessHandle first = std::move(noded_);
  StartNoded();
  pollfd wait{.fd = noded_.pidfd.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&wait, 1, 10'000), 1);
  const auto status = ReapChild(noded_.pid);
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  EXPECT_THAT(Log(), HasSubstr("node daemon cn0 of '" + dir_ + "' is running already with pid " +
                               std::to_string(first.pid)));
  noded_ = {first.pid, UniqueFd(::fcntl(first.pidfd.get(), F_DUPFD_CLOEXEC, 0))};
}

TEST_F(NodedTest, RefusesStrangersAtTheJobDaemonsSocket) {
  StartNoded({"--pool", "0"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  SpawnSpec spec;
  spec.argv = {MSA_TEST_JOBD, "--node", "cn0", "--noded", dir_ + "/n/cn0/jobd.sock", "--directory", dir_};
  spec.env = {"MSA_JOBD_COOKIE=guessed"};
  const auto stranger = Spawn(spec);
  ASSERT_TRUE(stranger.ok());
  EXPECT_TRUE(Eventually(kLimit, [&] {
    return Log().find("has no cookie of this node daemon") != std::string::npos;
  })) << Log();
  SignalProcess(*stranger, SIGKILL);
}

// ---------------------------------------------------------------------------------------------- Attach

class AttachTest : public NodedTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::AttachFrame, v1::AttachFrame>;
  void Open(std::uint64_t job) {
    if (!stub_) {
      auto channel =
          grpc::CreateChannel("unix:" + dir_ + "/n/cn0/noded.sock", grpc::InsecureChannelCredentials());
      stub_ = v1::NodeService::NewStub(channel);
    }
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + kLimit);
    stream_ = stub_->Attach(context_.get());
    v1::AttachFrame first = Frame(wire::AttachOpen{});
    first.set_job_id(job);
    stream_->Write(first);
  }
  template <class M>
  static v1::AttachFrame Frame(const M& message) {
    v1::AttachFrame out;
    out.mutable_frame()->set_type(M::kType);
    out.mutable_frame()->set_payload(wire::Encode(message));
    return out;
  }
  // The text of the next Output, or what came instead.
  std::string Next() {
    v1::AttachFrame in;
    if (!stream_->Read(&in)) return "end";
    if (in.frame().type() != wire::Output::kType) return "type " + std::to_string(in.frame().type());
    return wire::Decode<wire::Output>(in.frame().payload())->data;
  }

  std::unique_ptr<v1::NodeService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(AttachTest, CarriesFramesBothWaysInOrderUntilTheJobDaemonEndsTheSession) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  ASSERT_TRUE(Started()) << Log();
  Open(7);
  EXPECT_EQ(Next(), "attached");
  for (int i = 0; i < 200; ++i) stream_->Write(Frame(wire::Input{0, std::to_string(i), false}));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(Next(), std::to_string(i));
  stream_->Write(Frame(wire::ClientSignal{SIGINT}));
  EXPECT_EQ(Next(), "type " + std::to_string(wire::SessionEnd::kType));
  EXPECT_EQ(Next(), "end");
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(AttachTest, HoldsAClientUntilItsJobIsHere) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  Open(7);
  StartJob(7);
  EXPECT_EQ(Next(), "attached");
}

TEST_F(AttachTest, TellsAClientThatWaitedInVain) {
  StartNoded({"--attach-hold-ms", "50"});
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  Open(99);
  EXPECT_EQ(Next(), "end");
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "job 99 does not run on node cn0; see 'msactl job show 99'");
}

TEST_F(AttachTest, TellsTheJobDaemonThatTheClientHasGone) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  Open(7);
  EXPECT_EQ(Next(), "attached");
  context_->TryCancel();
  EXPECT_TRUE(Eventually(kLimit, [&] { return Exists(dir_ + "/session-ended"); })) << Log();
}

TEST_F(AttachTest, EndsSessionsOfAJobDaemonThatDied) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  StartJob(7);
  Open(7);
  EXPECT_EQ(Next(), "attached");
  ToJobd(7, wire::SignalJob{SIGUSR2});
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace msa::node::test
