#pragma once
// What the commands on regions share.

#include <memory>
#include <optional>
#include <string>

#include "client/region_client.h"
#include "commands/invocation.h"
#include "region/live_region.h"
#include "region/progress.h"
#include "region/region_path.h"
#include "region/region_system.h"
#include "region/transfer.h"

namespace msa::cli {

Result<std::unique_ptr<RegionClient>> ConnectRegions(const Invocation& call);
// With its holders. kNotFound.
Result<wire::NamRegionInfo> FindRegion(RegionClient& client, const std::string& region);
// kPermissionDenied: this process runs in a job that is bound to the region without the right to write.
Status CheckJobMayChange(const wire::NamRegionInfo& region);
Status CheckJobMayChange(RegionClient& client, const std::string& region);
Result<wire::NamRegionInfo> CreateRegion(RegionClient& client, wire::NamCreate request);

// Of commands that move bytes: -q/--quiet, --timeout.
struct MoveOptions {
  bool quiet = false;
  Millis patience{30'000};
  Progress::Writer writer() const { return TerminalWriter(quiet ? Quiet::kYes : Quiet::kNo); }
};
void AddMoveOptions(OptionParser& parser, MoveOptions* options);

// The running system, over connections of its own; regions are moved by libmsanam.
class RunningRegions : public RegionSystem {
 public:
  // Errors as FindEndpoint and RegionClient::Connect.
  static Result<std::unique_ptr<RunningRegions>> Connect(const Invocation& call, const MoveOptions& options);

  Result<wire::NamRegionInfo> Create(const wire::NamCreate& request) override;
  Result<wire::NamRegionInfo> Find(const std::string& region) override;
  Result<std::unique_ptr<RegionIo>> Open(const std::string& region, NamRights rights) override;
  Status Remove(const wire::NamRemove& request) override;
  Status SetAccess(const wire::NamSetAccess& request) override;

 private:
  RunningRegions(Endpoint endpoint, Millis patience, std::unique_ptr<RegionClient> client)
      : endpoint_(std::move(endpoint)), patience_(patience), client_(std::move(client)) {}

  const Endpoint endpoint_;
  const Millis patience_;
  std::unique_ptr<RegionClient> client_;
  std::optional<NamLibrary> library_;
};

// Of put, get and copy.
struct CopyOptions {
  bool resume = false;
  bool checksum = false;
  bool no_verify = false;
};
void AddCopyOptions(OptionParser& parser, CopyOptions* options);

// `status`, or 128 + the signal if one interrupted the command, which is said then.
Result<int> CodeOrInterrupted(const Status& status);

// The code of a transfer that has ended: 0, or 128 + the signal that interrupted it, said with how to go on.
// `result` is an error: the same with how to go on. Prints the checksum, to standard error if standard output
// holds the data.
struct CopyEnd {
  std::string name;        // what was written, for the checksum's line
  std::string state_path;  // empty: it cannot be resumed
  enum class Data { kElsewhere, kStandardOutput } data = Data::kElsewhere;
};
Result<int> EndCopy(const Result<TransferResult>& result, const CopyOptions& options, const CopyEnd& end);

}  // namespace msa::cli
