#include <set>
#include <utility>

#include <grpcpp/server_context.h>

#include "msa/adapters/grpc/convert_job_internal.h"
#include "msa/adapters/grpc/status_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/adapters/grpc/unary_internal.h"
#include "msa/v1/job.grpc.pb.h"

#include "services.h"
#include "submit_many_service.h"

namespace msa {
namespace {

using EventReactor = grpc::ServerWriteReactor<v1::JobEvent>;
using EventStream = SendingStream<EventReactor, v1::JobEvent>;

// Events that a slow client has not taken: beyond the first mark it is told only the newest state, once it is
// below the second.
constexpr std::size_t kEventHighWater = 64 << 10;
constexpr std::size_t kEventLowWater = 16 << 10;

// Refuses a stream at once.
class Refusal : public EventReactor {
 public:
  explicit Refusal(const Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

// A Run or Watch stream. Loop thread, but for `stream`.
struct Viewer {
  std::shared_ptr<EventStream> stream;
  bool owner = false;  // of a Run
  bool gone = false;
  bool behind = false;  // an event was left out
  JobId job;            // 0: not known yet
  Shell::WatchId watch = 0;
};

class JobService : public RpcService, public v1::JobService::CallbackService {
 public:
  explicit JobService(RpcEdge& edge) : edge_(edge), intake_(edge), many_(edge, intake_) {}
  grpc::Service* service() override { return this; }

  void Stop() override {
    stopped_ = true;
    many_.Stop();
    for (const auto& viewer : std::exchange(viewers_, {})) {
      viewer->stream->End(
          ToGrpc(Status(Code::kUnavailable, "the controller is going away; the job goes on, connect again")));
    }
  }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override {
    const Result<UserIdentity> caller = edge_.caller(*context);
    if (!caller.ok()) return Refuse(context, caller.status());
    // gRPC keeps its own request until the call ends.
    Result<event::Submit> submission = SubmissionOf(v1::SubmitRequest(*request));
    if (!submission.ok()) return Refuse(context, submission.status());
    submission->user = *caller;
    submission->user_name = edge_.users.Of(caller->uid);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    intake_.Add(*std::move(submission), [reply, call = UnaryCall(reactor)](const Status& status, JobId job) {
      reply->set_job_id(job.value);
      call.Finish(status);
    });
    return reactor;
  }

  SubmitManyCalls::Reactor* SubmitMany(grpc::CallbackServerContext* context) override {
    return many_.Open(edge_.caller(*context));
  }

  EventReactor* Run(grpc::CallbackServerContext* context, const v1::SubmitRequest* request) override {
    const Result<UserIdentity> caller = edge_.caller(*context);
    if (!caller.ok()) return new Refusal(caller.status());
    Result<event::Submit> submission = SubmissionOf(v1::SubmitRequest(*request));
    if (!submission.ok()) return new Refusal(submission.status());
    submission->user = *caller;
    submission->user_name = edge_.users.Of(caller->uid);
    submission->interactive = true;
    auto viewer = std::make_shared<Viewer>();
    viewer->owner = true;
    return Open(viewer, [this, viewer, submission = *std::move(submission)]() mutable {
      edge_.shell.Request(std::move(submission), [this, viewer](const Status& status, JobId job) {
        Submitted(viewer, status, job);
      });
    });
  }

  EventReactor* Watch(grpc::CallbackServerContext* context, const v1::WatchRequest* request) override {
    const Result<UserIdentity> caller = edge_.caller(*context);
    if (!caller.ok()) return new Refusal(caller.status());
    auto viewer = std::make_shared<Viewer>();
    return Open(viewer, [this, viewer, user = *caller, job = JobId(request->job_id())] {
      const Status access = edge_.shell.controller().CheckAccess(job, user);
      if (access.ok()) {
        StartWatching(viewer, job);
      } else {
        viewer->stream->End(ToGrpc(access));
      }
    });
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity&, UnaryCall call) {
                       const Result<JobFilter> filter = FilterFromProto(*request);
                       const JobDetail detail =
                           request->namespaces() ? JobDetail::kNamespaces : JobDetail::kListed;
                       if (filter.ok()) {
                         for (const JobView& job : edge_.shell.controller().ListJobs(*filter)) {
                           ToProto(job, detail, *reply->add_jobs());
                         }
                       }
                       call.Finish(filter.status());
                     });
  }

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
                                   v1::Job* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity& caller, UnaryCall call) {
                       const JobId job(request->job_id());
                       const Status access = edge_.shell.controller().CheckAccess(job, caller);
                       call.Finish(access.ok() ? Describe(job, JobDetail::kFull, *reply) : access);
                     });
  }

  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobReply* reply) override {
    return RunOnLoop(
        context, edge_.loop, edge_.caller(*context),
        [this, request, reply](const UserIdentity& caller, UnaryCall call) {
          const JobId job(request->job_id());
          edge_.shell.Request(
              event::Cancel{.caller = caller,
                            .job = job,
                            .reason = request->reason(),
                            .now = request->now(),
                            .done = request->done(),
                            .exit_code = request->exit_code()},
              [this, job, reply, call](const Status& status, JobId) {
                call.Finish(status.ok() ? Describe(job, JobDetail::kListed, *reply->mutable_job()) : status);
              });
        });
  }

  grpc::ServerUnaryReactor* SignalJob(grpc::CallbackServerContext* context,
                                      const v1::SignalJobRequest* request, v1::SignalJobReply*) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request](const UserIdentity& caller, UnaryCall call) {
                       edge_.shell.Request(event::SignalJob{.caller = caller,
                                                            .job = JobId(request->job_id()),
                                                            .signal = request->signal()},
                                           [call](const Status& status, JobId) { call.Finish(status); });
                     });
  }

  grpc::ServerUnaryReactor* ListGrants(grpc::CallbackServerContext* context,
                                       const v1::ListGrantsRequest* request,
                                       v1::ListGrantsReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity&, UnaryCall call) {
                       const Result<GrantFilter> filter = FilterFromProto(*request);
                       call.Finish(filter.ok() ? AddGrants(*filter, *reply) : filter.status());
                     });
  }

  grpc::ServerUnaryReactor* ReleaseGrant(grpc::CallbackServerContext* context,
                                         const v1::ReleaseGrantRequest* request,
                                         v1::ReleaseGrantReply* reply) override {
    return RunOnLoop(context, edge_.loop, edge_.caller(*context),
                     [this, request, reply](const UserIdentity& caller, UnaryCall call) {
                       const GrantId grant(request->grant_id());
                       edge_.shell.Request(
                           event::ReleaseGrant{.caller = caller, .grant = grant, .force = request->force()},
                           [this, grant, reply, call](const Status& status, JobId) {
                             call.Finish(status.ok() ? Describe(grant, *reply->mutable_grant()) : status);
                           });
                     });
  }

 private:
  static grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const Status& why) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(why));
    return reactor;
  }

  Status Describe(JobId job, JobDetail detail, v1::Job& out) const {
    MSA_ASSIGN_OR_RETURN(const JobView view, edge_.shell.controller().GetJob(job));
    ToProto(view, detail, out);
    return Status::Ok();
  }

  Status AddGrants(const GrantFilter& filter, v1::ListGrantsReply& out) const {
    MSA_ASSIGN_OR_RETURN(const std::vector<GrantView> grants, edge_.shell.controller().ListGrants(filter));
    for (const GrantView& grant : grants) ToProto(grant, *out.add_grants());
    return Status::Ok();
  }

  Status Describe(GrantId grant, v1::Grant& out) const {
    MSA_ASSIGN_OR_RETURN(const std::vector<GrantView> grants,
                         edge_.shell.controller().ListGrants({.ids = {grant}}));
    ToProto(grants.at(0), out);
    return Status::Ok();
  }

  // `begin` runs on the loop.
  template <class Begin>
  EventReactor* Open(const std::shared_ptr<Viewer>& viewer, Begin begin) {
    viewer->stream = std::make_shared<EventStream>();
    EventStream::Hooks hooks;
    hooks.high_water = kEventHighWater;
    hooks.low_water = kEventLowWater;
    hooks.on_drained = [this, viewer] { edge_.loop.Post([this, viewer] { CatchUp(*viewer); }); };
    hooks.on_gone = [this, viewer] { edge_.loop.Post([this, viewer] { Gone(viewer); }); };
    EventReactor* const reactor = viewer->stream->Open(viewer->stream, std::move(hooks));
    edge_.loop.Post([this, viewer, begin = std::move(begin)]() mutable {
      if (stopped_) {
        viewer->stream->End(ToGrpc(Status(Code::kUnavailable, "the controller is going away; try again")));
        return;
      }
      viewers_.insert(viewer);
      begin();
    });
    return reactor;
  }

  void Submitted(const std::shared_ptr<Viewer>& viewer, const Status& status, JobId job) {
    if (!status.ok()) {
      viewer->stream->End(ToGrpc(status));
      return;
    }
    viewer->job = job;
    owners_[job] += 1;
    edge_.shell.Handle(event::OwnerAttached{job});
    if (viewer->gone) {
      LoseOwner(job);
    } else {
      StartWatching(viewer, job);
    }
  }

  void StartWatching(const std::shared_ptr<Viewer>& viewer, JobId job) {
    viewer->job = job;
    const Result<Shell::WatchId> watch =
        edge_.shell.Watch(job, [this, viewer](const JobView& view) { Tell(*viewer, view); });
    if (watch.ok()) {
      viewer->watch = *watch;
    } else {
      viewer->stream->End(ToGrpc(watch.status()));
    }
  }

  void Tell(Viewer& viewer, const JobView& view) {
    const bool final = wire::IsFinal(view.record->state);
    if (!final && viewer.stream->queued() >= kEventHighWater) {
      viewer.behind = true;
      return;
    }
    viewer.behind = false;
    viewer.stream->Send(EventOf(view));
    // Ok, or why the waiter is told an error: --immediate ran out.
    if (final) viewer.stream->End(ToGrpc(Status(view.record->end_code, view.reason)));
  }

  void CatchUp(Viewer& viewer) {
    if (viewer.gone || !viewer.behind) return;
    const Result<JobView> view = edge_.shell.controller().GetJob(viewer.job);
    if (view.ok()) Tell(viewer, *view);
  }

  void Gone(const std::shared_ptr<Viewer>& viewer) {
    viewer->gone = true;
    viewers_.erase(viewer);
    edge_.shell.Unwatch(viewer->watch);
    if (viewer->owner && viewer->job != JobId(0)) LoseOwner(viewer->job);
  }

  // A client that connected again may be there before its old stream is found broken.
  void LoseOwner(JobId job) {
    const auto it = owners_.find(job);
    if (--it->second > 0) return;
    owners_.erase(it);
    edge_.shell.Handle(event::OwnerLost{job});
  }

  RpcEdge& edge_;
  SubmitIntake intake_;
  SubmitManyCalls many_;
  // Loop thread.
  bool stopped_ = false;
  std::set<std::shared_ptr<Viewer>> viewers_;
  std::map<JobId, int> owners_;
};

}  // namespace

std::unique_ptr<RpcService> MakeJobService(RpcEdge& edge) { return std::make_unique<JobService>(edge); }

}  // namespace msa
