#include "msa/adapters/grpc/controller_session.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>

#include "msa/adapters/grpc/convert_node_internal.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/mutex.h"
#include "msa/v1/node.grpc.pb.h"

#include "keep_grpc.h"

namespace msa {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kMaxMessageBytes = 16 << 20;

// One connection and its stream. gRPC's channel does not connect again by itself: a broken one is replaced.
class Link : public grpc::ClientBidiReactor<v1::NodeReport, v1::NodeCommand> {
 public:
  struct Hooks {
    std::function<void(v1::NodeCommand)> on_command;  // on gRPC's thread
    std::function<void(Status)> on_done;              // once, on gRPC's thread
  };

  Link(UniqueFd socket, Hooks hooks) : hooks_(std::move(hooks)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetMaxSendMessageSize(kMaxMessageBytes);
    // Small messages now and then: a probe of the bandwidth at each would be two more.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    channel_ = grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
    stub_ = v1::NodeControlService::NewStub(channel_);
  }

  void Open(v1::NodeReport registration) {
    stub_->async()->Session(&context_, this);
    AddHold();  // Send may come from the loop at any time until the link is closed
    StartRead(&in_);
    StartCall();
    std::vector<v1::NodeReport> first;
    first.push_back(std::move(registration));
    Send(std::move(first));
  }

  void Send(std::vector<v1::NodeReport> reports) MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closed_) return;
    for (v1::NodeReport& report : reports) {
      const std::size_t size = report.ByteSizeLong();
      queued_ += size;
      queue_.emplace_back(std::move(report), size);
    }
    Write();
  }

  std::size_t queued() const MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return queued_;
  }

  // The next command; once after each.
  void ReadNext() MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (!closed_) StartRead(&in_);
  }

  // Ends the call; on_done follows, whatever the controller does.
  void Close() MSA_EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      if (std::exchange(closed_, true)) return;
    }
    // A read or write may be under way on a controller that does not answer: the call must not wait for it.
    context_.TryCancel();
    RemoveHold();
  }

  void WaitDone() MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    while (!done_) done_changed_.Wait(mu_);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      hooks_.on_command(std::move(in_));
    } else {
      Close();
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Close();
      return;
    }
    MutexLock lock(mu_);
    writing_ = false;
    queued_ -= queue_.front().second;
    queue_.pop_front();
    if (!closed_) Write();
  }

  void OnDone(const grpc::Status& status) override {
    hooks_.on_done(status.ok() ? Status(Code::kUnavailable, "the controller ended the session")
                               : FromGrpc(status));
    MutexLock lock(mu_);
    done_ = true;
    done_changed_.NotifyAll();
  }

 private:
  void Write() MSA_REQUIRES(mu_) {
    if (writing_ || queue_.empty()) return;
    writing_ = true;
    Gather(queue_);
    StartWrite(&queue_.front().first);
  }

  const Hooks hooks_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::NodeControlService::Stub> stub_;
  grpc::ClientContext context_;
  v1::NodeCommand in_;
  mutable Mutex mu_;
  CondVar done_changed_;
  std::deque<std::pair<v1::NodeReport, std::size_t>> queue_
      MSA_GUARDED_BY(mu_);  // the first one is being written
  std::size_t queued_ MSA_GUARDED_BY(mu_) = 0;
  bool writing_ MSA_GUARDED_BY(mu_) = false;
  bool closed_ MSA_GUARDED_BY(mu_) = false;
  bool done_ MSA_GUARDED_BY(mu_) = false;
};

}  // namespace

