#pragma once
// The real msa-noded with a stand-in for the controller and one for the job daemon.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"
#include "msa/base/clock.h"
#include "msa/base/messages.h"
#include "msa/support/eventually.h"
#include "msa/support/scratch_directory.h"

#include "fake_controller.h"

namespace msa::node::test {

constexpr Millis kLimit{30'000};

using support::Eventually;

inline bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Dead; what is not our child is reaped by its new parent.
inline bool Dead(pid_t pid) {
  ::waitpid(pid, nullptr, WNOHANG);
  return ::kill(pid, 0) != 0;
}

class NodedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.Write("topology.toml",
                   "[[module]]\nname = \"cluster\"\nid = 0\n"
                   "[[module.node]]\nnames = \"cn0\"\ncores = 64\n" +
                       node_keys_);
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
    EXPECT_EQ(::poll(&wait, 1, 60'000), 1) << "msa-noded did not end on signal " << signal;
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

  std::string node_keys_;  // more of cn0 in the topology file, before SetUp
  support::ScratchDirectory scratch_;
  const std::string dir_ = scratch_.path();
  std::unique_ptr<FakeController> controller_;
  ProcessHandle noded_;
};

}  // namespace msa::node::test
