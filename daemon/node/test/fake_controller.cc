#include "fake_controller.h"

#include <algorithm>
#include <future>
#include <utility>

#include <gtest/gtest.h>

#include "msa/adapters/grpc/frame_bundle.h"

namespace msa::node::test {

FakeController::FakeController(std::string path) : path_(std::move(path)) {
  auto loop = EventLoop::Create();
  EXPECT_TRUE(loop.ok());
  loop_ = std::move(*loop);
  thread_ = std::thread([this] { EXPECT_TRUE(loop_->Run().ok()); });
}

FakeController::~FakeController() {
  Stop();
  loop_->Stop();
  thread_.join();
}

void FakeController::Start() {
  std::promise<void> started;
  loop_->Post([&] {
    auto server = GrpcServer::Start(*loop_, {.path = path_}, {this});
    EXPECT_TRUE(server.ok()) << server.status().message();
    if (server.ok()) server_ = std::move(*server);
    started.set_value();
  });
  started.get_future().wait();
}

void FakeController::Stop() {
  std::promise<void> stopped;
  loop_->Post([&] {
    if (server_) server_->StopAccepting();
    stopped.set_value();
  });
  stopped.get_future().wait();
  if (!server_) return;
  server_->Shutdown(Millis(0));
  std::promise<void> gone;
  loop_->Post([&] {
    server_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
}

grpc::ServerBidiReactor<v1::NodeReport, v1::NodeCommand>* FakeController::Session(
    grpc::CallbackServerContext*) {
  auto stream = std::make_shared<Stream>();
  {
    MutexLock lock(mu_);
    stream_ = stream;
  }
  return stream->OpenBoth(stream, {},
                          [this, weak = std::weak_ptr<Stream>(stream)](std::optional<v1::NodeReport> in) {
                            const auto self = weak.lock();
                            if (!self) return;
                            if (in) return Take(*self, std::move(*in));
                            self->End(grpc::Status::OK);
                          });
}

void FakeController::Take(Stream& stream, v1::NodeReport report) {
  MutexLock lock(mu_);
  for (v1::NodeReport& one : Scatter(std::move(report))) TakeOne(stream, std::move(one));
  stream.ReadNext();
}

void FakeController::TakeOne(Stream& stream, v1::NodeReport report) {
  switch (report.what_case()) {
    case v1::NodeReport::kRegister: {
      node_control::RegisterNode in = node_control::FromProto(report.register_());
      node_control::Registered answer;
      answer.heartbeat_interval = Millis(50);
      answer.system_name = "test";
      if (keep_all_) answer.keep = in.jobds;
      answer.slurm = slurm_;
      stream.Send(node_control::ToProto(answer));
      registrations_.push_back(std::move(in));
      break;
    }
    case v1::NodeReport::kHeartbeat:
      heartbeats_.push_back(node_control::FromProto(report.heartbeat()));
      break;
    case v1::NodeReport::kFromJobd: {
      auto from = node_control::FromProto(std::move(*report.mutable_from_jobd()));
      ASSERT_TRUE(from.ok());
      auto frames = node_control::Unbundle(std::move(from->frame));
      ASSERT_TRUE(frames.ok());
      for (wire::Frame& frame : *frames)
        from_jobd_.push_back({from->job, from->incarnation, std::move(frame)});
      break;
    }
    case v1::NodeReport::kJobdGone:
      gone_.push_back(node_control::FromProto(report.jobd_gone()));
      break;
    case v1::NodeReport::kFromNamd: {
      auto from = node_control::FromProto(std::move(*report.mutable_from_namd()));
      ASSERT_TRUE(from.ok());
      from_namd_.push_back(std::move(from->frame));
      break;
    }
    case v1::NodeReport::kNamdGone:
      namds_gone_.push_back(report.namd_gone().reason());
      break;
    case v1::NodeReport::kFromSlurm: {
      auto from = node_control::FromProto(std::move(*report.mutable_from_slurm()));
      ASSERT_TRUE(from.ok());
      from_slurm_.push_back(std::move(from->frame));
      break;
    }
    default:
      ADD_FAILURE() << "unexpected report " << report.what_case();
  }
}

std::size_t FakeController::registrations() {
  MutexLock lock(mu_);
  return registrations_.size();
}
node_control::RegisterNode FakeController::registration() {
  MutexLock lock(mu_);
  return registrations_.empty() ? node_control::RegisterNode() : registrations_.back();
}
std::size_t FakeController::heartbeats() {
  MutexLock lock(mu_);
  return heartbeats_.size();
}
node_control::Heartbeat FakeController::heartbeat() {
  MutexLock lock(mu_);
  return heartbeats_.empty() ? node_control::Heartbeat() : heartbeats_.back();
}
std::vector<node_control::FromJobd> FakeController::from_jobd() {
  MutexLock lock(mu_);
  return from_jobd_;
}
std::vector<node_control::JobdGone> FakeController::gone() {
  MutexLock lock(mu_);
  return gone_;
}
std::vector<wire::Frame> FakeController::from_namd() {
  MutexLock lock(mu_);
  return from_namd_;
}
std::vector<std::string> FakeController::namds_gone() {
  MutexLock lock(mu_);
  return namds_gone_;
}
std::vector<wire::Frame> FakeController::from_slurm() {
  MutexLock lock(mu_);
  return from_slurm_;
}
bool FakeController::Got(std::uint16_t type) {
  MutexLock lock(mu_);
  return std::any_of(from_jobd_.begin(), from_jobd_.end(),
                     [&](const auto& f) { return f.frame.type == type; });
}
void FakeController::Clear() {
  MutexLock lock(mu_);
  heartbeats_.clear();
  from_jobd_.clear();
  gone_.clear();
  from_namd_.clear();
  namds_gone_.clear();
  from_slurm_.clear();
}
void FakeController::Send(v1::NodeCommand command) {
  std::shared_ptr<Stream> stream;
  {
    MutexLock lock(mu_);
    stream = stream_.lock();
  }
  ASSERT_NE(stream, nullptr);
  stream->Send(std::move(command));
}

}  // namespace msa::node::test