class ControllerSession::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(EventLoop& loop, Options options, Handlers handlers)
      : loop_(loop),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        backoff_(options_.min_backoff) {}

  void Connect() {
    timer_.reset();
    if (!options_.connect) return Open(ConnectUnix(Path()));
    options_.connect([weak = weak_from_this()](Result<UniqueFd> socket) {
      if (const auto self = weak.lock(); self && !self->stopped_) self->Open(std::move(socket));
    });
  }

  void Open(Result<UniqueFd> socket) {
    if (!socket.ok()) return Retry(socket.status());
    attempt_ += 1;
    registered_ = false;
    auto self = shared_from_this();
    const std::uint64_t attempt = attempt_;
    link_ = std::make_shared<Link>(
        *std::move(socket),
        Link::Hooks{.on_command =
                        [self, attempt](v1::NodeCommand command) {
                          self->loop_.Post([self, attempt, command = std::move(command)]() mutable {
                            self->OnCommand(attempt, std::move(command));
                          });
                        },
                    .on_done =
                        [self, attempt](Status status) {
                          self->loop_.Post(
                              [self, attempt, status = std::move(status)] { self->OnDone(attempt, status); });
                        }});
    answer_timer_ = loop_.After(options_.answer_timeout, [self] {
      self->answer_timer_.reset();
      self->late_ = true;
      self->link_->Close();
    });
    link_->Open(node_control::ToProto(handlers_.make_registration()));
  }

  void Stop() {
    stopped_ = true;
    if (timer_) loop_.Cancel(*timer_);
    if (answer_timer_) loop_.Cancel(*answer_timer_);
    DropLater();
    if (link_) {
      link_->Close();
      link_->WaitDone();
      link_.reset();
    }
  }

  bool connected() const noexcept { return registered_; }
  std::size_t queued() const noexcept { return link_ ? link_->queued() : 0; }

  Status Send(v1::NodeReport report, Urgency urgency = Urgency::kNow) {
    if (!registered_) return Status(Code::kUnavailable, "not connected to the controller");
    later_.push_back(std::move(report));
    if (urgency == Urgency::kNow) {
      SendAll();
    } else if (!later_timer_) {
      later_timer_ = loop_.After(options_.later, [self = shared_from_this()] { self->SendAll(); });
    }
    return Status::Ok();
  }

 private:
  std::string Path() const {
    return options_.address.starts_with(kUnixPrefix) ? options_.address.substr(kUnixPrefix.size())
                                                     : options_.address;
  }

  void SendAll() {
    std::vector<v1::NodeReport> reports = std::exchange(later_, {});
    DropLater();
    if (!reports.empty() && registered_) link_->Send(std::move(reports));
  }

  void DropLater() {
    if (const auto timer = std::exchange(later_timer_, std::nullopt)) loop_.Cancel(*timer);
    later_.clear();
  }

  void OnCommand(std::uint64_t attempt, v1::NodeCommand command) {
    if (stopped_ || attempt != attempt_ || !link_) return;
    const std::shared_ptr<Link> link = link_;  // a handler may destroy the session
    Status status;
    for (v1::NodeCommand& one : Scatter(std::move(command)))
      if (status.ok() && !stopped_) status = Dispatch(std::move(one));
    if (!status.ok()) {
      link->Close();
      return;
    }
    link->ReadNext();
  }

  Status Dispatch(v1::NodeCommand command) {
    if (!registered_ && command.what_case() != v1::NodeCommand::kRegistered) {
      return Status(Code::kInternal, "the controller sent a command before it accepted the registration");
    }
    switch (command.what_case()) {
      case v1::NodeCommand::kRegistered:
        if (answer_timer_) loop_.Cancel(*answer_timer_);
        answer_timer_.reset();
        registered_ = true;
        backoff_ = options_.min_backoff;
        handlers_.on_registered(node_control::FromProto(command.registered()));
        return Status::Ok();
      case v1::NodeCommand::kStartJob: {
        MSA_ASSIGN_OR_RETURN(auto start, node_control::FromProto(std::move(*command.mutable_start_job())));
        handlers_.on_start_job(std::move(start));
        return Status::Ok();
      }
      case v1::NodeCommand::kToJobd: {
        MSA_ASSIGN_OR_RETURN(auto to, node_control::FromProto(std::move(*command.mutable_to_jobd())));
        handlers_.on_to_jobd(std::move(to));
        return Status::Ok();
      }
      case v1::NodeCommand::kQuitJob:
        handlers_.on_quit_job(node_control::FromProto(command.quit_job()));
        return Status::Ok();
      case v1::NodeCommand::kToNamd: {
        MSA_ASSIGN_OR_RETURN(auto to, node_control::FromProto(std::move(*command.mutable_to_namd())));
        if (handlers_.on_to_namd) handlers_.on_to_namd(std::move(to));
        return Status::Ok();
      }
      case v1::NodeCommand::kToSlurm: {
        MSA_ASSIGN_OR_RETURN(auto to, node_control::FromProto(std::move(*command.mutable_to_slurm())));
        if (handlers_.on_to_slurm) handlers_.on_to_slurm(std::move(to));
        return Status::Ok();
      }
      case v1::NodeCommand::WHAT_NOT_SET:
        return Status::Ok();  // of a newer controller
    }
    return Status::Ok();
  }

  void OnDone(std::uint64_t attempt, Status status) {
    if (stopped_ || attempt != attempt_) return;
    if (answer_timer_) loop_.Cancel(*answer_timer_);
    answer_timer_.reset();
    DropLater();
    link_->WaitDone();
    link_.reset();
    if (std::exchange(late_, false)) {
      status = Error(Code::kDeadlineExceeded, "the controller at '{}' did not answer within {} ms",
                     options_.address, options_.answer_timeout.count());
    }
    if (std::exchange(registered_, false)) {
      // Soon again: a controller that is restarted by its supervisor is back within milliseconds.
      Schedule(options_.min_backoff);
      handlers_.on_disconnected(status);
    } else {
      Retry(status);
    }
  }

  void Retry(const Status& why) {
    const Millis delay = backoff_;
    backoff_ = std::min(backoff_ * 2, options_.max_backoff);
    Schedule(delay);
    if (handlers_.on_refused) handlers_.on_refused(why, delay);
  }

  void Schedule(Millis delay) {
    timer_ = loop_.After(delay, [self = shared_from_this()] { self->Connect(); });
  }

  EventLoop& loop_;
  const Options options_;
  const Handlers handlers_;
  Millis backoff_;
  bool stopped_ = false;
  bool registered_ = false;
  bool late_ = false;
  std::uint64_t attempt_ = 0;
  std::shared_ptr<Link> link_;
  std::optional<TimerId> timer_;
  std::optional<TimerId> answer_timer_;
  std::vector<v1::NodeReport> later_;  // in order, before what comes next
  std::optional<TimerId> later_timer_;
};

