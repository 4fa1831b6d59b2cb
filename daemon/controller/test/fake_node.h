#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "msa/adapters/grpc/controller_session.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/messages.h"

namespace msa::test {

// Plays a node daemon and its job daemons towards a real controller.
class FakeNode {
 public:
  enum class Jobs {
    kFinish,  // start at once, end at once with code 0
    kHang,    // start at once, end when cancelled
  };

  FakeNode(const std::string& name, const std::string& controller, Jobs jobs)
      : name_(name), jobs_(jobs), loop_(std::move(*EventLoop::Create())) {
    ControllerSession::Handlers handlers;
    handlers.make_registration = [this] { return Registration(); };
    handlers.on_registered = [this](node_control::Registered) { OnRegistered(); };
    handlers.on_start_job = [this](node_control::StartJob in) { OnStart(std::move(in)); };
    handlers.on_to_jobd = [this](node_control::ToJobd in) { OnToJobd(in); };
    handlers.on_quit_job = [this](node_control::QuitJob in) { Leave(in.job, in.incarnation); };
    handlers.on_disconnected = [](Status) {};
    handlers.on_refused = [this](Status status, Millis) {
      std::lock_guard lock(mu_);
      refusal_ = std::move(status);
    };
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

  ~FakeNode() {
    loop_->Post([this] {
      session_.reset();
      loop_->Stop();
    });
    thread_.join();
  }

  // Launches that came, without repeats of one (job, incarnation), and how many came in all.
  std::vector<wire::LaunchJob> launches() {
    std::lock_guard lock(mu_);
    return launches_;
  }
  int registrations() {
    std::lock_guard lock(mu_);
    return registrations_;
  }
  std::vector<int> signals() {
    std::lock_guard lock(mu_);
    return signals_;
  }
  Status refusal() {
    std::lock_guard lock(mu_);
    return refusal_;
  }

  std::uint32_t protocol_version = wire::kProtocolVersion;
  std::atomic<std::int64_t> clock_ahead_ms = 0;  // of this machine's

 private:
  using Key = std::pair<JobId, Incarnation>;

  node_control::RegisterNode Registration() {
    node_control::RegisterNode out{.daemon_version = "test", .protocol_version = protocol_version};
    out.description = {.name = name_, .cores = 4, .machine_cores = 4, .synthetic = true};
    out.attach_address = "unix:/n/" + name_;
    out.jobd_address = "unix:/j/" + name_ + "/%J";
    for (const Key& key : running_) out.jobds.push_back({key.first, key.second, 0, true, false});
    return out;
  }

  void OnRegistered() {
    {
      std::lock_guard lock(mu_);
      registrations_ += 1;
    }
    for (const Key& key : exits_) SendExit(key, wire::JobState::kCompleted, 0);
  }

  void OnStart(node_control::StartJob in) {
    const Key key{in.job, in.incarnation};
    if (!seen_.insert(key).second) return;
    Result<wire::LaunchJob> launch = wire::Decode<wire::LaunchJob>(in.frame.payload);
    if (!launch.ok()) return;
    const bool head = launch->self_index == launch->head_index;
    {
      std::lock_guard lock(mu_);
      launches_.push_back(*std::move(launch));
    }
    running_.insert(key);
    if (!head) return;
    Report(key, wire::JobStarted{.at_ms = ToUnixMillis(Now())});
    if (jobs_ == Jobs::kFinish) {
      exits_.insert(key);
      SendExit(key, wire::JobState::kCompleted, 0);
    }
  }

  void OnToJobd(const node_control::ToJobd& in) {
    const Key key{in.job, in.incarnation};
    if (in.frame.type == wire::ExitAck::kType) Leave(in.job, in.incarnation);
    if (in.frame.type == wire::SignalJob::kType) {
      const auto message = wire::Decode<wire::SignalJob>(in.frame.payload);
      std::lock_guard lock(mu_);
      if (message.ok()) signals_.push_back(message->signal);
    }
    if (in.frame.type == wire::CancelJob::kType && running_.contains(key)) {
      const auto message = wire::Decode<wire::CancelJob>(in.frame.payload);
      if (message.ok()) SendExit(key, message->final_state, 143);
    }
  }

  void SendExit(const Key& key, wire::JobState state, int code) {
    const std::int64_t now = ToUnixMillis(Now());
    Report(key, wire::JobExit{.job = key.first,
                              .incarnation = key.second,
                              .state = state,
                              .exit_code = code,
                              .started_at_ms = now,
                              .ended_at_ms = now,
                              .tasks_total = 1});
  }

  template <class M>
  void Report(const Key& key, const M& message) {
    (void)session_->Send(
        node_control::FromJobd{key.first, key.second, {.type = M::kType, .payload = wire::Encode(message)}});
  }

  void Leave(JobId job, Incarnation incarnation) {
    exits_.erase({job, incarnation});
    if (running_.erase({job, incarnation}) > 0) {
      (void)session_->Send(node_control::JobdGone{job, incarnation, "left", true});
    }
  }

  void Beat() {
    (void)session_->Send(node_control::Heartbeat{.clock_ms = ToUnixMillis(Now()) + clock_ahead_ms});
    loop_->After(Millis(100), [this] {
      if (session_) Beat();
    });
  }

  const std::string name_;
  const Jobs jobs_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ControllerSession> session_;  // loop thread, as the next four
  std::set<Key> seen_;
  std::set<Key> running_;
  std::set<Key> exits_;  // not acknowledged
  std::mutex mu_;
  std::vector<wire::LaunchJob> launches_;
  std::vector<int> signals_;
  Status refusal_;
  int registrations_ = 0;
  std::thread thread_;
};

}  // namespace msa::test
