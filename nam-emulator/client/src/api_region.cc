// msa_nam.h: regions, handles, locks.

#include <msa_nam_direct.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "errors.h"
#include "region.h"

using namespace msa;       // NOLINT(google-build-using-namespace)
using namespace msa::nam;  // NOLINT(google-build-using-namespace)

namespace {

// What the C ABI promises: nothing is thrown at the caller.
template <class Work>
Status Guarded(Work work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Status(Code::kResourceExhausted, "out of memory in this process");
  } catch (const std::exception& e) {
    return Status(Code::kInternal, e.what());
  }
}

// For a request beyond the deadline of the one that it takes back.
constexpr auto kWithdrawal = Millis(500);

Status Null(const char* what) { return Error(Code::kInvalidArgument, "{} is a null pointer", what); }

SteadyTime ControlDeadline() {
  return SteadyNow() + std::max(DefaultTimeout(), Millis(1000));  // a question takes its time
}

bool IsAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

Status CheckName(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= wire::kMaxNamName && IsAlnum(name[0]) &&
                    std::all_of(name.begin(), name.end(),
                                [](char c) { return IsAlnum(c) || c == '.' || c == '_' || c == '-'; });
  if (fits) return Status::Ok();
  return Error(
      Code::kInvalidArgument,
      "name '{}' of a region; expected 1 to {} letters, digits, '.', '_', '-', the first one a letter or "
      "digit",
      name.substr(0, wire::kMaxNamName + 1), wire::kMaxNamName);
}

// A name, a port name or a uuid: the controller knows.
Status CheckReference(const char* name) {
  if (name == nullptr) return Null("name");
  const std::size_t length = strnlen(name, wire::kMaxNamName + 1);
  if (length == 0 || length > wire::kMaxNamName)
    return Error(Code::kInvalidArgument, "name of a region has {} bytes or more; expected 1 to {}", length,
                 wire::kMaxNamName);
  return Status::Ok();
}

Result<wire::NamCreate> ToRequest(const msa_nam_create_options& options) {
  wire::NamCreate create;
  create.token = RandomToken();
  if (options.name != nullptr) {
    const std::string_view name(options.name, strnlen(options.name, wire::kMaxNamName + 1));
    MSA_RETURN_IF_ERROR(CheckName(name));
    create.name = name;
  }
  if (options.segment_count == 0 || options.segment_count > wire::kMaxNamSegments)
    return Error(Code::kInvalidArgument, "{} segments; expected 1 to {}", options.segment_count,
                 wire::kMaxNamSegments);
  if (options.segments == nullptr) return Null("segments");
  if ((options.mode & ~0666u) != 0)
    return Error(Code::kInvalidArgument, "mode {:#o}; expected read and write bits only, within 0666",
                 options.mode);
  if (options.lifetime > MSA_NAM_PERSISTENT || options.placement > MSA_NAM_SPREAD)
    return Error(Code::kInvalidArgument, "lifetime {} or placement {}; expected values of msa_nam.h",
                 static_cast<int>(options.lifetime), static_cast<int>(options.placement));
  create.mode = options.mode == 0 ? 0600 : options.mode;
  create.lifetime = static_cast<wire::NamLifetime>(options.lifetime);
  create.placement = static_cast<wire::NamPlacement>(options.placement);
  for (std::uint32_t i = 0; i < options.segment_count; ++i) {
    const msa_nam_segment& segment = options.segments[i];
    create.segments.push_back({Bytes(segment.bytes), std::max(segment.disp_unit, 1u)});
  }
  return create;
}

Result<std::unique_ptr<msa_nam_region>> OpenGranted(const wire::NamGranted& granted, SteadyTime deadline) {
  MSA_ASSIGN_OR_RETURN(std::shared_ptr<Lease> lease, Lease::Parse(granted.blob, Lease::Origin::kController));
  auto region = msa_nam_region::Open(lease, deadline);
  if (!region.ok()) {
    (void)lease->End(deadline).ok();
    return region.status();
  }
  const MutexLock lock((*region)->mu);
  (*region)->lifetime = granted.region.lifetime;
  return region;
}

