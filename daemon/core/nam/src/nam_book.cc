#include "msa/nam/nam_book.h"

#include <algorithm>

#include "book_impl.h"

namespace msa {

Bytes RegionRecord::bytes() const {
  std::uint64_t sum = 0;
  for (const wire::NamSegmentPlace& segment : segments) sum += segment.bytes.value;
  return Bytes(sum);
}

NamBook::Impl::Impl(std::vector<NamNodeSpec> specs, NamPolicy p, std::uint64_t s) : policy(p), system(s) {
  for (NamNodeSpec& spec : specs) {
    if (spec.capacity.value == 0) continue;
    spec.capacity = std::min(spec.capacity, Bytes(kMaxNamBytes));
    Node node;
    node.capacity = node.excused = spec.capacity.value;
    node.spec = std::move(spec);
    node_index.emplace(node.spec.name, nodes.size());
    nodes.push_back(std::move(node));
  }
}

NamBook::NamBook(std::vector<NamNodeSpec> nodes, NamPolicy policy, std::uint64_t system)
    : impl_(std::make_unique<Impl>(std::move(nodes), policy, system)) {}

NamBook::~NamBook() = default;

std::vector<NamEffect> NamBook::On(NamEvent event, Instant now) {
  impl_->now = now;
  impl_->out.clear();
  const std::int64_t free = impl_->Free();
  std::visit([this](auto& e) { impl_->Handle(e); }, event);
  if (impl_->Free() > free) impl_->Emit(nam_effect::MoreFree{});
  return std::exchange(impl_->out, {});
}

Bytes NamBook::capacity() const { return Bytes(impl_->Capacity()); }

Bytes NamBook::persistent() const {
  std::uint64_t sum = 0;
  for (const Impl::Node& node : impl_->nodes)
    if (node.up) sum += node.used - node.by_jobs;
  return Bytes(sum);
}

Bytes NamBook::HeldBy(JobId job) const {
  const Impl::Job* found = impl_->FindJob(job);
  return Bytes(found == nullptr ? 0 : Impl::Held(*found));
}

Status NamBook::CheckInvariants() const { return impl_->CheckInvariants(); }

void NamBook::Impl::Handle(nam_event::Request& e) {
  std::visit([&](auto& message) { Do(e, message); }, e.request);
}

// One wish at a time, the earliest: a create a millisecond must not leave 30,000 of them.
void NamBook::Impl::Wake(Instant at) {
  if (armed && *armed > now && *armed <= at) return;
  armed = at;
  Emit(nam_effect::WakeAt{at});
}

void NamBook::Impl::Handle(nam_event::Tick&) {
  armed.reset();
  std::vector<RegionUuid> late;
  std::optional<Instant> next;
  const auto look = [&](Instant at) {
    if (at <= now) return true;
    next = next ? std::min(*next, at) : at;
    return false;
  };
  for (const RegionUuid& uuid : waiting) {
    Region& region = *Find(uuid);
    if (region.pending && look(region.pending->deadline)) late.push_back(uuid);
    if (!region.removers.empty() && look(region.removal_told))
      for (const std::uint64_t tag : std::exchange(region.removers, {})) Answer(tag, Status::Ok());
  }
  std::erase_if(waiting, [&](const RegionUuid& uuid) {
    const Region& region = *Find(uuid);
    return !region.pending && region.removers.empty();
  });
  for (const RegionUuid& uuid : late) {
    const Region& region = *Find(uuid);
    std::string silent;
    for (std::size_t e = 0; e < region.pending->done.size(); ++e)
      if (!region.pending->done[e])
        silent += (silent.empty() ? "" : ", ") + region.pending->layout.extents[e].node;
    FailPending(uuid,
                Error(Code::kUnavailable, "region '{}': namd of {} has not answered for {} s; try again",
                      region.record.name, silent, region.pending->limit.count() / 1000));
  }
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].retry_frees && look(*nodes[n].retry_frees)) AskFreesAgain(n);
  EndOrphans(look);
  EndLateScans(look);
  if (next) Wake(*next);
}

}  // namespace msa
