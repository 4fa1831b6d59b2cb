// Locks of segments, and who is in their way.

#include "region.h"

using msa::Code;
using msa::Error;
using msa::Millis;
using msa::NamRights;
using msa::Result;
using msa::Status;
using msa::SteadyNow;
using msa::SteadyTime;
using msa::nam::Extent;
using msa::nam::Gate;
using msa::nam::LockMode;
using msa::nam::LockWords;
using msa::nam::Segment;

namespace {

// For the names of those who have the region open, behind a deadline that has passed.
constexpr auto kAskWho = Millis(100);

bool HasWords(const Segment& segment) { return segment.extent->mapped() && segment.extent->writable(); }

Result<Gate::Try> Take(const Segment& segment, LockMode mode) {
  Extent& extent = *segment.extent;
  if (extent.stale()) return extent.WhyStale();
  if (!HasWords(segment)) {
    // Its updates do not pass the gate: whether the claim stands makes no difference here.
    MSA_ASSIGN_OR_RETURN(const bool taken, extent.AskLock(segment.slot, mode, SteadyNow()));
    return taken ? Gate::Try::kTaken : Gate::Try::kInTheWay;
  }
  const LockWords words = extent.words(segment.slot);
  if (mode == LockMode::kShared)
    return TryLock(*words.lock, mode, words.owner, msa::nam::kMaxOwners) ? Gate::Try::kTaken
                                                                         : Gate::Try::kInTheWay;
  // The claim stands while it is repeated, so that readers do not starve a writer. The highest owner is read
  // behind the claim: who comes later sees it.
  if (!ClaimExclusive(*words.lock, words.owner)) return Gate::Try::kInTheWay;
  return Drained(*words.lock, words.owner, words.highest_owner->load()) ? Gate::Try::kTaken
                                                                        : Gate::Try::kClaimed;
}

Status Free(const Segment& segment, LockMode mode, SteadyTime deadline) {
  Extent& extent = *segment.extent;
  if (!HasWords(segment)) return extent.AskLock(segment.slot, LockMode::kNone, deadline).status();
  const LockWords words = extent.words(segment.slot);
  msa::nam::Unlock(*words.lock, mode, words.owner);
  return Status::Ok();
}

std::string WhoHasItOpen(const msa::nam::Lease& lease) {
  auto listing = msa::nam::Control::Get().Ask<msa::wire::NamListing>(
      msa::wire::NamList{.region = ToText(lease.terms().uuid)}, SteadyNow() + kAskWho);
  if (!listing.ok() || listing->regions.empty()) return "";
  std::string who;
  for (const msa::wire::NamHolderInfo& holder : listing->regions.front().holders)
    if (holder.lease != lease.id()) who += (who.empty() ? "; open by " : ", ") + holder.who;
  return who;
}

}  // namespace

Status msa_nam_region::Lock(std::uint32_t index, LockMode mode, Millis wait) {
  // A namd that is being restarted is waited for, as a holder is.
  const Status taken = LockWhile(index, mode, Gate::Until(SteadyNow() + wait), wait);
  if (taken.code() != Code::kDeadlineExceeded || wait.count() == 0) return taken;
  return Error(Code::kDeadlineExceeded, "{}{}; waited {} ms (msa_nam_set_timeout)", taken.message(),
               WhoHasItOpen(*lease), wait.count());
}

Status msa_nam_region::LockWhile(std::uint32_t index, LockMode mode, const Gate::Pause& pause,
                                 Millis patience) {
  MSA_RETURN_IF_ERROR(CheckSegment(index));
  const Segment& segment = segments[index];
  if (segment.extent->stale()) return segment.extent->WhyStale();
  SteadyTime heard = SteadyNow();
  const auto take = [&] {
    auto tried = Take(segment, mode);
    const Code code = tried.ok() ? Code::kOk : tried.status().code();
    if (tried.ok()) heard = SteadyNow();
    const bool is_away = code == Code::kUnavailable || code == Code::kDeadlineExceeded;
    if (is_away && SteadyNow() < heard + patience) return Result<Gate::Try>(Gate::Try::kInTheWay);
    // No lock that another one has.
    if (is_away && patience.count() != 0)
      return Result<Gate::Try>(Status(Code::kUnavailable, tried.status().message()));
    return tried;
  };
  const auto give_up = [&] {
    if (!segment.extent->stale()) (void)Free(segment, mode, SteadyNow()).ok();
  };
  const Status taken = segment.extent->gate(segment.slot).Acquire(this, mode, pause, take, give_up);
  if (taken.code() != Code::kDeadlineExceeded) return taken;
  std::string holder = segment.extent->HolderOf(segment.slot);
  if (holder.empty()) holder = taken.message().empty() ? "another process" : taken.message();
  return Error(Code::kDeadlineExceeded, "segment {} of region '{}' is locked by {}", index,
               lease->terms().name, holder);
}

Status msa_nam_region::Unlock(std::uint32_t index) {
  MSA_RETURN_IF_ERROR(CheckSegment(index));
  const Segment& segment = segments[index];
  const Status flushed = Flush(index);
  const SteadyTime deadline = TransferDeadline();
  const Status freed = segment.extent->gate(segment.slot).Release(deadline, [&](LockMode mode) {
    return segment.extent->stale() ? segment.extent->WhyStale() : Free(segment, mode, deadline);
  });
  return freed.ok() ? flushed : freed;
}

void msa_nam_region::UnlockAll() {
  for (std::uint32_t i = 0; i < segment_count; ++i)
    if (segments[i].extent->gate(segments[i].slot).IsHeldBy(this)) (void)Unlock(i).ok();
}
