// Requests for network attached memory through a real job daemon: the test is the tasks and the controller.
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/nam_messages.h"
#include "msa/jobd/task_messages.h"

#include "jobd_harness.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

constexpr char kNamespace[] = "msa.7.1.0";

// A process of the job, at MSA_JOB_SOCKET.
class Task {
 public:
  Task(JobdHarness& job, const std::string& node, std::uint32_t rank) : job_(job) {
    auto fd = ConnectUnix(job.RunDirectory(node) + "/job.sock");
    EXPECT_TRUE(fd.ok()) << fd.status().ToString();
    fd_ = fd->get();
    FrameChannel::Handlers handlers;
    handlers.on_frame = [this](wire::Frame frame) {
      if (frame.type == wire::TaskWelcome::kType)
        welcome = true;
      else
        answers.push_back(std::move(frame));
    };
    handlers.on_closed = [this](const Status&) { closed = true; };
    channel_ =
        std::move(*FrameChannel::Create(job.loop(), MakePlainStream(std::move(*fd)), std::move(handlers)));
    channel_->SendMessage(wire::TaskHello{wire::kProtocolVersion, kNamespace, Rank(rank)});
    EXPECT_TRUE(job.Until([&] { return welcome; }));
  }
  void Hello(std::uint64_t client) { channel_->SendMessage(wire::NamClientHello{NamClientId(client), 1}); }
  void Ask(std::uint64_t id, const std::string& payload = "ask") {
    channel_->Send(wire::Pack(wire::NamOpen::kType, id, payload));
  }
  // As they are, past the channel. Little: they fit into the socket.
  void SendBytes(const std::string& bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void Send(const std::string& packed) { channel_->Send(packed); }
  void Close() { channel_.reset(); }
  wire::NamFailed Failure() {
    EXPECT_TRUE(job_.Until([&] { return !answers.empty(); }));
    if (answers.empty()) return {};
    EXPECT_EQ(answers.back().type, wire::NamFailed::kType);
    return *wire::Decode<wire::NamFailed>(answers.back().payload);
  }

  bool welcome = false, closed = false;
  std::vector<wire::Frame> answers;

 private:
  JobdHarness& job_;
  int fd_ = -1;
  std::unique_ptr<FrameChannel> channel_;
};

// Too short for one.
struct NoAnswer {
  static constexpr std::uint16_t kType = wire::NamToTask::kType;
  std::uint8_t byte = 7;
  template <class A>
  void Fields(A& a) {
    a(byte);
  }
};

class JobdNam : public ::testing::Test {
 protected:
  JobdNam() : job({{"cn0"}, {"bn0", "booster", 1}}) {
    job.WarmUp();
    wire::App app;
    app.argv = {"/bin/sh", "-c", "echo up; exec sleep 600"};
    app.ntasks = 2;
    job.Launch({.apps = {app}, .rank_node = {"cn0", "bn0"}});
    EXPECT_TRUE(job.Until([&] { return job.Out(0) == "up\n" && job.Out(1) == "up\n"; }));
  }
  JobdHarness job;
};

TEST_F(JobdNam, ARequestAndItsAnswerPassByEachMember) {
  Task at_head(job, "cn0", 0), at_member(job, "bn0", 1);
  at_head.Hello(70);
  at_member.Hello(71);
  at_head.Ask(9, "of rank 0");
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 1; }));
  at_member.Ask(9, "of rank 1");
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 2; }));
  const wire::NamFromTask& first = job.nam_asks[0];
  EXPECT_EQ(first.client, NamClientId(70));
  EXPECT_EQ(first.who, "rank 0 of msa.7.1.0 on cn0");
  EXPECT_EQ(first.type, wire::NamOpen::kType);
  EXPECT_EQ(first.payload, "of rank 0");
  EXPECT_EQ(job.nam_asks[1].who, "rank 1 of msa.7.1.0 on bn0");
  job.ToNode("bn0", wire::NamToTask{job.nam_asks[1].connection, wire::NamDone::kType, 9, "for rank 1"});
  ASSERT_TRUE(job.Until([&] { return at_member.answers.size() == 1; }));
  EXPECT_EQ(at_member.answers[0].type, wire::NamDone::kType);
  EXPECT_EQ(at_member.answers[0].id, 9u);
  EXPECT_EQ(at_member.answers[0].payload, "for rank 1");
  EXPECT_TRUE(at_head.answers.empty());
}

TEST_F(JobdNam, AClientThatLeavesInTheMiddleOfAMessageIsGoneOnceAndItsAnswerIsDropped) {
  Task leaving(job, "cn0", 0), staying(job, "cn0", 0);
  leaving.Hello(70);
  staying.Hello(71);
  leaving.Ask(1);
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 1; }));
  const std::uint64_t connection = job.nam_asks[0].connection;
  const std::string whole = wire::Pack(wire::NamOpen::kType, 2, std::string(1000, 'x'));
  leaving.SendBytes(whole.substr(0, whole.size() / 2));
  leaving.Close();
  ASSERT_TRUE(job.Until([&] { return !job.nam_gone.empty(); }));
  EXPECT_EQ(job.nam_gone[0].connection, connection);
  EXPECT_EQ(job.nam_gone[0].client, NamClientId(70));
  job.ToNode("cn0", wire::NamToTask{connection, wire::NamDone::kType, 1, "late"});
  staying.Ask(3);
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 2; }));
  EXPECT_EQ(job.nam_asks[1].client, NamClientId(71)) << "half a message was passed on";
  job.ToNode("cn0", wire::NamToTask{job.nam_asks[1].connection, wire::NamDone::kType, 3, "in time"});
  ASSERT_TRUE(job.Until([&] { return !staying.answers.empty(); }));
  EXPECT_EQ(staying.answers[0].payload, "in time");
  EXPECT_EQ(job.nam_gone.size(), 1u);
}

