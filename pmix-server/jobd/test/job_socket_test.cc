#include "job_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/descriptor_passing.h"
#include "msa/base/nam_messages.h"
#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

namespace msa::jobd {
namespace {

class JobSocketTest : public ::testing::Test {
 protected:
  JobSocketTest() {
    socket_ = std::move(
        *JobSocket::Create(*loop_, directory_ / "job.sock",
                           {[this](const wire::TaskHello& hello) -> Result<wire::TaskWelcome> {
                              if (!has_job_) return Error(Code::kFailedPrecondition, "no job");
                              return wire::TaskWelcome{wire::kProtocolVersion, JobId(7), StepId(0), "cn0",
                                                       hello.nspace.empty() ? 1u : 4u};
                            },
                            [this](std::uint64_t, const wire::TaskHello& task, const wire::Frame& frame) {
                              log_ += fmt::format("{} sent {:#x}; ", task.nspace, frame.type);
                            },
                            [this](std::uint64_t) { log_ += "gone; "; }},
                           [this](const std::string& text) { log_ += text; }));
  }
  ~JobSocketTest() override {
    client_.reset();
    socket_.reset();
  }
  void Connect() {
    FrameChannel::Handlers handlers;
    handlers.on_frame = [this](wire::Frame frame) { answer_ = std::move(frame); };
    handlers.on_closed = [this](const Status&) { closed_ = true; };
    client_ = std::move(*FrameChannel::Create(
        *loop_, MakePlainStream(std::move(*ConnectUnix(socket_->path()))), std::move(handlers)));
  }
  bool Until(const std::function<bool()>& done) { return support::RunUntil(*loop_, Millis(5'000), done); }
  support::ScratchDirectory directory_;
  std::string log_;
  bool has_job_ = true;
  bool closed_ = false;
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::Create());
  std::unique_ptr<JobSocket> socket_;
  std::unique_ptr<FrameChannel> client_;
  std::optional<wire::Frame> answer_;
};

TEST_F(JobSocketTest, AnswersAHelloWithJobAndWorldSize) {
  Connect();
  client_->SendMessage(wire::TaskHello{wire::kProtocolVersion, "msa.7.1.0", Rank(1)}, 5);
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->id, 5u);
  const auto welcome = wire::Decode<wire::TaskWelcome>(answer_->payload);
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->world_size, 4u);
  EXPECT_EQ(welcome->node, "cn0");
}

TEST_F(JobSocketTest, RefusesWithoutAJobOrWithAnotherVersionOrMessage) {
  has_job_ = false;
  Connect();
  client_->SendMessage(wire::TaskHello{});
  EXPECT_TRUE(Until([&] { return closed_; }));
  has_job_ = true;
  for (const std::string& packed :
       {wire::Pack(wire::TaskHello{99, {}, {}}), wire::Pack(0x0677, 0, ""), wire::Pack(0x0601, 0, "x")}) {
    closed_ = false;
    Connect();
    client_->Send(packed);
    EXPECT_TRUE(Until([&] { return closed_; }));
  }
  EXPECT_TRUE(Until([&] { return socket_->connections() == 0; }));
}

TEST_F(JobSocketTest, TakesRequestsForMemoryThatAreLongerThanOtherMessages) {
  Connect();
  client_->SendMessage(wire::TaskHello{wire::kProtocolVersion, "msa.7.1.0", Rank(1)});
  client_->Send(wire::Pack(0x0701, 0, std::string(wire::kMaxNamPayload, 'x')));
  ASSERT_TRUE(Until([&] { return log_ == "msa.7.1.0 sent 0x701; "; })) << log_;
  client_->Send(wire::Pack(wire::SpawnAsk::kType, 0, std::string(64 * 1024 + 1, 'x')));
  EXPECT_TRUE(Until([&] { return closed_; }));
  EXPECT_NE(log_.find("has 65537 bytes, the limit is 65536"), std::string::npos) << log_;
  EXPECT_TRUE(log_.ends_with("gone; ")) << log_;
}

TEST_F(JobSocketTest, AClientThatDoesNotReadItsAnswersIsDropped) {
  Connect();
  client_->SendMessage(wire::TaskHello{wire::kProtocolVersion, "msa.7.1.0", Rank(1)});
  ASSERT_TRUE(Until([&] { return answer_.has_value(); }));
  client_->PauseReading();
  const wire::Frame answer{wire::NamListing::kType, 0, 1, std::string(4 << 20, 'x')};
  for (int i = 0; i < 16; ++i) socket_->SendFrame(1, answer);
  EXPECT_EQ(socket_->connections(), 0u);
  EXPECT_TRUE(log_.ends_with("gone; ")) << log_;
  socket_->SendFrame(1, answer);
}

// A process as it is seen by the socket: with what it sends come descriptors.
class SlurmJobSocketTest : public JobSocketTest {
 protected:
  SlurmJobSocketTest() {
    JobSocket::Handlers handlers;
    handlers.greet = [](const wire::TaskHello&) -> Result<wire::TaskWelcome> { return wire::TaskWelcome{}; };
    handlers.on_closed = [this](std::uint64_t) { log_ += "gone; "; };
    handlers.on_join = [this](std::uint64_t client, SlurmJoin join) {
      client_of_join_ = client;
      joins_.push_back(std::move(join));
    };
    handlers.on_exec = [this](pid_t pid) -> Result<wire::TaskExec> {
      if (pid != exec_pid_) return Error(Code::kNotFound, "process {} is none", pid);
      wire::TaskExec exec;
      exec.program = "/bin/true";
      return exec;
    };
    slurm_ = std::move(*JobSocket::Create(*loop_, directory_ / "slurm.sock", std::move(handlers),
                                          [this](const std::string& text) { log_ += text; }));
    task_ = std::move(*ConnectUnix(slurm_->path()));
  }
  ~SlurmJobSocketTest() override { slurm_.reset(); }
  void Send(const std::string& bytes, const std::vector<int>& descriptors) {
    ASSERT_EQ(SendWithDescriptors(task_.get(), bytes, descriptors).bytes, bytes.size());
  }
  // The next bytes, and the descriptor beside them.
  std::string Receive(UniqueFd& descriptor) {
    std::string bytes(65536, '\0');
    bool received = false;
    EXPECT_TRUE(Until([&] {
      if (received) return true;
      ReceivedBytes in = ReceiveWithDescriptors(task_.get(), bytes);
      if (in.bytes == 0) return false;
      bytes.resize(in.bytes);
      if (!in.descriptors.empty()) descriptor = std::move(in.descriptors.front());
      return received = true;
    }));
    return bytes;
  }

