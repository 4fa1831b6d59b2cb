#include "msa/adapters/grpc/controller_session.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "msa/adapters/grpc/convert_node_internal.h"
#include "msa/adapters/grpc/grpc_server_internal.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/v1/node.grpc.pb.h"

#include "socket_test_support.h"

namespace msa {
namespace {

using test::Eventually;
using Stream = BidiStream<v1::NodeReport, v1::NodeCommand>;

// Plays the controller: registers every node, sends what it is told.
class FakeController : public v1::NodeControlService::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::NodeReport, v1::NodeCommand>* Session(grpc::CallbackServerContext*) override {
    auto stream = std::make_shared<Stream>();
    {
      std::lock_guard lock(mu_);
      stream_ = stream;
    }
    return stream->OpenBoth(stream, {},
                            [this, weak = std::weak_ptr<Stream>(stream)](std::optional<v1::NodeReport> in) {
                              const auto self = weak.lock();
                              if (!self) return;
                              if (!in) {
                                self->End(grpc::Status::OK);
                                return;
                              }
                              Take(*self, std::move(*in));
                            });
  }

  void Take(Stream& stream, v1::NodeReport in) {
    if (in.has_register_()) {
      if (refuse_) {
        stream.End(grpc::Status(grpc::StatusCode::NOT_FOUND, "node 'xx' is not in the topology"));
        return;
      }
      if (!silent_) stream.Send(node_control::ToProto(node_control::Registered{Millis(100), "test", {}}));
    }
    std::lock_guard lock(mu_);
    ++messages_;
    for (v1::NodeReport& one : Scatter(std::move(in))) reports_.push_back(std::move(one));
    stream.ReadNext();
  }

  std::size_t messages() {
    std::lock_guard lock(mu_);
    return messages_;
  }

  std::size_t reports() {
    std::lock_guard lock(mu_);
    return reports_.size();
  }
  v1::NodeReport report(std::size_t i) {
    std::lock_guard lock(mu_);
    return reports_[i];
  }
  std::shared_ptr<Stream> stream() {
    std::lock_guard lock(mu_);
    return stream_.lock();
  }

  std::atomic<bool> refuse_ = false;
  std::atomic<bool> silent_ = false;

 private:
  std::mutex mu_;
  std::size_t messages_ = 0;
  std::vector<v1::NodeReport> reports_;
  std::weak_ptr<Stream> stream_;
};

class ControllerSessionTest : public ::testing::Test {
 protected:
  ~ControllerSessionTest() override {
    node_thread_.Call([&] { session_.reset(); });
    StopController();
  }

  void StartController() {
    controller_thread_.Call([&] {
      auto server = GrpcServer::Start(controller_thread_.loop(), {.path = (dir_ / "c")}, {&controller_});
      ASSERT_TRUE(server.ok()) << server.status().ToString();
      server_ = *std::move(server);
    });
  }
  void StopController() {
    controller_thread_.Call([&] { server_.reset(); });
  }

  void StartSession(Millis answer_timeout = Millis(5000), Millis later = Millis(30)) {
    ControllerSession::Handlers handlers;
    handlers.make_registration = [] {
      node_control::RegisterNode out;
      out.description.name = "cn0";
      return out;
    };
    handlers.on_registered = [this](node_control::Registered in) {
      system_ = in.system_name, registered_ += 1;
    };
    handlers.on_start_job = [this](node_control::StartJob) { started_ += 1; };
    handlers.on_to_jobd = [this](node_control::ToJobd) { to_jobd_ += 1; };
    handlers.on_quit_job = [this](node_control::QuitJob) { quit_ += 1; };
    handlers.on_disconnected = [this](Status) { disconnected_ += 1; };
    handlers.on_refused = [this](Status status, Millis retry) {
      refusals_.push_back(status);
      longest_retry_ = std::max(longest_retry_.load(), retry);
      refused_ += 1;
    };
    node_thread_.Call([&] {
      session_ =
          std::make_unique<ControllerSession>(node_thread_.loop(),
                                              ControllerSession::Options{.address = "unix:" + (dir_ / "c"),
                                                                         .min_backoff = Millis(5),
                                                                         .max_backoff = Millis(40),
                                                                         .answer_timeout = answer_timeout,
                                                                         .later = later},
                                              std::move(handlers));
      session_->Start();
    });
  }

  void SendSoon(std::uint64_t job) {
    EXPECT_TRUE(session_
                    ->Send(node_control::FromJobd{JobId(job), Incarnation(1), {.type = 0x0301}},
                           ControllerSession::Urgency::kSoon)
                    .ok());
  }

  support::ScratchDirectory dir_;
  test::LoopThread controller_thread_;
  test::LoopThread node_thread_;
  FakeController controller_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<ControllerSession> session_;
  std::string system_;            // node thread
  std::vector<Status> refusals_;  // node thread
  std::atomic<int> registered_ = 0, started_ = 0, to_jobd_ = 0, quit_ = 0, disconnected_ = 0, refused_ = 0;
  std::atomic<Millis> longest_retry_ = Millis(0);
};

TEST_F(ControllerSessionTest, RegistersFirstAndDeliversCommandsInOrder) {
  StartController();
  StartSession();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  EXPECT_EQ(controller_.report(0).register_().description().name(), "cn0");
  EXPECT_EQ(node_thread_.Call([&] { return system_; }), "test");
  const auto stream = controller_.stream();
  stream->Send(node_control::ToProto(node_control::StartJob{JobId(1), Incarnation(1), {}, {.type = 0x0201}}));
  stream->Send(node_control::ToProto(node_control::ToJobd{JobId(1), Incarnation(1), {.type = 0x0203}}));
  stream->Send(node_control::ToProto(node_control::QuitJob{JobId(1), Incarnation(1), "over"}));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return quit_ == 1; }));
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(to_jobd_, 1);
}