ControllerSession::ControllerSession(EventLoop& loop, Options options, Handlers handlers)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(handlers))) {}
ControllerSession::~ControllerSession() { impl_->Stop(); }
void ControllerSession::Start() {
  KeepGrpc();
  impl_->Connect();
}
bool ControllerSession::connected() const noexcept { return impl_->connected(); }
std::size_t ControllerSession::queued() const noexcept { return impl_->queued(); }
Status ControllerSession::Send(const node_control::Heartbeat& report) {
  return impl_->Send(node_control::ToProto(report));
}
Status ControllerSession::Send(node_control::FromJobd report, Urgency urgency) {
  return impl_->Send(node_control::ToProto(std::move(report)), urgency);
}
Status ControllerSession::Send(const node_control::JobdGone& report) {
  return impl_->Send(node_control::ToProto(report));
}
Status ControllerSession::Send(node_control::FromNamd report) {
  return impl_->Send(node_control::ToProto(std::move(report)));
}
Status ControllerSession::Send(const node_control::NamdGone& report) {
  return impl_->Send(node_control::ToProto(report));
}
Status ControllerSession::Send(node_control::FromSlurm report, Urgency urgency) {
  return impl_->Send(node_control::ToProto(std::move(report)), urgency);
}

}  // namespace msa
