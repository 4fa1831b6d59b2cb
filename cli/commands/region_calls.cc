#include "commands/region_calls.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "msa/base/nam_lease.h"
#include "msa/base/wire.h"

#include "commands/print.h"
#include "options/values.h"
#include "region/interrupt.h"
#include "region/region_values.h"
#include "run/token.h"

namespace msa::cli {
namespace {

// A lease with the connection on which it depends.
class Hold {
 public:
  Hold(Endpoint endpoint, std::unique_ptr<OpenedRegion> opened)
      : endpoint_(std::move(endpoint)), opened_(std::move(opened)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // Returns when the controller has taken the lease back, so that a command that follows finds the region
  // unused; after a second in any case.
  ~Hold() {
    constexpr int kLooks = 100;
    const RegionUuid uuid = opened_->info().uuid;
    const LeaseId lease = Lease();
    opened_.reset();
    const auto client = RegionClient::TryConnect(endpoint_, Millis(1000));
    for (int i = 0; client.ok() && i < kLooks && lease.value != 0; ++i) {
      const auto region = FindRegion(**client, ToText(uuid));
      if (!region.ok() || std::none_of(region->holders.begin(), region->holders.end(),
                                       [&](const auto& holder) { return holder.lease == lease; }))
        return;
      ::poll(nullptr, 0, 10);
    }
  }
  const OpenedRegion& opened() const { return *opened_; }

 private:
  LeaseId Lease() const {
    const auto blob = wire::Decode<wire::SignedNamLease>(opened_->lease());
    if (!blob.ok()) return {};
    wire::NamLease lease;
    wire::Decoder decoder(blob->lease);
    lease.Fields(decoder);
    return decoder.ok() ? lease.lease : LeaseId{};
  }

  const Endpoint endpoint_;
  std::unique_ptr<OpenedRegion> opened_;
};

const Status& StatusOf(const Status& status) { return status; }
template <class T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

// Once more over a new connection if the controller went away: it may just have been restarted. `call` does
// no harm when it is repeated.
template <class Call>
auto WithReconnect(const Endpoint& endpoint, std::unique_ptr<RegionClient>& client, const Call& call) {
  auto out = call(*client);
  if (StatusOf(out).code() != Code::kUnavailable) return out;
  auto fresh = RegionClient::Connect(endpoint);
  if (!fresh.ok()) return out;
  client = *std::move(fresh);
  return call(*client);
}

// In a job: what --nam-region has bound it to, as its other processes are held to it. The environment is the
// user's own: it keeps him from mistakes, not from what he may do.
Status CheckJobsBinding(const wire::NamRegionInfo& region, NamRights rights) {
  const char* const job = std::getenv("MSA_JOB_ID");
  if (job == nullptr) return Status::Ok();
  const std::string who = fmt::format("job {}", job);
  for (const wire::NamHolderInfo& holder : region.holders)
    if (holder.who == who && fmt::format("job {}", holder.job) == who && !Has(holder.rights, rights))
      return Error(Code::kPermissionDenied,
                   "region '{}': {} is bound to it with {} only (--nam-region), {} is needed; submit it with "
                   "more rights",
                   region.name, who, ShowRights(holder.rights), ShowRights(rights));
  return Status::Ok();
}

}  // namespace

Status CheckJobMayChange(const wire::NamRegionInfo& region) {
  return CheckJobsBinding(region, NamRights::kWrite);
}

Status CheckJobMayChange(RegionClient& client, const std::string& region) {
  if (std::getenv("MSA_JOB_ID") == nullptr) return Status::Ok();
  const auto there = FindRegion(client, region);
  return there.ok() ? CheckJobMayChange(*there) : Status::Ok();  // the change says why not
}

Result<std::unique_ptr<RegionClient>> ConnectRegions(const Invocation& call) {
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(call.dir()));
  return RegionClient::Connect(endpoint);
}

Result<wire::NamRegionInfo> FindRegion(RegionClient& client, const std::string& region) {
  wire::NamList request;
  request.region = region;
  MSA_ASSIGN_OR_RETURN(auto regions, client.List(request));
  if (regions.empty())
    return Error(Code::kNotFound, "region '{}': no such region; see 'msactl region list'", region);
  return std::move(regions[0]);
}

Result<wire::NamRegionInfo> CreateRegion(RegionClient& client, wire::NamCreate request) {
  MSA_ASSIGN_OR_RETURN(request.token, MakeToken());
  request.lifetime = wire::NamLifetime::kPersistent;
  return client.Create(request);
}

void AddMoveOptions(OptionParser& parser, MoveOptions* options) {
  parser.Flag('q', "quiet", "no progress; without it, progress is shown on a terminal", &options->quiet)
      .Add({.letter = 't',
            .name = "timeout",
            .takes = Takes::kValue,
            .value_name = "TIME",
            .help =
                "wait so long for a NAM node, the controller or a lock that does not answer, as 10s or 5m "
                "(default: 30s)",
            .set = [options](std::string_view value) -> Status {
              MSA_ASSIGN_OR_RETURN(options->patience, ParseDuration(value));
              return Status::Ok();
            }});
}

Result<std::unique_ptr<RunningRegions>> RunningRegions::Connect(const Invocation& call,
                                                                const MoveOptions& options) {
  // While there is one thread: the fabric's library may load libinfinipath, whose handlers exit(1) on Ctrl-C.
  ::setenv("IPATH_NO_BACKTRACE", "1", 1);
  MSA_ASSIGN_OR_RETURN(Endpoint endpoint, FindEndpoint(call.dir()));
  MSA_ASSIGN_OR_RETURN(auto client, RegionClient::Connect(endpoint));
  return std::unique_ptr<RunningRegions>(
      new RunningRegions(std::move(endpoint), options.patience, std::move(client)));
}

Result<wire::NamRegionInfo> RunningRegions::Create(const wire::NamCreate& request) {
  wire::NamCreate once = request;
  MSA_ASSIGN_OR_RETURN(once.token, MakeToken());
  return WithReconnect(endpoint_, client_, [&](RegionClient& client) { return client.Create(once); });
}

Result<wire::NamRegionInfo> RunningRegions::Find(const std::string& region) {
  return WithReconnect(endpoint_, client_, [&](RegionClient& client) { return FindRegion(client, region); });
}

Result<std::unique_ptr<RegionIo>> RunningRegions::Open(const std::string& region, NamRights rights) {
  if (std::getenv("MSA_JOB_ID") != nullptr)
    if (const auto there = Find(region); there.ok()) MSA_RETURN_IF_ERROR(CheckJobsBinding(*there, rights));
  if (!library_) {
    MSA_ASSIGN_OR_RETURN(library_, LoadNamLibrary());
  }
  const auto source = [endpoint = endpoint_, region, rights]() -> Result<RegionLease> {
    MSA_ASSIGN_OR_RETURN(auto client, RegionClient::Connect(endpoint));
    MSA_ASSIGN_OR_RETURN(auto opened, client->Open(region, rights));
    const auto hold = std::make_shared<Hold>(endpoint, std::move(opened));
    return RegionLease{hold->opened().info(), hold->opened().lease(), hold};
  };
  LiveOptions options;
  options.patience = patience_;
  options.stop = [] { return InterruptGuard::signal() != 0; };
  return LiveRegion::Open(*library_, source, std::move(options));
}

Status RunningRegions::Remove(const wire::NamRemove& request) {
  MSA_RETURN_IF_ERROR(CheckJobMayChange(*client_, request.region));
  return WithReconnect(endpoint_, client_, [&](RegionClient& client) { return client.Remove(request); });
}

Status RunningRegions::SetAccess(const wire::NamSetAccess& request) {
  MSA_RETURN_IF_ERROR(CheckJobMayChange(*client_, request.region));
  return WithReconnect(endpoint_, client_, [&](RegionClient& client) { return client.SetAccess(request); });
}

void AddCopyOptions(OptionParser& parser, CopyOptions* options) {
  parser
      .Flag(0, "resume", "go on where an interrupted one left off; from the start if none was",
            &options->resume)
      .Flag(0, "checksum", "print the XXH3-128 checksum of what was moved", &options->checksum)
      .Flag(0, "no-verify", "do not read again and compare what was written", &options->no_verify);
}

Result<int> CodeOrInterrupted(const Status& status) {
  const int signal = InterruptGuard::signal();
  if (status.code() != Code::kCancelled || signal == 0) return status;
  PrintError(status);
  return 128 + signal;
}

Result<int> EndCopy(const Result<TransferResult>& result, const CopyOptions& options, const CopyEnd& end) {
  const int signal = InterruptGuard::signal();
  const bool interrupted = result.ok() ? result->interrupted : signal != 0;
  if (!result.ok() && !interrupted) {
    const Status status = result.status();
    // What helps against these is in their texts.
    const bool may_resume = status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded ||
                            status.code() == Code::kResourceExhausted || status.code() == Code::kInternal;
    if (end.state_path.empty() || !may_resume) return status;
    return Status(status.code(), status.message() + "; go on with --resume");
  }
  if (interrupted) {
    PrintNote(
        end.state_path.empty()
            ? std::string("interrupted; it cannot be resumed: no state was kept, or one side is no file that "
                          "can be read again")
            : fmt::format("interrupted; '{}' holds where, go on with --resume", end.state_path));
    return 128 + signal;
  }
  if (!options.checksum) return 0;
  const std::string line = fmt::format("{}  {}", ToText(result->checksum), end.name);
  if (end.data == CopyEnd::Data::kStandardOutput) {
    PrintNote(line);
  } else {
    MSA_RETURN_IF_ERROR(Print(line + "\n"));
  }
  return 0;
}

}  // namespace msa::cli
