#include "region.h"

#include <algorithm>

#include "watcher.h"

using msa::Code;
using msa::Error;
using msa::Millis;
using msa::MutexLock;
using msa::NamRights;
using msa::Result;
using msa::Status;
using msa::SteadyNow;
using msa::SteadyTime;
using msa::nam::Extent;
using msa::nam::LockMode;
using msa::nam::Segment;

namespace {

// A transfer of a handle that waits for nothing.
constexpr auto kLeastTransfer = Millis(1000);
// Between looks at a transfer's connection.
constexpr auto kRepairStep = Millis(20);

std::string_view RightName(NamRights right) { return right == NamRights::kWrite ? "write" : "read"; }

}  // namespace

msa_nam_region::msa_nam_region(std::shared_ptr<msa::nam::Lease> granted,
                               std::vector<std::shared_ptr<Extent>> ways)
    : lease(std::move(granted)), extents(std::move(ways)) {
  const msa::wire::NamLease& terms = lease->terms();
  rights = terms.rights;
  segment_count = static_cast<std::uint32_t>(terms.segments.size());
  segments = std::make_unique<Segment[]>(segment_count);
  for (std::uint32_t i = 0; i < segment_count; ++i) {
    const msa::wire::NamSegmentPlace& place = terms.segments[i];
    Segment& segment = segments[i];
    segment.extent = extents[place.extent].get();
    segment.bytes = place.bytes.value;
    segment.extent_offset = place.offset;
    segment.slot = place.slot;
    segment.disp_unit = place.disp_unit;
    if (!segment.extent->mapped()) continue;
    std::byte* base = segment.extent->data() + place.offset;
    if (Has(rights, NamRights::kRead)) segment.get_base = base;
    if (segment.extent->writable()) segment.put_base = base;
  }
}

msa_nam_region::~msa_nam_region() {
  for (const auto& extent : extents) extent->Close();
}

Result<std::unique_ptr<msa_nam_region>> msa_nam_region::Open(std::shared_ptr<msa::nam::Lease> lease,
                                                             SteadyTime deadline) {
  MSA_ASSIGN_OR_RETURN(const msa::nam::Transport transport, msa::nam::WantedTransport());
  std::vector<std::shared_ptr<Extent>> extents;
  for (std::uint32_t i = 0; i < lease->terms().extents.size(); ++i) {
    auto extent = Extent::Attach(lease, i, transport, deadline);
    if (!extent.ok())
      return extent.status().WithContext(fmt::format("attach to region '{}' on NAM node {}",
                                                     lease->terms().name, lease->terms().extents[i].node));
    extents.push_back(std::move(*extent));
  }
  auto region = std::make_unique<msa_nam_region>(std::move(lease), std::move(extents));
  region->timeout_ms = static_cast<std::uint32_t>(msa::nam::DefaultTimeout().count());
  for (const auto& extent : region->extents) {
    if (!extent->NeedsWatching()) continue;
    extent->OnStale([raw = region.get(), which = extent.get()] {
      for (std::uint32_t i = 0; i < raw->segment_count; ++i) {
        if (raw->segments[i].extent != which) continue;
        raw->segments[i].put_base = nullptr;
        raw->segments[i].get_base = nullptr;
      }
    });
    msa::nam::Watch(extent);
  }
  return region;
}

SteadyTime msa_nam_region::TransferDeadline() const {
  const Millis wait = timeout();
  return SteadyNow() + (wait.count() == 0 ? kLeastTransfer : wait);
}

Status msa_nam_region::CheckSegment(std::uint32_t index) const {
  if (index < segment_count) return Status::Ok();
  return Error(Code::kOutOfRange, "segment {} of region '{}', which has {} segments (from 0)", index,
               lease->terms().name, segment_count);
}

Status msa_nam_region::Check(std::uint32_t index, std::uint64_t offset, std::uint64_t bytes,
                             NamRights right) const {
  MSA_RETURN_IF_ERROR(CheckSegment(index));
  const Segment& segment = segments[index];
  if (offset > segment.bytes || bytes > segment.bytes - offset)
    return Error(Code::kOutOfRange, "{} bytes at offset {} of segment {} of region '{}', which has {} bytes",
                 bytes, offset, index, lease->terms().name, segment.bytes);
  if (!Has(rights, right))
    return Error(
        Code::kPermissionDenied,
        "this handle of region '{}' has no right to {}; open it with that right, or ask its owner (msactl "
        "region acl)",
        lease->terms().name, RightName(right));
  return segment.extent->stale() ? segment.extent->WhyStale() : Status::Ok();
}

