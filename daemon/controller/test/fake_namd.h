#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "msa/adapters/grpc/controller_session.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/messages.h"
#include "msa/base/nam_messages.h"

namespace msa::test {

// Plays a NAM node towards a real controller: its node daemon and a namd that does what it is told, or what
// the test says.
class FakeNamd {
 public:
  using Key = std::pair<RegionUuid, Generation>;
  struct Extent {
    wire::NamExtentState state = wire::NamExtentState::kPending;
    Bytes bytes;
  };
  // What is on its disk outlives it.
  struct Disk {
    std::uint64_t system = 0;
    std::map<Key, Extent> extents;
  };

  FakeNamd(std::string name, const std::string& controller, Bytes capacity, Disk disk)
      : name_(std::move(name)),
        capacity_(capacity),
        disk_(std::move(disk)),
        loop_(std::move(*EventLoop::Create())) {
    ControllerSession::Handlers handlers;
    handlers.make_registration = [this] {
      node_control::RegisterNode out{.daemon_version = "test", .protocol_version = wire::kProtocolVersion};
      out.description = {.name = name_, .cores = 1, .machine_cores = 1, .synthetic = true};
      out.attach_address = "unix:/n/" + name_;
      return out;
    };
    handlers.on_registered = [this](const node_control::Registered&) { SayHello(); };
    handlers.on_start_job = [](const node_control::StartJob&) {};
    handlers.on_to_jobd = [](const node_control::ToJobd&) {};
    handlers.on_quit_job = [](const node_control::QuitJob&) {};
    handlers.on_to_namd = [this](node_control::ToNamd in) { OnMessage(in.frame); };
    handlers.on_disconnected = [](const Status&) {};
    session_ = std::make_unique<ControllerSession>(
        *loop_,
        ControllerSession::Options{
            .address = controller, .min_backoff = Millis(5), .max_backoff = Millis(50)},
        std::move(handlers));
    loop_->Post([this] {
      session_->Start();
      Beat();
    });
    thread_ = std::thread([this] { (void)loop_->Run(); });
  }
  ~FakeNamd() {
    loop_->Post([this] {
      session_.reset();
      loop_->Stop();
    });
    thread_.join();
  }

  Disk disk() {
    std::lock_guard lock(mu_);
    return disk_;
  }
  template <class M>
  std::vector<M> Told() {
    std::lock_guard lock(mu_);
    std::vector<M> out;
    for (const wire::Frame& frame : told_)
      if (frame.type == M::kType) out.push_back(*wire::Decode<M>(frame.payload));
    return out;
  }
  // From now on allocations fail so; kOk: they do not.
  void Fail(Code code, std::string text = {}) {
    std::lock_guard lock(mu_);
    failure_ = {code, std::move(text)};
  }
  // From now on nothing is done before Release().
  void Hold() {
    std::lock_guard lock(mu_);
    held_ = true;
  }
  void Release() {
    std::vector<wire::Frame> late;
    {
      std::lock_guard lock(mu_);
      held_ = false;
      late.swap(late_);
    }
    for (const wire::Frame& frame : late) loop_->Post([this, frame] { Do(frame); });
  }
  template <class M>
  void Say(const M& message) {
    loop_->Post([this, message] { Send(message); });
  }
  // The namd dies and another one comes, or none; its node daemon lives.
  void Die() {
    loop_->Post([this] { (void)session_->Send(node_control::NamdGone{"killed"}); });
  }
  void Return() {
    loop_->Post([this] { SayHello(); });
  }

 private:
  template <class M>
  void Send(const M& message) {
    (void)session_->Send(node_control::FromNamd{{.type = M::kType, .payload = wire::Encode(message)}});
  }
  void SayHello() {
    wire::NamdHello hello;
    hello.capacity = capacity_;
    hello.socket = "/n/" + name_ + "/namd.sock";
    hello.pid = 1;
    std::lock_guard lock(mu_);
    hello.system = disk_.system;
    for (const auto& [key, extent] : disk_.extents)
      hello.extents.push_back({key.first, key.second, extent.state, extent.bytes});
    Send(hello);
  }
  void OnMessage(const wire::Frame& frame) {
    {
      std::lock_guard lock(mu_);
      told_.push_back(frame);
      if (held_) return late_.push_back(frame);
    }
    Do(frame);
  }
  void Do(const wire::Frame& frame) {
    std::lock_guard lock(mu_);
    if (frame.type == wire::NamdWelcome::kType) {
      disk_.system = wire::Decode<wire::NamdWelcome>(frame.payload)->system;
    } else if (frame.type == wire::NamExtentAllocate::kType) {
      const auto m = *wire::Decode<wire::NamExtentAllocate>(frame.payload);
      if (!failure_.ok())
        return Send(
            wire::NamExtentDone{m.request, static_cast<std::uint8_t>(failure_.code()), failure_.message()});
      Bytes bytes;
      for (const wire::NamSegmentPlace& segment : m.segments) bytes.value += segment.bytes.value;
      disk_.extents[{m.uuid, m.generation}].bytes = bytes;
      Send(wire::NamExtentDone{m.request, 0, ""});
    } else if (frame.type == wire::NamExtentCommit::kType) {
      const auto m = *wire::Decode<wire::NamExtentCommit>(frame.payload);
      if (const auto it = disk_.extents.find({m.uuid, m.generation}); it != disk_.extents.end())
        it->second.state = wire::NamExtentState::kCommitted;
    } else if (frame.type == wire::NamScan::kType) {
      Send(wire::NamScanned{.request = wire::Decode<wire::NamScan>(frame.payload)->request});
    } else if (frame.type == wire::NamExtentFree::kType) {
      const auto m = *wire::Decode<wire::NamExtentFree>(frame.payload);
      disk_.extents.erase({m.uuid, m.generation});
      Send(wire::NamExtentDone{m.request, 0, ""});
    }
  }
  void Beat() {
    (void)session_->Send(node_control::Heartbeat{.clock_ms = ToUnixMillis(Now())});
    loop_->After(Millis(100), [this] {
      if (session_) Beat();
    });
  }

  const std::string name_;
  const Bytes capacity_;
  std::mutex mu_;
  Disk disk_;  // mu_, as the next four
  std::vector<wire::Frame> told_, late_;
  Status failure_;
  bool held_ = false;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ControllerSession> session_;  // loop thread
  std::thread thread_;
};

}  // namespace msa::test