TEST_F(ControllerSessionTest, SendsReportsInOrder) {
  StartController();
  StartSession();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  node_thread_.Call([&] {
    EXPECT_TRUE(session_->Send(node_control::Heartbeat{.load = 0.5}).ok());
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(session_->Send(node_control::FromJobd{JobId(i), Incarnation(1), {.type = 0x0305}}).ok());
    }
    EXPECT_TRUE(session_->Send(node_control::JobdGone{JobId(9), Incarnation(1), "killed", false}).ok());
  });
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return controller_.reports() == 203; }));
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(controller_.report(i + 2).from_jobd().job_id(), i);
  EXPECT_TRUE(controller_.report(202).has_jobd_gone());
}

TEST_F(ControllerSessionTest, WhatMayWaitTravelsWithWhatComesNextInOrder) {
  StartController();
  StartSession(Millis(30'000), std::chrono::hours(1));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  node_thread_.Call([&] {
    for (std::uint64_t i = 0; i < 5; ++i) SendSoon(i);
    EXPECT_TRUE(session_->Send(node_control::FromSlurm{{.type = 0x0b01}}).ok());
  });
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return controller_.reports() == 7; }));
  EXPECT_EQ(controller_.messages(), 2u) << "the registration, and one more";
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(controller_.report(i + 1).from_jobd().job_id(), i);
  EXPECT_TRUE(controller_.report(6).has_from_slurm());
}

TEST_F(ControllerSessionTest, WhatMayWaitIsSentSoonByItself) {
  StartController();
  StartSession(Millis(30'000), Millis(10));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  node_thread_.Call([&] {
    for (std::uint64_t i = 0; i < 2; ++i) SendSoon(i);
  });
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return controller_.reports() == 3; }));
  EXPECT_EQ(controller_.messages(), 2u);
}

TEST_F(ControllerSessionTest, WhatMayWaitIsNotSentInTheNextSession) {
  StartController();
  StartSession(Millis(30'000), std::chrono::hours(1));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  node_thread_.Call([&] { SendSoon(1); });
  StopController();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return disconnected_ == 1; }));
  StartController();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 2; }));
  node_thread_.Call([&] { EXPECT_TRUE(session_->Send(node_control::Heartbeat{}).ok()); });
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return controller_.reports() == 3; }));
  EXPECT_TRUE(controller_.report(2).has_heartbeat());
}

TEST_F(ControllerSessionTest, CommandsThatWereQueuedTogetherAreCarriedOutInOrder) {
  StartController();
  StartSession();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  const auto stream = controller_.stream();
  for (int i = 0; i < 3; ++i)
    stream->Queue(
        node_control::ToProto(node_control::StartJob{JobId(1), Incarnation(1), {}, {.type = 0x0201}}));
  stream->Queue(node_control::ToProto(node_control::ToJobd{JobId(1), Incarnation(1), {.type = 0x0203}}));
  EXPECT_GT(stream->queued(), 0u);
  stream->Flush();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return to_jobd_ == 1; }));
  EXPECT_EQ(started_, 3);
  stream->Queue(node_control::ToProto(node_control::QuitJob{JobId(1), Incarnation(1), "over"}));
  stream->End(grpc::Status::OK);
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return disconnected_ == 1; }));
  EXPECT_EQ(quit_, 1) << "what is queued comes before the end";
}

TEST(Gather, LeavesWhatWouldMakeTheMessageTooLarge) {
  std::deque<std::pair<v1::NodeReport, std::size_t>> queue;
  for (std::uint64_t i = 0; i < 3; ++i) {
    v1::NodeReport report;
    report.mutable_from_jobd()->set_job_id(i);
    queue.emplace_back(std::move(report), kMostGathered / 2);
  }
  Gather(queue);
  ASSERT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.front().second, kMostGathered);
  const std::vector<v1::NodeReport> all = Scatter(std::move(queue.front().first));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].from_jobd().job_id(), 0u);
  EXPECT_EQ(all[1].from_jobd().job_id(), 1u);
}

TEST_F(ControllerSessionTest, ConnectsAgainAfterTheControllerWasAway) {
  StartController();
  StartSession();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 1; }));
  StopController();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return disconnected_ == 1 && refused_ > 4; }));
  EXPECT_EQ(node_thread_.Call([&] { return session_->Send(node_control::Heartbeat{}); }).code(),
            Code::kUnavailable);
  EXPECT_EQ(longest_retry_.load(), Millis(40));  // the back-off stops growing
  StartController();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return registered_ == 2; }));
  EXPECT_EQ(disconnected_, 1);
}

TEST_F(ControllerSessionTest, TellsWhyTheControllerRefuses) {
  controller_.refuse_ = true;
  StartController();
  StartSession();
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return refused_ >= 2; }));
  EXPECT_EQ(node_thread_.Call([&] { return refusals_.front(); }),
            Status(Code::kNotFound, "node 'xx' is not in the topology"));
  EXPECT_EQ(registered_, 0);
  EXPECT_EQ(disconnected_, 0);
}

TEST_F(ControllerSessionTest, GivesUpOnAControllerThatDoesNotAnswer) {
  controller_.silent_ = true;
  StartController();
  StartSession(Millis(50));
  ASSERT_TRUE(Eventually(Millis(30'000), [&] { return refused_ >= 1; }));
  EXPECT_EQ(node_thread_.Call([&] { return refusals_.front(); }).code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace msa