Status Create(const msa_nam_create_options* options, msa_nam_region_t* region) {
  if (region == nullptr) return Null("region");
  *region = nullptr;
  if (options == nullptr) return Null("options");
  MSA_ASSIGN_OR_RETURN(const wire::NamCreate create, ToRequest(*options));
  MSA_RETURN_IF_ERROR(WantedTransport().status());
  const SteadyTime deadline = ControlDeadline();
  const auto made = Control::Get().Ask<wire::NamGranted>(create, deadline);
  const Code code = made.status().code();
  if (code == Code::kDeadlineExceeded || code == Code::kUnavailable)
    // It may be made all the same, now or later, and nobody would ever use it.
    (void)Control::Get().Ask<wire::NamDone>(wire::NamWithdraw{create.token}, SteadyNow() + kWithdrawal).ok();
  if (!made.ok()) return made.status();
  const wire::NamGranted& granted = *made;
  auto opened = OpenGranted(granted, deadline);
  if (!opened.ok()) {
    // What nobody has seen must not keep its name and memory.
    (void)Control::Get()
        .Ask<wire::NamDone>(wire::NamRemove{.region = ToText(granted.region.uuid), .force = true}, deadline)
        .ok();
    return opened.status();
  }
  *region = opened->release();
  return Status::Ok();
}

Status Open(const char* name, int rights, msa_nam_region_t* region) {
  if (region == nullptr) return Null("region");
  *region = nullptr;
  MSA_RETURN_IF_ERROR(CheckReference(name));
  if (rights != MSA_NAM_READ && rights != (MSA_NAM_READ | MSA_NAM_WRITE))
    return Error(Code::kInvalidArgument, "rights {}; expected MSA_NAM_READ or MSA_NAM_READ | MSA_NAM_WRITE",
                 rights);
  MSA_RETURN_IF_ERROR(WantedTransport().status());
  const SteadyTime deadline = ControlDeadline();
  const wire::NamOpen open{.token = RandomToken(), .region = name, .rights = static_cast<NamRights>(rights)};
  MSA_ASSIGN_OR_RETURN(const wire::NamGranted granted, Control::Get().Ask<wire::NamGranted>(open, deadline));
  MSA_ASSIGN_OR_RETURN(auto opened, OpenGranted(granted, deadline));
  *region = opened.release();
  return Status::Ok();
}

Status AttachTo(const void* blob, std::size_t bytes, msa_nam_region_t* region) {
  if (region == nullptr) return Null("region");
  *region = nullptr;
  if (blob == nullptr) return Null("lease");
  if (bytes == 0 || bytes > wire::kMaxNamPayload)
    return Error(Code::kInvalidArgument, "lease of {} bytes; expected what msa_nam_get_lease gave", bytes);
  MSA_ASSIGN_OR_RETURN(
      std::shared_ptr<Lease> lease,
      Lease::Parse(std::string(static_cast<const char*>(blob), bytes), Lease::Origin::kOtherProcess));
  MSA_ASSIGN_OR_RETURN(auto opened, msa_nam_region::Open(std::move(lease), ControlDeadline()));
  *region = opened.release();
  return Status::Ok();
}

Status Close(msa_nam_region_t region) {
  if (region == nullptr) return Null("region");
  const std::unique_ptr<msa_nam_region> owner(region);
  const Status flushed = region->Flush(~0u);
  region->UnlockAll();
  for (const auto& extent : region->extents) extent->Close();
  if (region->lease->origin() == Lease::Origin::kController) {
    const Status ended = region->lease->End(ControlDeadline());
    // It ends with the connection, at the latest.
    if (!ended.ok() && ended.code() != Code::kNotFound) return ended;
  }
  return flushed;
}

Status SetLifetime(msa_nam_region_t region, msa_nam_lifetime lifetime) {
  if (region == nullptr) return Null("region");
  if (lifetime != MSA_NAM_LEASE && lifetime != MSA_NAM_PERSISTENT)
    return Error(Code::kInvalidArgument, "lifetime {}; expected MSA_NAM_LEASE or MSA_NAM_PERSISTENT",
                 static_cast<int>(lifetime));
  const wire::NamSetLifetime set{.region = ToText(region->lease->terms().uuid),
                                 .lifetime = static_cast<wire::NamLifetime>(lifetime)};
  MSA_RETURN_IF_ERROR(Control::Get().Ask<wire::NamDone>(set, ControlDeadline()).status());
  const MutexLock lock(region->mu);
  region->lifetime = set.lifetime;
  return Status::Ok();
}

Result<wire::NamLifetime> LifetimeOf(msa_nam_region& region) {
  {
    const MutexLock lock(region.mu);
    if (region.lifetime) return *region.lifetime;
  }
  // A lease does not tell.
  MSA_ASSIGN_OR_RETURN(const wire::NamListing listing,
                       Control::Get().Ask<wire::NamListing>(
                           wire::NamList{.region = ToText(region.lease->terms().uuid)}, ControlDeadline()));
  if (listing.regions.empty()) return Status(Code::kNotFound, "region is not listed any longer");
  const MutexLock lock(region.mu);
  region.lifetime = listing.regions.front().lifetime;
  return *region.lifetime;
}

