#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msa/base/status.h"

#include "client/endpoint.h"
#include "client/types.h"

namespace msa::cli {

// Calls to the controller that are answered at once. Each blocks for at most `timeout` (kDeadlineExceeded)
// and fails with the controller's own errors. kUnavailable: it went away during the call. One thread.
class SystemClient {
 public:
  // Errors as ConnectController.
  static Result<std::unique_ptr<SystemClient>> Connect(const Endpoint& endpoint,
                                                       Millis timeout = Millis(30'000));
  // As Connect, without waiting for a controller that is just being restarted.
  static Result<std::unique_ptr<SystemClient>> TryConnect(const Endpoint& endpoint, Millis timeout);
  ~SystemClient();
  SystemClient(const SystemClient&) = delete;
  SystemClient& operator=(const SystemClient&) = delete;

  Result<SystemInfo> GetStatus();
  Result<std::vector<ModuleInfo>> ListModules();
  Result<std::vector<NodeInfo>> ListNodes(const std::string& module, const std::vector<std::string>& names);
  Result<std::vector<NodeInfo>> DrainNodes(const std::vector<std::string>& names, const std::string& reason);
  Result<std::vector<NodeInfo>> ResumeNodes(const std::vector<std::string>& names);
  Result<std::vector<JobInfo>> ListJobs(const JobQuery& query);
  Result<JobInfo> GetJob(JobId job);
  struct CancelOptions {
    std::string reason;
    bool now = false;  // no grace between SIGTERM and SIGKILL
  };
  Result<JobInfo> CancelJob(JobId job, const CancelOptions& options);
  Status SignalJob(JobId job, int signal);
  Result<std::vector<GrantInfo>> ListGrants(const GrantQuery& query);
  // As it stands then: one whose namespaces are being ended is held until they have.
  enum class InUse { kRefuse, kEndNamespaces };
  Result<GrantInfo> ReleaseGrant(std::uint64_t grant, InUse in_use);
  // The same token submits once, however often it is sent.
  Result<JobId> Submit(const JobSpec& spec, const std::string& token);

 private:
  class Impl;
  explicit SystemClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa::cli
