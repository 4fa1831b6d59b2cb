// Stands in for msa-jobd in the tests of msa-noded: speaks its side of the local wire format and does what a
// test asks for. The first program's argv says how (mode words, then after "--" a shell script that runs as
// the job's task):
//   ignore-quit   does not leave when told to
//   keep-output   at ExitAck makes the file "acked" and stays until a session has been read to its end
// The environment's TEST_JOBD makes it fail from the start: "fail" (text on stderr, code 1), "mute" (never
// connects), "no-zygote" (ends where it should fork others). SignalJob 1: send what a job daemon may not; 10:
// end the job (exit record, JobExit); 12: die by SIGKILL; 15: exit with code 3; 14: record, then die.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "msa/adapters/process/become_user.h"
#include "msa/adapters/process/byte_stream.h"
#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/fork_server.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/messages.h"

namespace msa {
namespace {

constexpr std::uint16_t kSessionEnded = 0x04ff;

class TestJobd {
 public:
  TestJobd(EventLoop& loop, std::map<std::string, std::string> options, std::string cookie)
      : loop_(loop), options_(std::move(options)), cookie_(std::move(cookie)) {}

  void Connect() {
    channel_.reset();
    auto fd = ConnectUnix(options_["--noded"]);
    if (!fd.ok()) return Later();
    auto channel = FrameChannel::Create(loop_, MakePlainStream(std::move(*fd)),
                                        {.on_frame = [this](wire::Frame f) { OnFrame(std::move(f)); },
                                         .on_closed = [this](Status) { Later(); }});
    if (!channel.ok()) return Later();
    channel_ = std::move(*channel);
    wire::JobdHello hello;
    hello.pid = static_cast<std::uint32_t>(::getpid());
    hello.cookie = cookie_;
    hello.job = launch_.job;
    hello.incarnation = launch_.incarnation;
    hello.member_index = launch_.self_index;
    hello.is_head = launch_.job.value != 0 && launch_.self_index == launch_.head_index;
    hello.ended = ended_;
    hello.directory = options_["--directory"];
    channel_->SendMessage(hello);
  }

 private:
  // 20 ms: as the real one's first back-off.
  void Later() {
    loop_.After(Millis(20), [this] { Connect(); });
  }

  void OnFrame(wire::Frame frame) {
    if (frame.id != 0) return OnSession(frame);
    switch (frame.type) {
      case wire::JobdWelcome::kType:
        if (ended_) SendExit();
        return;
      case wire::JobdQuit::kType:
        if (!ignore_quit_) ::_exit(0);
        return;
      case wire::LaunchJob::kType:
        return OnLaunch(frame);
      case wire::SignalJob::kType:
        return OnSignal(wire::Decode<wire::SignalJob>(frame.payload)->signal);
      case wire::ExitAck::kType:
        if (!keep_output_) ::_exit(0);
        (void)WriteFileAtomically(launch_.step.cwd + "/acked", "");
        return;
      default:
        return;
    }
  }

  void OnLaunch(const wire::Frame& frame) {
    if (launch_.job.value != 0) return;
    launch_ = *wire::Decode<wire::LaunchJob>(frame.payload);
    const auto& argv = launch_.step.apps.at(0).argv;
    for (std::size_t i = 0; i < argv.size(); ++i) {
      if (argv[i] == "ignore-quit") ignore_quit_ = true;
      if (argv[i] == "keep-output") keep_output_ = true;
      if (argv[i] == "--" && i + 1 < argv.size()) StartTask(argv[i + 1]);
    }
    channel_->SendMessage(wire::JobStarted{1});
  }

  void StartTask(const std::string& script) {
    SpawnSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.env = {"PATH=/usr/bin:/bin", "MSA_JOB_SOCKET=" + options_["--directory"] + "/job.sock"};
    spec.cwd = launch_.step.cwd;
    if (const auto task = Spawn(spec); !task.ok())
      std::fprintf(stderr, "%s\n", task.status().message().c_str());
  }

