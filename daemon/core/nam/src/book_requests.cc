// Regions are made and resized in two phases: memory, quota and name are taken here, every namd that holds an
// extent allocates it, and only what all of them have is committed and answered.
#include <algorithm>

#include "msa/nam/nam_text.h"
#include "msa/topology/size_text.h"
#include "msa/topology/suggest.h"

#include "book_impl.h"

namespace msa {
namespace {

constexpr std::uint32_t kModeBits = 0666;
constexpr std::size_t kMaxNamedNodes = 1024;

// `bytes`: what they are charged.
Status CheckSegments(const std::vector<wire::NamSegmentSpec>& segments, std::uint64_t& bytes) {
  if (segments.empty() || segments.size() > wire::kMaxNamSegments)
    return Error(Code::kInvalidArgument, "a region of {} segments; expected 1 to {}", segments.size(),
                 wire::kMaxNamSegments);
  bytes = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].disp_unit == 0)
      return Error(Code::kInvalidArgument, "segment {} has displacement unit 0; expected 1 or more", i);
    // No sum of what passes leaves 64 bits.
    if (segments[i].bytes.value > kMaxNamBytes - bytes)
      return Error(Code::kResourceExhausted, "segments 0 to {} have more than {} together; ask for less", i,
                   SizeText(Bytes(kMaxNamBytes)));
    bytes += segments[i].bytes.value;
  }
  bytes = 0;
  for (const wire::NamSegmentSpec& segment : segments) bytes += nam_book::ChargeOf(segment.bytes);
  return Status::Ok();
}

}  // namespace

Status NamBook::Impl::CheckCreate(const nam_event::Request& e, const wire::NamCreate& m,
                                  std::uint64_t& bytes) const {
  MSA_RETURN_IF_ERROR(CheckToken(m.token));
  if (!m.name.empty()) MSA_RETURN_IF_ERROR(CheckNamName(m.name));
  if ((m.mode & ~kModeBits) != 0)
    return Error(Code::kInvalidArgument,
                 "mode {:04o}; expected read and write bits of owner, group and others, 0000 to 0666",
                 m.mode);
  if (m.lifetime > wire::NamLifetime::kPersistent || m.placement > wire::NamPlacement::kSpread)
    return Error(Code::kInvalidArgument, "lifetime {}, placement {}; expected 0 or 1",
                 static_cast<int>(m.lifetime), static_cast<int>(m.placement));
  MSA_RETURN_IF_ERROR(CheckSegments(m.segments, bytes));
  if (!e.random.valid() || regions.contains(e.random))
    return Error(Code::kAborted, "the region's uuid {} is taken; try again", ToText(e.random));
  const auto user = users.find(e.caller.user.uid);
  if (user != users.end() && user->second.regions >= kMaxNamRegions)
    return Error(Code::kResourceExhausted,
                 "user {} has {} regions, the limit is {}; remove some, or make one with more segments",
                 e.caller.user_name, user->second.regions, kMaxNamRegions);
  MSA_RETURN_IF_ERROR(CheckLeases(e.caller));
  if (!m.name.empty() && names.contains(m.name))
    return Error(Code::kAlreadyExists, "region '{}' exists already; choose another name, or open it", m.name);
  return Status::Ok();
}

Result<std::vector<nam_book::Room>> NamBook::Impl::RoomsFor(const std::vector<std::string>& wanted) const {
  if (wanted.size() > kMaxNamedNodes)
    return Error(Code::kInvalidArgument, "{} NAM nodes named, the limit is {}", wanted.size(),
                 kMaxNamedNodes);
  std::vector<std::string> known;
  for (const Node& node : nodes) known.push_back(node.spec.name);
  for (const std::string& name : wanted)
    if (!node_index.contains(name))
      return Error(Code::kNotFound, "'{}' is no NAM node; {}NAM nodes: {}", name.substr(0, 80),
                   DidYouMean(name.substr(0, 80), known), known.empty() ? "none" : ListNames(known));
  std::vector<nam_book::Room> rooms;
  for (const Node& node : nodes) {
    if (!node.up) continue;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), node.spec.name) == wanted.end()) continue;
    rooms.push_back({node.spec.name, node.capacity > node.used ? node.capacity - node.used : 0});
  }
  if (rooms.empty())
    return Error(Code::kUnavailable, "no NAM node is there{}; see 'msactl region df'",
                 known.empty() ? ": this system has none"
                               : fmt::format(" ({} away)", ListNames(wanted.empty() ? known : wanted)));
  return rooms;
}

