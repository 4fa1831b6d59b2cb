#include "client/streams.h"

#include <deque>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include "msa/adapters/grpc/convert_spec_internal.h"
#include "msa/base/mutex.h"
#include "msa/v1/job.grpc.pb.h"
#include "msa/v1/node.grpc.pb.h"

#include "client/channel_internal.h"
#include "client/convert.h"

namespace msa::cli {
namespace {

constexpr std::string_view kController = "the controller";
constexpr std::string_view kNodeDaemon = "the node daemon";
// A cancel that the controller does not answer within this is tried again by its caller.
constexpr std::chrono::seconds kCancelPatience{10};

struct CancelCall {
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  v1::CancelJobReply reply;
};

}  // namespace

// Keeps itself until gRPC is done with the stream (self_).
class ControllerLink::Impl : public grpc::ClientReadReactor<v1::JobEvent>,
                             public std::enable_shared_from_this<Impl> {
 public:
  Impl(EventLoop& loop, UniqueFd socket, Handlers handlers)
      : loop_(loop),
        handlers_(std::move(handlers)),
        stub_(v1::JobService::NewStub(OpenChannel(std::move(socket)))) {}

  void Run(const JobSpec& spec, const std::string& token) {
    ToProto(spec, *submit_.mutable_spec());
    submit_.set_submit_token(token);
    stub_->async()->Run(&context_, &submit_, this);
    Begin();
  }

  void Watch(JobId job) {
    watch_.set_job_id(job.value);
    stub_->async()->Watch(&context_, &watch_, this);
    Begin();
  }

  void Cancel(JobId job, const std::string& reason, bool now, std::function<void(Status)> done) {
    auto call = std::make_shared<CancelCall>();
    call->request.set_reason(reason);
    call->request.set_now(now);
    Send(job, std::move(call), std::move(done));
  }

  void GiveBack(JobId job, int exit_code, std::function<void(Status)> done) {
    auto call = std::make_shared<CancelCall>();
    call->request.set_done(true);
    call->request.set_exit_code(exit_code);
    Send(job, std::move(call), std::move(done));
  }

  void Send(JobId job, std::shared_ptr<CancelCall> call, std::function<void(Status)> done) {
    call->request.set_job_id(job.value);
    call->context.set_deadline(std::chrono::system_clock::now() + kCancelPatience);
    stub_->async()->CancelJob(
        &call->context, &call->request, &call->reply,
        [call, self = shared_from_this(), done = std::move(done)](const grpc::Status& status) {
          self->loop_.Post([self, done, status] {
            if (!self->closed_) done(ToStatus(status, kController));
          });
        });
  }

  void Close() {
    closed_ = true;
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone follows
    loop_.Post([self = shared_from_this(), event = FromProto(event_)]() mutable {
      if (!self->closed_) self->handlers_.on_event(std::move(event));
    });
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    loop_.Post([self = std::move(self_), end = ToStatus(status, kController)] {
      if (!self->closed_) self->handlers_.on_end(end);
    });
  }

 private:
  void Begin() {
    self_ = shared_from_this();
    StartRead(&event_);
    StartCall();
  }

  EventLoop& loop_;
  const Handlers handlers_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  grpc::ClientContext context_;
  v1::SubmitRequest submit_;
  v1::WatchRequest watch_;
  v1::JobEvent event_;
  bool closed_ = false;  // loop thread
  std::shared_ptr<Impl> self_;
};

ControllerLink::ControllerLink(EventLoop& loop, UniqueFd socket, Handlers handlers)
    : impl_(std::make_shared<Impl>(loop, std::move(socket), std::move(handlers))) {}
ControllerLink::~ControllerLink() { impl_->Close(); }
void ControllerLink::Run(const JobSpec& spec, const std::string& token) { impl_->Run(spec, token); }
void ControllerLink::Watch(JobId job) { impl_->Watch(job); }
void ControllerLink::Cancel(JobId job, const std::string& reason, bool now,
                            std::function<void(Status)> done) {
  impl_->Cancel(job, reason, now, std::move(done));
}
void ControllerLink::GiveBack(JobId job, int exit_code, std::function<void(Status)> done) {
  impl_->GiveBack(job, exit_code, std::move(done));
}

class AttachLink::Impl : public grpc::ClientBidiReactor<v1::AttachFrame, v1::AttachFrame>,
                         public std::enable_shared_from_this<Impl> {
 public:
  Impl(EventLoop& loop, UniqueFd socket, Handlers handlers)
      : loop_(loop),
        handlers_(std::move(handlers)),
        stub_(v1::NodeService::NewStub(OpenChannel(std::move(socket)))) {}

  void Open(JobId job, Incarnation incarnation, wire::Frame frame) {
    self_ = shared_from_this();
    stub_->async()->Attach(&context_, this);
    AddHold();  // Send comes from the loop until Close
    StartRead(&in_);
    StartCall();
    v1::AttachFrame first;
    first.set_job_id(job.value);
    first.set_incarnation(incarnation.value);
    first.mutable_frame()->set_type(frame.type);
    first.mutable_frame()->set_payload(std::move(frame.payload));
    Queue(std::move(first));
  }

  void SendFrame(std::uint16_t type, std::string payload) {
    v1::AttachFrame out;
    out.mutable_frame()->set_type(type);
    out.mutable_frame()->set_payload(std::move(payload));
    Queue(std::move(out));
  }

  bool sent() const MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return queue_.empty();
  }