  // A bundle that is cut short, a message for the controller's other side, an endless one; then a proper one.
  void Misbehave() {
    channel_->Send(wire::Pack(0x03ff, 0, "cut"));
    channel_->Send(wire::Pack(wire::CancelJob::kType, 0, {}));
    channel_->Send(wire::Pack(wire::NamespaceReport::kType, 0, std::string(std::size_t{9} << 20, 'x')));
    channel_->SendMessage(wire::GrantRelease{GrantId(5)});
  }

  void OnSignal(int signal) {
    if (signal == SIGHUP) Misbehave();
    if (signal == SIGUSR1 || signal == SIGALRM) {
      ended_ = true;
      wire::JobExit exit;
      exit.job = launch_.job;
      exit.incarnation = launch_.incarnation;
      exit.exit_code = 42;
      exit_ = wire::Encode(exit);
      (void)WriteFileAtomically(options_["--directory"] + "/exit", exit_);
      if (signal == SIGUSR1) SendExit();
    }
    if (signal == SIGUSR2 || signal == SIGALRM) ::kill(::getpid(), SIGKILL);
    if (signal == SIGTERM) ::_exit(3);
  }

  void SendExit() { channel_->Send(wire::Pack(wire::JobExit::kType, 0, exit_)); }

  // Says what it got; a ClientSignal ends the session.
  void OnSession(const wire::Frame& frame) {
    wire::Output output;
    output.seq = ++seq_;
    if (frame.type == wire::AttachOpen::kType) output.data = "attached";
    if (frame.type == wire::Input::kType) output.data = wire::Decode<wire::Input>(frame.payload)->data;
    if (frame.type == kSessionEnded) {
      (void)WriteFileAtomically(launch_.step.cwd + "/session-ended", "");
      return;
    }
    if (frame.type == wire::ClientSignal::kType) {
      channel_->SendMessage(wire::SessionEnd{seq_, wire::JobState::kCompleted, 42, ""}, frame.id);
      channel_->Send(wire::Pack(kSessionEnded, frame.id, {}));
      if (keep_output_ && ended_) loop_.Stop();
      return;
    }
    channel_->SendMessage(output, frame.id);
  }

  EventLoop& loop_;
  std::map<std::string, std::string> options_;
  std::string cookie_;
  std::unique_ptr<FrameChannel> channel_;
  wire::LaunchJob launch_;
  std::string exit_;
  std::uint64_t seq_ = 0;
  bool ended_ = false;
  bool ignore_quit_ = false;
  bool keep_output_ = false;
};

// As msa-jobd: forks job daemons as it is ordered, and goes on in each of them.
void BeZygote(std::map<std::string, std::string>& options) {
  if (const char* mode = ::getenv("TEST_JOBD"); mode != nullptr && std::string(mode) == "no-zygote")
    ::_exit(1);
  const auto order = ServeForks(UniqueFd(std::stoi(options["--zygote"])));
  if (!order.ok() || !*order) ::_exit(order.ok() ? 0 : 1);
  options["--directory"] = (*order)->words.at(0);
  const UserIdentity user{static_cast<std::uint32_t>(std::stoul((*order)->words.at(3))),
                          static_cast<std::uint32_t>(std::stoul((*order)->words.at(4)))};
  if (user.uid != ::geteuid() && !BecomeUser(user).ok()) ::_exit(1);
  const std::string& cookie = (*order)->words.at(1);
  ::memcpy(::getenv("MSA_JOBD_COOKIE"), cookie.data(), cookie.size());
}

int Serve(std::map<std::string, std::string> options) {
  if (options.contains("--zygote")) BeZygote(options);
  auto loop = EventLoop::Create();
  if (!loop.ok()) return 1;
  const char* cookie = ::getenv("MSA_JOBD_COOKIE");
  TestJobd jobd(**loop, std::move(options), cookie == nullptr ? "" : cookie);
  if (const char* mode = ::getenv("TEST_JOBD"); mode == nullptr || std::string(mode) == "no-zygote") {
    jobd.Connect();
  } else if (std::string(mode) == "fail") {
    std::fputs("libpmix is not there\n", stderr);
    return 1;
  }
  return (*loop)->Run().ok() ? 0 : 1;
}

}  // namespace
}  // namespace msa

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  return msa::Serve(std::move(options));
}
