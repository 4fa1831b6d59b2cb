#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "msa/adapters/grpc/convert_node_internal.h"
#include "msa/adapters/grpc/grpc_server_internal.h"
#include "msa/adapters/grpc/stream_internal.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/base/mutex.h"
#include "msa/v1/node.grpc.pb.h"

namespace msa::node::test {

// Plays the controller for one node daemon: records its reports, sends what a test says. Any thread.
class FakeController : public v1::NodeControlService::CallbackService {
 public:
  explicit FakeController(std::string path);
  ~FakeController() override;

  // The process of the controller goes away and comes back.
  void Start();
  void Stop();
  // Registered.slurm.
  void LetSlurmSchedule() { slurm_ = true; }
  // Registered.keep: all that the node reported, or none of it.
  void KeepNothing() { keep_all_ = false; }

  std::size_t registrations() MSA_EXCLUDES(mu_);
  node_control::RegisterNode registration() MSA_EXCLUDES(mu_);  // the last one
  std::size_t heartbeats() MSA_EXCLUDES(mu_);
  node_control::Heartbeat heartbeat() MSA_EXCLUDES(mu_);  // the last one
  std::vector<node_control::FromJobd> from_jobd() MSA_EXCLUDES(mu_);
  std::vector<node_control::JobdGone> gone() MSA_EXCLUDES(mu_);
  std::vector<wire::Frame> from_namd() MSA_EXCLUDES(mu_);
  std::vector<std::string> namds_gone() MSA_EXCLUDES(mu_);  // their reasons
  std::vector<wire::Frame> from_slurm() MSA_EXCLUDES(mu_);
  bool Got(std::uint16_t type) MSA_EXCLUDES(mu_);  // a FromJobd of this type
  // Forgets recorded messages.
  void Clear() MSA_EXCLUDES(mu_);

  void Send(v1::NodeCommand command) MSA_EXCLUDES(mu_);

 private:
  using Stream = BidiStream<v1::NodeReport, v1::NodeCommand>;
  grpc::ServerBidiReactor<v1::NodeReport, v1::NodeCommand>* Session(grpc::CallbackServerContext*) override;
  void Take(Stream& stream, v1::NodeReport report) MSA_EXCLUDES(mu_);
  void TakeOne(Stream& stream, v1::NodeReport report) MSA_REQUIRES(mu_);

  std::string path_;
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
  std::unique_ptr<GrpcServer> server_;
  std::atomic<bool> keep_all_ = true;
  std::atomic<bool> slurm_ = false;
  Mutex mu_;
  std::weak_ptr<Stream> stream_ MSA_GUARDED_BY(mu_);
  std::vector<node_control::RegisterNode> registrations_ MSA_GUARDED_BY(mu_);
  std::vector<node_control::Heartbeat> heartbeats_ MSA_GUARDED_BY(mu_);
  std::vector<node_control::FromJobd> from_jobd_ MSA_GUARDED_BY(mu_);
  std::vector<node_control::JobdGone> gone_ MSA_GUARDED_BY(mu_);
  std::vector<wire::Frame> from_namd_ MSA_GUARDED_BY(mu_);
  std::vector<std::string> namds_gone_ MSA_GUARDED_BY(mu_);
  std::vector<wire::Frame> from_slurm_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa::node::test