  void Pause() MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    paused_ = true;
  }

  void Resume() MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    paused_ = false;
    if (std::exchange(read_due_, false) && !over_) StartRead(&in_);
  }

  void Close() {
    closed_ = true;
    context_.TryCancel();
    Release();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Release();
      return;
    }
    wire::Frame frame{static_cast<std::uint16_t>(in_.frame().type()), 0, 0,
                      std::move(*in_.mutable_frame()->mutable_payload())};
    loop_.Post([self = shared_from_this(), frame = std::move(frame)]() mutable {
      if (!self->closed_) self->handlers_.on_frame(std::move(frame));
    });
    MutexLock lock(mu_);
    if (paused_) {
      read_due_ = true;
    } else if (!over_) {
      StartRead(&in_);
    }
  }

  void OnWriteDone(bool ok) override {
    bool all = false;
    {
      MutexLock lock(mu_);
      queue_.pop_front();
      if (!ok) queue_.clear();
      all = queue_.empty();
      if (!all && !over_) StartWrite(&queue_.front());
    }
    if (!ok) return Release();
    if (!all) return;
    loop_.Post([self = shared_from_this()] {
      if (!self->closed_ && self->handlers_.on_sent) self->handlers_.on_sent();
    });
  }

  void OnDone(const grpc::Status& status) override {
    loop_.Post([self = std::move(self_), end = ToStatus(status, kNodeDaemon)] {
      if (!self->closed_) self->handlers_.on_end(end);
    });
  }

 private:
  void Queue(v1::AttachFrame frame) MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (over_) return;
    queue_.push_back(std::move(frame));
    if (queue_.size() == 1) StartWrite(&queue_.front());
  }

  // No operation is begun by the loop any more: gRPC may end the call.
  void Release() MSA_EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      if (std::exchange(over_, true)) return;
    }
    RemoveHold();
  }

  EventLoop& loop_;
  const Handlers handlers_;
  std::unique_ptr<v1::NodeService::Stub> stub_;
  grpc::ClientContext context_;
  v1::AttachFrame in_;
  bool closed_ = false;  // loop thread
  mutable Mutex mu_;
  std::deque<v1::AttachFrame> queue_ MSA_GUARDED_BY(mu_);  // the first one is being written
  bool over_ MSA_GUARDED_BY(mu_) = false;
  bool paused_ MSA_GUARDED_BY(mu_) = false;
  bool read_due_ MSA_GUARDED_BY(mu_) = false;
  std::shared_ptr<Impl> self_;
};

AttachLink::AttachLink(EventLoop& loop, UniqueFd socket, Handlers handlers)
    : impl_(std::make_shared<Impl>(loop, std::move(socket), std::move(handlers))) {}
AttachLink::~AttachLink() { impl_->Close(); }
void AttachLink::OpenWith(JobId job, Incarnation incarnation, wire::Frame first) {
  impl_->Open(job, incarnation, std::move(first));
}
void AttachLink::SendFrame(std::uint16_t type, std::string payload) {
  impl_->SendFrame(type, std::move(payload));
}
bool AttachLink::sent() const { return impl_->sent(); }
void AttachLink::PauseReading() { impl_->Pause(); }
void AttachLink::ResumeReading() { impl_->Resume(); }

}  // namespace msa::cli
