#include "lease.h"

#include <poll.h>

namespace msa::nam {
namespace {

Result<wire::NamLease> Unpack(const std::string& blob) {
  MSA_ASSIGN_OR_RETURN(const wire::SignedNamLease text, wire::Decode<wire::SignedNamLease>(blob));
  wire::NamLease lease;
  wire::Decoder decoder(text.lease);
  lease.Fields(decoder);
  if (!decoder.ok())
    return Error(Code::kInvalidArgument, "lease of {} bytes is malformed", text.lease.size());
  if (lease.version != wire::kNamProtocolVersion)
    return Error(Code::kInvalidArgument,
                 "lease is of version {}, this library knows {}; use one msa throughout", lease.version,
                 wire::kNamProtocolVersion);
  for (const wire::NamSegmentPlace& segment : lease.segments)
    if (segment.extent >= lease.extents.size() || segment.slot >= wire::kMaxNamSegments)
      return Error(Code::kInvalidArgument, "lease names slot {} of extent {} of {}; it is damaged",
                   segment.slot, segment.extent, lease.extents.size());
  if (!lease.uuid.valid() || lease.segments.size() > wire::kMaxNamSegments)
    return Status(Code::kInvalidArgument, "lease names no region, or too many segments; it is damaged");
  return lease;
}

}  // namespace

Lease::Lease(std::string blob, wire::NamLease terms, Origin origin)
    : origin_(origin),
      terms_(std::move(terms)),
      connection_(Control::Get().Present().number),
      rights_(terms_.rights) {
  texts_.push_back({std::move(blob), terms_});
}

Result<std::shared_ptr<Lease>> Lease::Parse(const std::string& blob, Origin origin) {
  Result<wire::NamLease> terms = Unpack(blob);
  if (!terms.ok()) return terms.status().WithContext("not a lease of msa_nam_get_lease");
  return std::shared_ptr<Lease>(new Lease(blob, std::move(*terms), origin));
}

LeaseId Lease::id() const {
  const MutexLock lock(mu_);
  return texts_.back().lease.lease;
}

const std::string& Lease::blob() const {
  const MutexLock lock(mu_);
  return texts_.back().blob;
}

wire::NamExtentPlace Lease::Place(std::uint32_t extent) const {
  const MutexLock lock(mu_);
  return texts_.back().lease.extents.at(extent);
}

Status Lease::Adopt(const std::string& blob) {
  MSA_ASSIGN_OR_RETURN(wire::NamLease lease, Unpack(blob));
  if (lease.uuid != terms_.uuid || lease.generation != terms_.generation ||
      lease.extents.size() != terms_.extents.size())
    return Error(
        Code::kFailedPrecondition,
        "region '{}' has generation {} now, this handle {}: it was resized or restored; open it again",
        terms_.name, lease.generation, terms_.generation);
  const MutexLock lock(mu_);
  rights_.store(lease.rights);
  if (texts_.back().blob != blob) texts_.push_back({blob, std::move(lease)});
  return Status::Ok();
}

bool Lease::IsOrphan(int& fd) const {
  const Control::Connection present = Control::Get().Present();
  fd = present.fd;
  pollfd one{fd, 0, 0};
  return fd < 0 || present.number != connection_.load() || poll(&one, 1, 0) != 0;
}

Result<wire::NamGranted> Lease::OpenAnew(SteadyTime deadline) {
  const NamRights all = terms_.rights & (NamRights::kRead | NamRights::kWrite);
  Result<wire::NamGranted> granted = Status::Ok();
  Status first;
  // As much as before, else what is left of it.
  for (const NamRights rights : {all, NamRights::kRead, NamRights::kWrite}) {
    if (!Has(all, rights) || (rights == all && !first.ok())) continue;
    granted = Control::Get().Ask<wire::NamGranted>(
        wire::NamOpen{.token = RandomToken(), .region = ToText(terms_.uuid), .rights = rights}, deadline);
    if (granted.status().code() != Code::kPermissionDenied) return granted;
    if (first.ok()) first = granted.status();
  }
  return first;
}

Status Lease::Refresh(SteadyTime deadline) {
  Control& control = Control::Get();
  // If it breaks meanwhile, the answer came by a later one, and it is refreshed once more.
  const std::uint64_t connection = control.Present().number;
  auto granted = control.Ask<wire::NamGranted>(wire::NamRefresh{.lease = id()}, deadline);
  const Code code = granted.status().code();
  if (code == Code::kNotFound || code == Code::kPermissionDenied || code == Code::kFailedPrecondition) {
    granted = OpenAnew(deadline);
    if (granted.status().code() == Code::kNotFound)
      return Error(Code::kFailedPrecondition, "region '{}' was removed", terms_.name);
  }
  if (!granted.ok()) return granted.status().WithContext(fmt::format("region '{}'", terms_.name));
  MSA_RETURN_IF_ERROR(Adopt(granted->blob));
  connection_.store(connection);
  return Status::Ok();
}

Status Lease::End(SteadyTime deadline) {
  return Control::Get().Ask<wire::NamDone>(wire::NamClose{.lease = id()}, deadline).status();
}

}  // namespace msa::nam
