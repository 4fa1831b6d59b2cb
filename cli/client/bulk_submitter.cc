#include "client/bulk_submitter.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>

#include <grpcpp/client_context.h>

#include "msa/adapters/grpc/convert_spec_internal.h"
#include "msa/v1/job.grpc.pb.h"

#include "client/channel_internal.h"

namespace msa::cli {
namespace {

// Connections in a row that bring no answer.
constexpr int kFruitlessRounds = 10;
// So long a connection may last: as `run` waits for its first answer, and 20 ms a job, of which a thousand a
// second are taken otherwise.
constexpr Millis kPatience{10'000};
constexpr Millis kPatiencePerJob{20};

class BulkSubmitter {
 public:
  BulkSubmitter(const std::vector<Submission>& submissions, const SubmitAnswer& answer)
      : submissions_(submissions), answer_(answer), sent_(submissions.size()), answered_(submissions.size()) {
    for (std::size_t i = 0; i < submissions.size(); ++i) index_.emplace(submissions[i].token, i);
  }

  Status Run(const Endpoint& endpoint) {
    Status status;
    for (int fruitless = 0; fruitless < kFruitlessRounds; ++fruitless) {
      const std::size_t before = answers_;
      MSA_ASSIGN_OR_RETURN(UniqueFd socket, ConnectController(endpoint));
      status = Round(std::move(socket));
      if (!status.ok() && status.code() != Code::kUnavailable) return status;
      if (NextToSend(0) == submissions_.size()) return Status::Ok();
      if (timed_out_ && answers_ == before) return status;
      if (answers_ > before) fruitless = -1;
    }
    return status.ok() ? Status(Code::kUnavailable, "the controller takes the jobs and does not answer")
                       : status;
  }

 private:
  using Stream = grpc::ClientReaderWriter<v1::SubmitRequest, v1::SubmitReply>;

  Status Round(UniqueFd socket) {
    const auto stub = v1::JobService::NewStub(OpenChannel(std::move(socket)));
    std::vector<std::size_t> due;
    for (std::size_t i = NextToSend(0); i < submissions_.size(); i = NextToSend(i + 1)) due.push_back(i);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience +
                         kPatiencePerJob * static_cast<std::int64_t>(due.size()));
    const std::unique_ptr<Stream> stream = stub->SubmitMany(&context);
    std::thread writer([this, &stream, &due] { Write(*stream, due); });
    v1::SubmitReply reply;
    while (stream->Read(&reply)) Take(reply);
    writer.join();
    const grpc::Status status = stream->Finish();
    timed_out_ = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    return ToStatus(status, "the controller");
  }

  // The first from `index` on that is to be sent (again).
  std::size_t NextToSend(std::size_t index) const {
    while (index < submissions_.size() && (answered_[index] || (refused_ && !sent_[index]))) ++index;
    return index;
  }

  void Write(Stream& stream, const std::vector<std::size_t>& due) {
    for (const std::size_t i : due) {
      if (refused_ && !sent_[i]) continue;
      v1::SubmitRequest request;
      ToProto(submissions_[i].spec, *request.mutable_spec());
      request.set_submit_token(submissions_[i].token);
      sent_[i] = 1;
      if (!stream.Write(request)) return;
    }
    stream.WritesDone();
  }

  void Take(const v1::SubmitReply& reply) {
    const auto known = index_.find(reply.submit_token());
    const auto code = static_cast<Code>(reply.code());
    // A controller that is going away: the next one is asked.
    if (known == index_.end() || answered_[known->second] || code == Code::kUnavailable) return;
    answered_[known->second] = true;
    ++answers_;
    if (code == Code::kOk) return answer_(known->second, JobId(reply.job_id()));
    refused_ = true;
    answer_(known->second, Status(code, reply.error()));
  }

  const std::vector<Submission>& submissions_;
  const SubmitAnswer& answer_;
  std::unordered_map<std::string_view, std::size_t> index_;  // by token
  std::vector<char> sent_;                                   // the writer's while it runs
  std::vector<bool> answered_;
  std::size_t answers_ = 0;
  bool timed_out_ = false;  // the last connection
  std::atomic<bool> refused_ = false;
};

}  // namespace

Status SubmitAll(const Endpoint& endpoint, const std::vector<Submission>& submissions,
                 const SubmitAnswer& answer) {
  if (submissions.empty()) return Status::Ok();
  return BulkSubmitter(submissions, answer).Run(endpoint);
}

}  // namespace msa::cli