  std::unique_ptr<JobSocket> slurm_;
  UniqueFd task_;
  std::vector<SlurmJoin> joins_;
  std::uint64_t client_of_join_ = 0;
  pid_t exec_pid_ = ::getpid();
};

TEST_F(SlurmJobSocketTest, AJoinBringsTwoDescriptorsAndItsAnswerOne) {
  std::array<int, 2> out{}, more{};
  ASSERT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(more.data(), O_CLOEXEC), 0);
  wire::SlurmTaskJoin join;
  join.rank = 3;
  // Longer than other messages of tasks may be.
  join.argv.assign(20'000, "argument");
  const std::string packed = wire::Pack(join);
  std::size_t at = 4000;
  Send(packed.substr(0, at), {out[1], out[1], more[1]});
  ::close(out[1]);
  ::close(more[1]);
  ASSERT_TRUE(Until([&] {
    const ssize_t n =
        ::send(task_.get(), packed.data() + at, packed.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) at += static_cast<std::size_t>(n);
    return at == packed.size();
  }));
  ASSERT_TRUE(Until([&] { return joins_.size() == 1; })) << log_;
  EXPECT_EQ(joins_[0].join.rank, 3u);
  EXPECT_EQ(joins_[0].pid, ::getpid());
  ASSERT_EQ(joins_[0].descriptors.size(), 2u);
  EXPECT_EQ(::write(joins_[0].descriptors[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(out[0], &byte, 1), 1);
  // The third was closed: its reader sees the end.
  EXPECT_EQ(::read(more[0], &byte, 1), 0);
  wire::SlurmTaskReady ready;
  ready.fd = 20;
  slurm_->Answer(client_of_join_, ready, std::move(joins_[0].descriptors[0]));
  UniqueFd descriptor;
  const std::string answer = Receive(descriptor);
  EXPECT_EQ(answer, wire::Pack(ready));
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(::write(descriptor.get(), "y", 1), 1);
  task_.reset();
  EXPECT_TRUE(Until([&] { return log_ == "gone; "; })) << log_;
  ::close(out[0]);
  ::close(more[0]);
}

TEST_F(SlurmJobSocketTest, NothingFollowsAJoin) {
  Send(wire::Pack(wire::SlurmTaskJoin{}) + wire::Pack(wire::SlurmTaskJoin{}), {});
  EXPECT_TRUE(Until([&] { return log_.find("a second join") != std::string::npos; })) << log_;
  EXPECT_EQ(slurm_->connections(), 0u);
  EXPECT_EQ(joins_.size(), 1u);
  Connect();
  client_->SendMessage(wire::SlurmTaskJoin{});
  EXPECT_TRUE(Until([&] { return closed_; })) << "a job daemon without Slurm's tasks takes none";
}

TEST_F(SlurmJobSocketTest, MsaExecIsAnsweredByItsProcess) {
  Send(wire::Pack(wire::TaskExecAsk{}), {});
  UniqueFd none;
  wire::TaskExec exec;
  exec.program = "/bin/true";
  EXPECT_EQ(Receive(none), wire::Pack(exec));
  exec_pid_ = 1;
  task_ = std::move(*ConnectUnix(slurm_->path()));
  Send(wire::Pack(wire::TaskExecAsk{}), {});
  EXPECT_TRUE(Until([&] { return log_.find("is none") != std::string::npos; })) << log_;
}

TEST_F(JobSocketTest, IsForItsUserAlone) {
  struct stat info {};
  ASSERT_EQ(::stat(socket_->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace msa::jobd