TEST_F(JobdNam, ALongestRequestPassesAndALongerOneClosesItsConnectionAlone) {
  Task good(job, "cn0", 0), bad(job, "cn0", 0);
  good.Hello(70);
  bad.Hello(71);
  good.Ask(1, std::string(wire::kMaxNamPayload, 'g'));
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 1; }));
  EXPECT_EQ(job.nam_asks[0].payload.size(), wire::kMaxNamPayload);
  bad.Ask(1, std::string(wire::kMaxNamPayload + 1, 'b'));
  ASSERT_TRUE(job.Until([&] { return bad.closed && !job.nam_gone.empty(); }));
  EXPECT_EQ(job.nam_gone[0].client, NamClientId(71));
  EXPECT_EQ(job.nam_asks.size(), 1u);
  // An answer of the greatest length.
  job.ToNode("cn0", wire::NamToTask{job.nam_asks[0].connection, wire::NamDone::kType, 1,
                                    std::string(wire::kMaxNamPayload, 'a')});
  ASSERT_TRUE(job.Until([&] { return !good.answers.empty(); }));
  EXPECT_EQ(good.answers[0].payload.size(), wire::kMaxNamPayload);
}

TEST_F(JobdNam, MalformedMessagesAreAnsweredAndHarmNobody) {
  Task other(job, "cn0", 0), task(job, "cn0", 0);
  other.Hello(70);
  task.Ask(1);
  EXPECT_EQ(task.Failure().code, static_cast<std::uint8_t>(Code::kFailedPrecondition));
  task.answers.clear();
  task.Send(wire::Pack(wire::NamClientHello::kType, 0, "x"));
  task.Hello(0);
  task.Ask(2);
  EXPECT_THAT(task.Failure().message, HasSubstr("before the hello"));
  EXPECT_EQ(task.answers.back().id, 2u);
  // What a request says is the controller's to judge.
  task.Hello(71);
  task.Send(wire::Pack(0x07ee, 3, "\xff\xff"));
  ASSERT_TRUE(job.Until([&] { return !job.nam_asks.empty(); }));
  EXPECT_EQ(job.nam_asks[0].type, 0x07ee);
  // An answer that is none, and one for a connection that never was.
  job.ToNode("cn0", NoAnswer{});
  job.ToNode("cn0", wire::NamToTask{4711, wire::NamDone::kType, 1, "for nobody"});
  other.Ask(4);
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 2; }));
  EXPECT_TRUE(job.nam_gone.empty());
  // Bytes that are no frame.
  task.SendBytes(std::string(64, '\xff'));
  ASSERT_TRUE(job.Until([&] { return task.closed && job.nam_gone.size() == 1; }));
  EXPECT_EQ(job.nam_gone[0].client, NamClientId(71));
  EXPECT_TRUE(job.JobdAlive("cn0"));
}

TEST_F(JobdNam, TwoTasksThatSayTheSameClientGetTheirOwnAnswersAndEachItsOwnEnd) {
  Task first(job, "cn0", 0), second(job, "cn0", 0);
  first.Hello(70);
  second.Hello(70);
  first.Ask(1, "first");
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 1; }));
  second.Ask(1, "second");
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 2; }));
  const std::uint64_t of_first = job.nam_asks[0].connection, of_second = job.nam_asks[1].connection;
  EXPECT_NE(of_first, of_second);
  first.Close();
  ASSERT_TRUE(job.Until([&] { return !job.nam_gone.empty(); }));
  EXPECT_EQ(job.nam_gone[0].connection, of_first);
  job.ToNode("cn0", wire::NamToTask{of_second, wire::NamDone::kType, 1, "for second"});
  ASSERT_TRUE(job.Until([&] { return !second.answers.empty(); }));
  EXPECT_EQ(second.answers[0].payload, "for second");
  EXPECT_FALSE(second.closed);
  EXPECT_EQ(job.nam_gone.size(), 1u);
}

TEST_F(JobdNam, EndsThatTheNodeDaemonMissedAreToldWhenItIsBack) {
  Task task(job, "cn0", 0), other(job, "cn0", 0);
  task.Hello(70);
  other.Hello(71);
  task.Ask(1);
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 1; }));
  job.KillNoded("cn0");
  task.Close();
  Task witness(job, "cn0", 0);  // greeted after the end was seen
  job.ReviveNoded("cn0");
  ASSERT_TRUE(job.Until([&] { return job.Adopted("cn0") && !job.nam_gone.empty(); }));
  EXPECT_EQ(job.nam_gone[0].client, NamClientId(70));
  EXPECT_EQ(job.nam_gone[0].connection, job.nam_asks[0].connection);
  other.Ask(2);
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 2; })) << "no request passes any more";
}

TEST_F(JobdNam, AProcessThatOutlivesItsJobIsGoneWithTheJob) {
  Task task(job, "cn0", 0);
  task.Hello(70);
  task.Ask(1);
  ASSERT_TRUE(job.Until([&] { return job.nam_asks.size() == 1; }));
  job.ToHead(wire::CancelJob{wire::JobState::kCancelled, 5'000, "enough"});
  ASSERT_TRUE(job.UntilOver());
  ASSERT_TRUE(job.Until([&] { return !job.nam_gone.empty(); }));
  EXPECT_EQ(job.nam_gone[0].client, NamClientId(70));
  EXPECT_TRUE(job.Until([&] { return task.closed; }));
}

}  // namespace
}  // namespace msa::jobd
