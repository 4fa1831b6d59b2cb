#pragma once

#include <memory>
#include <vector>

#include <grpcpp/support/server_callback.h>

#include "msa/base/mutex.h"
#include "msa/v1/job.pb.h"

#include "services.h"

namespace msa {

// Checks the types and makes the job's secret. kInvalidArgument; kInternal: no random bytes.
Result<event::Submit> SubmissionOf(v1::SubmitRequest&& request);

// Where submissions of all clients wait for the loop's thread. Those that come while it is busy, with the
// commit of those before them above all, share the next commit.
class SubmitIntake {
 public:
  explicit SubmitIntake(RpcEdge& edge) : edge_(edge) {}
  // `reply` on the loop's thread, when the job is on disk or refused. Any thread.
  void Add(event::Submit submit, Shell::ReplyCallback reply) MSA_EXCLUDES(mu_);

 private:
  void Flush() MSA_EXCLUDES(mu_);
  RpcEdge& edge_;
  Mutex mu_;
  std::vector<Shell::Submission> gathered_ MSA_GUARDED_BY(mu_);
};

// The SubmitMany calls under way. Any thread.
class SubmitManyCalls {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::SubmitRequest, v1::SubmitReply>;
  SubmitManyCalls(RpcEdge& edge, SubmitIntake& intake) : edge_(edge), intake_(intake) {}
  Reactor* Open(const Result<UserIdentity>& caller) MSA_EXCLUDES(mu_);
  // Ends them with UNAVAILABLE: what was not answered may be sent again to the next controller.
  void Stop() MSA_EXCLUDES(mu_);

 private:
  class Call;
  RpcEdge& edge_;
  SubmitIntake& intake_;
  Mutex mu_;
  bool stopped_ MSA_GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<Call>> calls_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa
