#include "submit_many_service.h"

#include <optional>
#include <utility>

#include "msa/adapters/grpc/convert_job_internal.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"

#include "secret.h"

namespace msa {
namespace {

// Of one call: submissions that were read and not answered, and answers that the client has not taken. Beyond
// these nothing more is read. 1,024 share one commit well; the bytes are for large scripts.
constexpr std::size_t kMostUnanswered = 1024;
constexpr std::size_t kMostUnansweredBytes = std::size_t{16} << 20;
constexpr std::size_t kReplyHighWater = 64 << 10;
constexpr std::size_t kReplyLowWater = 16 << 10;

using Stream = BidiStream<v1::SubmitRequest, v1::SubmitReply>;

class RefusedCall : public SubmitManyCalls::Reactor {
 public:
  explicit RefusedCall(const Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

Status GoingAway() {
  return Status(
      Code::kUnavailable,
      "the controller is going away; send what was not answered to the next one, with the same tokens");
}

}  // namespace

Result<event::Submit> SubmissionOf(v1::SubmitRequest&& request) {
  MSA_ASSIGN_OR_RETURN(JobSpec spec, JobSpecFromProto(std::move(*request.mutable_spec())));
  MSA_ASSIGN_OR_RETURN(std::string secret, MakeSecret());
  event::Submit out;
  out.token = std::move(*request.mutable_submit_token());
  out.spec = std::move(spec);
  out.secret = std::move(secret);
  return out;
}

void SubmitIntake::Add(event::Submit submit, Shell::ReplyCallback reply) {
  {
    MutexLock lock(mu_);
    gathered_.push_back({std::move(submit), std::move(reply)});
    if (gathered_.size() > 1) return;  // the first one has called already
  }
  edge_.loop.Post([this] { Flush(); });
}

void SubmitIntake::Flush() {
  std::vector<Shell::Submission> all;
  {
    MutexLock lock(mu_);
    all.swap(gathered_);
  }
  edge_.shell.RequestAll(std::move(all));
}

class SubmitManyCalls::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(SubmitIntake& intake, UserIdentity user, std::string user_name)
      : intake_(intake), user_(user), user_name_(std::move(user_name)) {}

  Reactor* Open() {
    stream_ = std::make_shared<Stream>();
    Stream::Base::Hooks hooks;
    hooks.high_water = kReplyHighWater;
    hooks.low_water = kReplyLowWater;
    hooks.on_drained = [self = shared_from_this()] { self->ReadOn(); };
    return stream_->OpenBoth(
        stream_, std::move(hooks),
        [self = shared_from_this()](std::optional<v1::SubmitRequest> in) { self->OnRead(std::move(in)); });
  }

  void End(const Status& why) { stream_->End(ToGrpc(why)); }

 private:
  void OnRead(std::optional<v1::SubmitRequest> in) MSA_EXCLUDES(mu_) {
    const std::size_t size = in ? in->ByteSizeLong() : 0;
    {
      MutexLock lock(mu_);
      reading_ = false;
      unanswered_ += in ? 1 : 0;
      unanswered_bytes_ += size;
      all_read_ = !in;
    }
    if (in) Take(*std::move(in), size);
    ReadOn();
  }

  void Take(v1::SubmitRequest request, std::size_t size) {
    const std::string token = request.submit_token();
    Result<event::Submit> submission = SubmissionOf(std::move(request));
    if (!submission.ok()) return Answer(token, size, submission.status(), JobId(0));
    // One client's jobs have one environment: as one from here on, however many wait.
    if (submission->spec.env == last_env_) submission->spec.env = last_env_;
    last_env_ = submission->spec.env;
    submission->user = user_;
    submission->user_name = user_name_;
    intake_.Add(*std::move(submission),
                [self = this->shared_from_this(), token, size](const Status& status, JobId job) {
                  self->Answer(token, size, status, job);
                  self->ReadOn();
                });
  }

  void Answer(const std::string& token, std::size_t size, const Status& status, JobId job) MSA_EXCLUDES(mu_) {
    v1::SubmitReply reply;
    reply.set_submit_token(token);
    reply.set_job_id(job.value);
    reply.set_code(static_cast<int>(status.code()));
    if (!status.ok()) reply.set_error(status.message());
    stream_->Send(std::move(reply));
    MutexLock lock(mu_);
    unanswered_ -= 1;
    unanswered_bytes_ -= size;
  }

  // Asks for the next submission if there is room for it, or ends the call after the last answer.
  void ReadOn() MSA_EXCLUDES(mu_) {
    bool over = false;
    {
      MutexLock lock(mu_);
      over = all_read_ && unanswered_ == 0;
      if (!over) {
        if (reading_ || all_read_ || unanswered_ >= kMostUnanswered ||
            unanswered_bytes_ >= kMostUnansweredBytes || stream_->queued() >= kReplyHighWater)
          return;
        reading_ = true;
      }
    }
    if (over) return stream_->End(grpc::Status::OK);
    stream_->ReadNext();
  }

  SubmitIntake& intake_;
  const UserIdentity user_;
  const std::string user_name_;
  std::shared_ptr<Stream> stream_;
  SharedStrings last_env_;  // by the reads, one after the other
  Mutex mu_;
  bool reading_ MSA_GUARDED_BY(mu_) = true;  // Open asks for the first
  bool all_read_ MSA_GUARDED_BY(mu_) = false;
  std::size_t unanswered_ MSA_GUARDED_BY(mu_) = 0;
  std::size_t unanswered_bytes_ MSA_GUARDED_BY(mu_) = 0;
};

SubmitManyCalls::Reactor* SubmitManyCalls::Open(const Result<UserIdentity>& caller) {
  if (!caller.ok()) return new RefusedCall(caller.status());
  auto call = std::make_shared<Call>(intake_, *caller, edge_.users.Of(caller->uid));
  {
    MutexLock lock(mu_);
    if (stopped_) return new RefusedCall(GoingAway());
    std::erase_if(calls_, [](const auto& known) { return known.expired(); });
    calls_.push_back(call);
  }
  return call->Open();
}

void SubmitManyCalls::Stop() {
  std::vector<std::weak_ptr<Call>> calls;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    calls.swap(calls_);
  }
  for (const auto& known : calls)
    if (const auto call = known.lock()) call->End(GoingAway());
}

}  // namespace msa