Status Stat(msa_nam_region_t region, struct msa_nam_stat* stat) {
  if (region == nullptr) return Null("region");
  if (stat == nullptr) return Null("stat");
  MSA_ASSIGN_OR_RETURN(const wire::NamLifetime lifetime, LifetimeOf(*region));
  const wire::NamLease& terms = region->lease->terms();
  *stat = {};
  terms.name.copy(stat->name, sizeof stat->name - 1);
  NamPortName(terms.uuid).copy(stat->port, sizeof stat->port - 1);
  for (std::uint32_t i = 0; i < region->segment_count; ++i) stat->bytes += region->segments[i].bytes;
  stat->segment_count = region->segment_count;
  stat->generation = terms.generation.value;
  stat->rights = static_cast<int>(region->rights);
  stat->lifetime = static_cast<msa_nam_lifetime>(lifetime);
  return Status::Ok();
}

Status StatSegment(msa_nam_region_t region, std::uint32_t index, struct msa_nam_segment_stat* stat) {
  if (region == nullptr) return Null("region");
  if (stat == nullptr) return Null("stat");
  MSA_RETURN_IF_ERROR(region->CheckSegment(index));
  const Segment& segment = region->segments[index];
  const bool mapped = segment.extent->mapped();
  *stat = {segment.bytes, segment.disp_unit, mapped ? MSA_NAM_LOCAL : MSA_NAM_FABRIC,
           mapped ? segment.extent->data() + segment.extent_offset : nullptr};
  return Status::Ok();
}

// What a C program loads as a pointer.
void* const* CellOf(const std::atomic<std::byte*>& base) {
  static_assert(sizeof base == sizeof(void*) && std::atomic<std::byte*>::is_always_lock_free);
  return reinterpret_cast<void* const*>(&base);
}

Status Direct(msa_nam_region_t region, std::uint32_t index, struct msa_nam_direct* direct) {
  if (region == nullptr) return Null("region");
  if (direct == nullptr) return Null("direct");
  MSA_RETURN_IF_ERROR(region->CheckSegment(index));
  const Segment& segment = region->segments[index];
  *direct = {CellOf(segment.put_base), CellOf(segment.get_base), segment.bytes};
  return Status::Ok();
}

Status CheckMode(msa_nam_region_t region, msa_nam_lock_mode mode) {
  if (region == nullptr) return Null("region");
  if (mode == MSA_NAM_SHARED || mode == MSA_NAM_EXCLUSIVE) return Status::Ok();
  return Error(Code::kInvalidArgument, "mode {}; expected MSA_NAM_SHARED or MSA_NAM_EXCLUSIVE",
               static_cast<int>(mode));
}

int LockSegment(const char* what, msa_nam_region_t region, std::uint32_t index,
                msa_nam_lock_mode mode) noexcept {
  return Finish(what, Guarded([&]() -> Status {
                  MSA_RETURN_IF_ERROR(CheckMode(region, mode));
                  return region->Lock(index, static_cast<LockMode>(mode), region->timeout());
                }));
}

// A segment whose lock words are mapped and not stale. Null: not this way.
const Segment* WithWords(msa_nam_region_t region, std::uint32_t index) {
  if (region == nullptr || index >= region->segment_count) return nullptr;
  const Segment* segment = &region->segments[index];
  // Not short for a lease that has ended: its locks may be another's.
  if (segment->put_base.load(std::memory_order_acquire) == nullptr || segment->extent->stale())
    return nullptr;
  return segment;
}

int LockWhile(const char* what, msa_nam_region_t region, std::uint32_t index, msa_nam_lock_mode mode,
              const Gate::Pause& pause) noexcept {
  const Status taken = Guarded([&]() -> Status {
    MSA_RETURN_IF_ERROR(CheckMode(region, mode));
    if (pause) return region->LockWhile(index, static_cast<LockMode>(mode), pause, region->timeout());
    // Once, but for threads of this process, which are there for a moment only.
    const Gate::Pause once = WithWords(region, index) != nullptr ? Gate::Until(SteadyTime::min())
                                                                 : Gate::Pause([] { return false; });
    return region->LockWhile(index, static_cast<LockMode>(mode), once, Millis(0));
  });
  // So that who tries until he has it does so for as long as others wait.
  const bool is_away = !pause && taken.code() == Code::kUnavailable && region != nullptr &&
                       region->segments[index].extent->AwayFor() < region->timeout();
  if (taken.code() != Code::kDeadlineExceeded && !is_away) return Finish(what, taken);
  return Finish(what, Status(Code::kFailedPrecondition, taken.message()), Precondition::kBusy);
}