// ----------------------------------------------------------------------------------------------- requests

Status msa_nam_request::Result() {
  const MutexLock lock(mu);
  return result ? *result : Status(Code::kInternal, "not complete");
}

Status msa_nam_request::TooLate() const {
  return Error(
      Code::kDeadlineExceeded,
      "{} of {} pieces was not complete at its deadline and is given up; what of it has been done is "
      "not known (msa_nam_set_timeout)",
      direction == Extent::Direction::kPut ? "put" : "get", pieces.size());
}

std::optional<Status> msa_nam_request::Step(SteadyTime until) {
  if (!transfer) {
    if (SteadyNow() >= deadline) return TooLate();
    auto begun = segment->extent->Start(direction, pieces, deadline);
    if (!begun.ok()) return begun.status();
    transfer = std::move(*begun);
  }
  std::optional<Status> done = transfer->Test();
  if (done || SteadyNow() >= until) return done;
  const Status waited = transfer->Wait(until);
  if (waited.code() == Code::kDeadlineExceeded) return std::nullopt;
  return waited;
}

void msa_nam_request::EndBy(SteadyTime latest) {
  const MutexLock lock(mu);
  deadline = std::min(deadline, latest);
}

bool msa_nam_request::Advance(SteadyTime until) {
  const MutexLock lock(mu);
  while (!result) {
    std::optional<Status> done = Step(std::min(until, deadline));
    SteadyTime now = SteadyNow();
    // Also if its connection was ended by another one that was given up. A transfer that is dropped after a
    // wait in vain does not touch local memory any more.
    if (now >= deadline && transfer && (!done || done->code() == Code::kUnavailable))
      done = transfer->Wait(deadline).ok() ? Status::Ok() : TooLate();
    if (!done) return false;
    const bool is_refused = done->code() == Code::kPermissionDenied && !segment->extent->Allows(direction);
    if (done->ok() || is_refused || now >= deadline) {
      result = *done;
      break;
    }
    transfer.reset();
    const Status repaired =
        segment->extent->Repair(*done, std::min(deadline, std::max(until, now + kRepairStep)));
    now = SteadyNow();
    // Not to be repaired, or no time is left for it.
    if (!repaired.ok() && (repaired.code() != Code::kUnavailable || now >= deadline)) result = repaired;
    if (!result && now >= until) return false;
  }
  transfer.reset();
  return true;
}

Status msa_nam_region::Start(Segment& segment, msa::nam::Direction direction,
                             std::vector<msa::nam::FabricPiece> pieces, msa_nam_request_t* request) {
  auto started = std::make_shared<msa_nam_request>();
  started->region = this;
  started->segment = &segment;
  started->direction = direction;
  started->pieces = std::move(pieces);
  started->EndBy(TransferDeadline());
  // Goes out now; a failure is told by the request.
  (void)started->Advance(SteadyNow());
  const MutexLock lock(mu);
  *request = started.get();
  requests.emplace(started.get(), std::move(started));
  return Status::Ok();
}

void msa_nam_region::Forget(msa_nam_request* request) {
  std::shared_ptr<msa_nam_request> last;
  const MutexLock lock(mu);
  const auto it = requests.find(request);
  if (it == requests.end()) return;
  last = std::move(it->second);
  requests.erase(it);
}

Status msa_nam_region::Flush(std::uint32_t index) {
  std::vector<std::shared_ptr<msa_nam_request>> open;
  {
    const MutexLock lock(mu);
    if (requests.empty()) return Status::Ok();
    for (const auto& [raw, request] : requests)
      if (index == ~0u || request->segment == &segments[index]) open.push_back(request);
  }
  const SteadyTime deadline = TransferDeadline();
  Status first;
  for (const auto& request : open) {
    const Status done = request->Advance(deadline)
                            ? request->Result()
                            : Status(Code::kDeadlineExceeded, "transfers are not complete at the deadline");
    if (first.ok()) first = done;
  }
  return first;
}
