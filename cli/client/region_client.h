#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msa/base/nam_replies.h"
#include "msa/base/nam_requests.h"
#include "msa/base/status.h"

#include "client/endpoint.h"

namespace msa::cli {

// A region's lease; the stream that keeps it open closes with this object. Any thread.
class OpenedRegion {
 public:
  ~OpenedRegion();
  OpenedRegion(const OpenedRegion&) = delete;
  OpenedRegion& operator=(const OpenedRegion&) = delete;
  const wire::NamRegionInfo& info() const noexcept;
  // For libmsanam. It has ended if the controller went away or took it back: namd says so.
  const std::string& lease() const noexcept;

 private:
  friend class RegionClient;
  class Stream;
  explicit OpenedRegion(std::shared_ptr<Stream> stream);
  std::shared_ptr<Stream> stream_;
};

// The controller's RegionService. Each call blocks for at most `timeout` and fails with the errors of
// proto/msa/v1/nam.proto. kUnavailable: the controller went away or does not answer. One thread.
class RegionClient {
 public:
  // Errors as ConnectController.
  static Result<std::unique_ptr<RegionClient>> Connect(const Endpoint& endpoint,
                                                       Millis timeout = Millis(35'000));
  // As Connect, without waiting for a controller that is just being restarted.
  static Result<std::unique_ptr<RegionClient>> TryConnect(const Endpoint& endpoint, Millis timeout);
  ~RegionClient();
  RegionClient(const RegionClient&) = delete;
  RegionClient& operator=(const RegionClient&) = delete;

  // `request.lifetime` is kPersistent, whatever it says.
  Result<wire::NamRegionInfo> Create(const wire::NamCreate& request);
  Result<std::unique_ptr<OpenedRegion>> Open(const std::string& region, NamRights rights);
  Result<std::vector<wire::NamRegionInfo>> List(const wire::NamList& request);
  Status Remove(const wire::NamRemove& request);
  Status Resize(const wire::NamResize& request);
  Status SetAccess(const wire::NamSetAccess& request);
  Result<wire::NamUsage> Usage();
  Result<wire::NamCheckResult> Check(const wire::NamCheckAsk& request);

 private:
  class Impl;
  explicit RegionClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa::cli