// "win-7-1" in job 7, else "region-1".
std::string NamBook::Impl::FreshName(JobId id) {
  for (;;) {
    Job* job = FindJob(id);
    std::string name =
        job != nullptr ? fmt::format("win-{}-{}", id, ++job->windows) : fmt::format("region-{}", ++last_name);
    if (!names.contains(name)) return name;
  }
}

// True: answered, or somebody waits more.
bool NamBook::Impl::RepeatCreate(nam_event::Request& e, const wire::NamCreate& m) {
  if (m.token.empty()) return false;
  const auto it = create_tokens.find({e.caller.user.uid, m.token});
  if (it == create_tokens.end()) return false;
  Region& region = *Find(it->second);
  if (region.reserved()) {
    region.pending->waiters.push_back({std::move(e.caller), e.tag});
    return true;
  }
  const auto known = lease_tokens.find(it->first);
  if (known != lease_tokens.end() && leases.at(known->second).holder == e.caller.holder &&
      leases.at(known->second).region == region.record.uuid) {
    ReplyLease(e.tag, region, known->second);
    return true;
  }
  if (Status status = CheckThere(region); !status.ok()) {
    Answer(e.tag, std::move(status));
    return true;
  }
  const bool his_job = e.caller.holder.job == region.record.created_by;
  const auto lease =
      AddLease(region, e.caller, m.token, his_job ? NamRights::kAll : RightsOf(region, e.caller));
  lease.ok() ? ReplyLease(e.tag, region, *lease) : Answer(e.tag, lease.status());
  return true;
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamCreate& m) {
  if (RepeatCreate(e, m)) return;
  std::uint64_t bytes = 0;
  if (Status status = CheckCreate(e, m, bytes); !status.ok()) return Answer(e.tag, std::move(status));
  const JobId id = e.caller.holder.job;
  Job* job = FindJob(id);
  if (id.value != 0 && job == nullptr)
    return Answer(e.tag, Error(Code::kFailedPrecondition, "job {} does not run; its regions have ended", id));
  auto rooms = RoomsFor(m.nodes);
  if (!rooms.ok()) return Answer(e.tag, rooms.status());
  Status status = job != nullptr ? CheckJobQuota(*job, bytes) : Status::Ok();
  if (status.ok() && (job == nullptr || m.lifetime == wire::NamLifetime::kPersistent))
    status = CheckUserQuota(e.caller.user, e.caller.user_name, bytes);
  if (status.ok()) status = CheckFree(job, bytes);
  if (!status.ok()) return Answer(e.tag, std::move(status));
  auto layout = nam_book::PlaceSegments(m.segments, m.placement, *rooms);
  if (!layout) {
    std::string free;
    for (const nam_book::Room& room : *rooms)
      free += fmt::format("{}{} {}", free.empty() ? "" : ", ", room.node, SizeText(Bytes(room.free)));
    const auto largest = std::max_element(m.segments.begin(), m.segments.end(),
                                          [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    return Answer(e.tag,
                  Error(Code::kResourceExhausted,
                        "{} in {} segments asked, the largest of {}, which lie whole on one NAM node each; "
                        "free: {}; ask for less, for smaller segments, or see 'msactl region df'",
                        SizeText(Bytes(bytes)), m.segments.size(), SizeText(largest->bytes), free));
  }
  Reserve(e, m, *std::move(layout));
}

void NamBook::Impl::Reserve(nam_event::Request& e, wire::NamCreate& m, Layout layout) {
  Region region;
  RegionRecord& record = region.record;
  record.uuid = e.random;
  record.name = m.name.empty() ? FreshName(e.caller.holder.job) : std::move(m.name);
  record.token = std::move(m.token);
  record.owner = e.caller.user;
  record.user_name = e.caller.user_name;
  record.mode = m.mode;
  record.lifetime = m.lifetime;
  record.placement = m.placement;
  record.job = record.created_by = e.caller.holder.job;
  record.extents = layout.extents;
  record.segments = layout.segments;
  region.charges = nam_book::ChargesOf(layout);
  region.bytes = nam_book::SumOf(region.charges);
  Pending pending;
  pending.waiters.push_back({std::move(e.caller), e.tag});
  pending.limit = NamRequestTime(region.bytes);
  pending.deadline = now + pending.limit;
  pending.generation = record.generation;
  pending.done.resize(layout.extents.size(), false);
  pending.layout = std::move(layout);
  region.pending = std::move(pending);
  names.emplace(record.name, record.uuid);
  if (!record.token.empty()) create_tokens[{record.owner.uid, record.token}] = record.uuid;
  Region& kept = regions.emplace(record.uuid, std::move(region)).first->second;
  Account(kept, Sign::kAdd);
  waiting.insert(kept.record.uuid);
  for (std::size_t i = 0; i < kept.record.extents.size(); ++i) {
    nodes[*FindNode(kept.record.extents[i].node)].regions.insert(kept.record.uuid);
    AskAllocation(kept, i);
  }
  Wake(kept.pending->deadline);
}

void NamBook::Impl::AskAllocation(const Region& region, std::size_t extent) {
  const Pending& pending = *region.pending;
  const std::size_t node = *FindNode(pending.layout.extents[extent].node);
  wire::NamExtentAllocate m;
  m.request = ++last_ask;
  m.uuid = region.record.uuid;
  m.generation = pending.generation;
  m.mode = region.record.mode;
  for (const wire::NamSegmentPlace& segment : pending.layout.segments)
    if (segment.extent == extent) m.segments.push_back(segment);
  if (region.committed()) {
    m.copy_from = region.record.generation;
    for (const wire::NamSegmentPlace& segment : region.record.segments)
      if (segment.extent == extent) m.old_segments.push_back(segment);
  }
  asks[m.request] = {Ask::Kind::kAllocate, node, {m.uuid, m.generation}};
  Send(node, std::move(m));
}

// All extents are there.
void NamBook::Impl::Allocated(Region& region) {
  region.reserved() ? CommitCreate(region) : CommitResize(region);
}

void NamBook::Impl::SendCommits(const Region& region) {
  const ExtentKey key{region.record.uuid, region.record.generation};
  for (const RegionExtent& extent : region.record.extents) {
    const auto node = FindNode(extent.node);
    if (!node) continue;
    const auto there = nodes[*node].extents.find(key);
    if (there != nodes[*node].extents.end()) there->second.state = wire::NamExtentState::kCommitted;
    Send(*node, wire::NamExtentCommit{key.first, key.second});
  }
}

void NamBook::Impl::CommitCreate(Region& region) {
  RegionRecord& record = region.record;
  const std::vector<Waiter> waiters = std::move(region.pending->waiters);
  Recharge(region, [&] {
    record.phase = RegionPhase::kCommitted;
    region.pending.reset();
  });
  waiting.erase(record.uuid);
  record.created_at = now;
  // The first is who made it; the others repeat his request.
  std::vector<Result<LeaseId>> granted;
  for (const Waiter& waiter : waiters)
    granted.push_back(!granted.empty() && waiter.caller.holder == waiters.front().caller.holder
                          ? granted.front()
                          : AddLease(region, waiter.caller, record.token, NamRights::kAll));
  const Result<LeaseId>& first = granted.front();
  if (first.ok() && record.job.value == 0 && record.lifetime == wire::NamLifetime::kLease)
    record.life_lease = *first;
  Put(region);
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (granted[i].ok())
      ReplyLease(waiters[i].tag, region, *granted[i]);
    else
      Answer(waiters[i].tag, granted[i].status());
  }
  // After the answers: a namd takes a lease on what it has still as pending, and the next welcome repeats it.
  SendCommits(region);
  if (!first.ok()) BeginRemoval(region);
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamResize& m) {
  auto found = Select(m.region);
  if (!found.ok()) return Answer(e.tag, found.status());
  Region& region = **found;
  RegionRecord& record = region.record;
  if (Status status = CheckOwner(region, e.caller, "resize"); !status.ok()) return Answer(e.tag, status);
  if (Status status = CheckThere(region); !status.ok()) return Answer(e.tag, status);
  if (!region.leases.empty())
    return Answer(e.tag,
                  Error(Code::kFailedPrecondition,
                        "region '{}' is in use and cannot be resized: {}; try again when they have closed it",
                        record.name, HoldersText(region.leases)));
  if (m.segments.size() != record.segments.size())
    return Answer(e.tag,
                  Error(Code::kInvalidArgument, "region '{}' has {} segments, {} sizes given; give one each",
                        record.name, record.segments.size(), m.segments.size()));
  Pending next;
  std::vector<wire::NamSegmentSpec> specs;
  for (const Bytes size : m.segments) specs.push_back({size, 1});
  if (Status status = CheckSegments(specs, next.bytes); !status.ok()) return Answer(e.tag, status);
  next.layout = nam_book::Resized({record.extents, record.segments}, m.segments);
  next.charges = nam_book::ChargesOf(next.layout);
  const std::uint64_t more = next.bytes > region.bytes ? next.bytes - region.bytes : 0;
  const Job* job = FindJob(record.job);
  Status status = job != nullptr ? CheckJobQuota(*job, more) : Status::Ok();
  if (status.ok() && ChargedToUser(record)) status = CheckUserQuota(record.owner, record.user_name, more);
  // Both lie there until the bytes that stay are copied; what is free must hold the new one.
  if (status.ok()) status = CheckFree(nullptr, next.bytes);
  for (std::size_t i = 0; i < next.charges.size() && status.ok(); ++i) {
    const Node& node = nodes[*FindNode(next.layout.extents[i].node)];
    const std::uint64_t free = node.capacity > node.used ? node.capacity - node.used : 0;
    if (next.charges[i] > free)
      status =
          Error(Code::kResourceExhausted,
                "region '{}': its part on {} is to have {}, and the old one stays until it is copied; {} are "
                "free there; remove regions that are not needed",
                record.name, node.spec.name, SizeText(Bytes(next.charges[i])), SizeText(Bytes(free)));
  }
  if (!status.ok()) return Answer(e.tag, std::move(status));
  next.waiters.push_back({std::move(e.caller), e.tag});
  next.limit = NamRequestTime(next.bytes);
  next.deadline = now + next.limit;
  next.generation = FreshGeneration(region);
  next.done.resize(next.layout.extents.size(), false);
  Recharge(region, [&] { region.pending = std::move(next); });
  waiting.insert(record.uuid);
  for (std::size_t i = 0; i < record.extents.size(); ++i) AskAllocation(region, i);
  Wake(region.pending->deadline);
}

// Not one that is still being freed after a resize that failed.
Generation NamBook::Impl::FreshGeneration(const Region& region) const {
  Generation next = region.record.generation;
  const auto taken = [&](const Node& node) { return node.ghosts.contains({region.record.uuid, next}); };
  do {
    next = Generation(next.value + 1);
  } while (std::any_of(nodes.begin(), nodes.end(), taken));
  return next;
}

void NamBook::Impl::CommitResize(Region& region) {
  RegionRecord& record = region.record;
  const ExtentKey old{record.uuid, record.generation};
  const Layout before{record.extents, record.segments};
  const std::vector<std::uint64_t> charged = region.charges;
  Pending next;
  Recharge(region, [&] {
    next = *std::exchange(region.pending, std::nullopt);
    record.generation = next.generation;
    record.extents = next.layout.extents;
    record.segments = next.layout.segments;
    region.charges = next.charges;
    region.bytes = next.bytes;
  });
  waiting.erase(record.uuid);
  Put(region);
  SendCommits(region);
  for (std::size_t e = 0; e < before.extents.size(); ++e)
    if (const auto node = FindNode(before.extents[e].node)) AddGhost(*node, old, charged[e]);
  for (const Waiter& waiter : next.waiters) Answer(waiter.tag, Status::Ok());
}

void NamBook::Impl::FailPending(RegionUuid uuid, const Status& why) {
  Region& region = *Find(uuid);
  Account(region, Sign::kTake);
  Pending pending = *std::exchange(region.pending, std::nullopt);
  waiting.erase(uuid);
  std::erase_if(asks, [&](const auto& entry) {
    return entry.second.extent == ExtentKey{uuid, pending.generation};
  });
  const std::vector<std::uint64_t> charges = region.reserved() ? region.charges : pending.charges;
  if (region.reserved()) {
    Forget(region);
  } else {
    Account(region, Sign::kAdd);
  }
  for (std::size_t e = 0; e < charges.size(); ++e)
    if (const auto node = FindNode(pending.layout.extents[e].node))
      AddGhost(*node, {uuid, pending.generation}, charges[e]);
  for (const Waiter& waiter : pending.waiters) Answer(waiter.tag, why);
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamWithdraw& m) {
  const auto it = create_tokens.find({e.caller.user.uid, m.token});
  if (m.token.empty() || it == create_tokens.end()) return Answer(e.tag, Status::Ok());
  Region& region = *Find(it->second);
  // Who repeats a request may do so by another connection, so that the token is all that names him.
  if (region.reserved())
    FailPending(region.record.uuid, Status(Code::kCancelled, "the request was withdrawn"));
  else if (region.committed())
    BeginRemoval(region);
  Answer(e.tag, Status::Ok());
}

void NamBook::Impl::DropWaiters(const std::function<bool(const NamCaller&)>& gone, const std::string& why) {
  std::vector<RegionUuid> nobody;
  for (const RegionUuid& uuid : waiting) {
    Region& region = *Find(uuid);
    // A resize goes on: it belongs to the region, not to who asked.
    if (!region.reserved()) continue;
    std::erase_if(region.pending->waiters, [&](const Waiter& waiter) {
      if (!gone(waiter.caller)) return false;
      Answer(waiter.tag, Error(Code::kCancelled, "{}", why));
      return true;
    });
    if (region.pending->waiters.empty()) nobody.push_back(uuid);
  }
  for (const RegionUuid& uuid : nobody) FailPending(uuid, Status(Code::kCancelled, why));
}

}  // namespace msa