// Where nothing is in the way, a lock is a few atomic instructions: no clock is read.
bool LockAtOnce(msa_nam_region_t region, std::uint32_t index, msa_nam_lock_mode mode) {
  const Segment* segment = WithWords(region, index);
  if (segment == nullptr || (mode != MSA_NAM_SHARED && mode != MSA_NAM_EXCLUSIVE)) return false;
  const Extent& extent = *segment->extent;
  return extent.gate(segment->slot)
      .TryAcquire(region, static_cast<LockMode>(mode), extent.words(segment->slot));
}

// Transfers to what is mapped are complete when their call returns: there is nothing to flush.
bool UnlockAtOnce(msa_nam_region_t region, std::uint32_t index) {
  const Segment* segment = WithWords(region, index);
  return segment != nullptr &&
         segment->extent->gate(segment->slot).TryRelease(segment->extent->words(segment->slot));
}

}  // namespace

extern "C" {

int msa_nam_create(const struct msa_nam_create_options* options, msa_nam_region_t* region) {
  return Finish("msa_nam_create", Guarded([&] { return Create(options, region); }));
}
int msa_nam_open(const char* name, int rights, msa_nam_region_t* region) {
  return Finish("msa_nam_open", Guarded([&] { return Open(name, rights, region); }));
}
int msa_nam_get_lease(msa_nam_region_t region, const void** lease, size_t* bytes) {
  if (region == nullptr || lease == nullptr || bytes == nullptr)
    return Finish("msa_nam_get_lease", Null("region, lease or bytes"));
  const std::string& blob = region->lease->blob();
  *lease = blob.data();
  *bytes = blob.size();
  return MSA_NAM_OK;
}
int msa_nam_attach(const void* lease, size_t bytes, msa_nam_region_t* region) {
  return Finish("msa_nam_attach", Guarded([&] { return AttachTo(lease, bytes, region); }));
}
int msa_nam_close(msa_nam_region_t region) {
  return Finish("msa_nam_close", Guarded([&] { return Close(region); }));
}
int msa_nam_delete(const char* name, int force) {
  return Finish("msa_nam_delete", Guarded([&]() -> Status {
                  MSA_RETURN_IF_ERROR(CheckReference(name));
                  const wire::NamRemove remove{.region = name, .force = force != 0};
                  return Control::Get().Ask<wire::NamDone>(remove, ControlDeadline()).status();
                }),
                Precondition::kBusy);
}
int msa_nam_set_lifetime(msa_nam_region_t region, enum msa_nam_lifetime lifetime) {
  return Finish("msa_nam_set_lifetime", Guarded([&] { return SetLifetime(region, lifetime); }));
}
int msa_nam_set_timeout(msa_nam_region_t region, uint32_t milliseconds) {
  if (region == nullptr) return Finish("msa_nam_set_timeout", Null("region"));
  region->timeout_ms = milliseconds;
  return MSA_NAM_OK;
}
int msa_nam_stat(msa_nam_region_t region, struct msa_nam_stat* stat) {
  return Finish("msa_nam_stat", Guarded([&] { return Stat(region, stat); }));
}
int msa_nam_segment_stat(msa_nam_region_t region, uint32_t segment, struct msa_nam_segment_stat* stat) {
  return Finish("msa_nam_segment_stat", Guarded([&] { return StatSegment(region, segment, stat); }));
}
int msa_nam_direct(msa_nam_region_t region, uint32_t segment, struct msa_nam_direct* direct) {
  return Finish("msa_nam_direct", Guarded([&] { return Direct(region, segment, direct); }));
}

int msa_nam_lock(msa_nam_region_t region, uint32_t segment, enum msa_nam_lock_mode mode) {
  if (LockAtOnce(region, segment, mode)) [[likely]]
    return MSA_NAM_OK;
  return LockSegment("msa_nam_lock", region, segment, mode);
}
int msa_nam_lock_while(msa_nam_region_t region, uint32_t segment, enum msa_nam_lock_mode mode,
                       int (*go_on)(void*), void* state) {
  if (LockAtOnce(region, segment, mode)) [[likely]]
    return MSA_NAM_OK;
  return LockWhile("msa_nam_lock_while", region, segment, mode, [=] { return go_on(state) != 0; });
}
int msa_nam_try_lock(msa_nam_region_t region, uint32_t segment, enum msa_nam_lock_mode mode) {
  if (LockAtOnce(region, segment, mode)) [[likely]]
    return MSA_NAM_OK;
  return LockWhile("msa_nam_try_lock", region, segment, mode, nullptr);
}
int msa_nam_unlock(msa_nam_region_t region, uint32_t segment) {
  if (UnlockAtOnce(region, segment)) [[likely]]
    return MSA_NAM_OK;
  if (region == nullptr) return Finish("msa_nam_unlock", Null("region"));
  return Finish("msa_nam_unlock", Guarded([&] { return region->Unlock(segment); }));
}
}
