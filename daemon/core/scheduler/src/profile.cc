#include "profile.h"

#include <algorithm>

namespace msa {
namespace {

// Steps of what runs now; more ends than this are rounded up to the next step kept. A pass intersects them
// again and again: 128 steps of 2,000 nodes cost it tens of milliseconds, and so do 26 of 10,000.
constexpr std::size_t kMaxReleaseSteps = 128;
constexpr std::size_t kMinReleaseSteps = 16;
constexpr std::size_t kNodeSteps = 256 * 1024;
// A job that is past its limit is about to be ended.
constexpr Millis kOverrun{1000};

}  // namespace

Profile::Profile(const ClusterView& view, const CoreLayout& layout, Instant now)
    : view_(view), layout_(layout), now_(now), free_now_(layout, *view.topology) {
  for (const RunningJob& job : view.running)
    for (const NodeShare& share : job.held) free_now_.Take(share);
}

Instant Profile::EndOf(Instant start, const std::optional<Millis>& limit) {
  if (!limit || start >= kSomeday || *limit > kSomeday - start) return kNever;
  return start + *limit;
}

void Profile::BuildSteps() {
  if (!steps_.empty()) return;
  std::vector<std::pair<Instant, const Placement*>> releases;
  const auto add = [&](const RunningJob& job) {
    const Instant end = job.expected_end >= kSomeday ? kSomeday : std::max(job.expected_end, now_ + kOverrun);
    releases.emplace_back(end, &job.held);
  };
  for (const RunningJob& job : view_.running) add(job);
  for (const RunningJob& job : started_) add(job);
  std::stable_sort(releases.begin(), releases.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto dated = static_cast<std::size_t>(
      std::find_if(releases.begin(), releases.end(), [](const auto& r) { return r.first == kSomeday; }) -
      releases.begin());
  const std::size_t limit =
      std::clamp(kNodeSteps / std::max<std::size_t>(1, layout_.nodes()), kMinReleaseSteps, kMaxReleaseSteps);
  const std::size_t chunk = dated / limit + 1;
  steps_.push_back({now_, free_now_});
  for (std::size_t i = 0; i < dated;) {
    std::size_t end = std::min(dated, i + chunk);
    while (end < dated && releases[end].first == releases[end - 1].first) ++end;
    Step step{releases[end - 1].first, steps_.back().free};
    for (; i < end; ++i)
      for (const NodeShare& share : *releases[i].second) step.free.Give(share);
    steps_.push_back(std::move(step));
  }
  Step last{kSomeday, steps_.back().free};
  for (std::size_t i = dated; i < releases.size(); ++i)
    for (const NodeShare& share : *releases[i].second) last.free.Give(share);
  steps_.push_back(std::move(last));
}

void Profile::BuildPrefixes() {
  if (!prefixes_.empty()) return;
  prefixes_.reserve(steps_.size());
  for (const Step& step : steps_) {
    prefixes_.push_back(prefixes_.empty() ? step.free : prefixes_.back());
    prefixes_.back().Intersect(step.free);
  }
}

const FreeSet& Profile::FreeUntil(Instant end) {
  // Without reservations nothing becomes scarcer with time.
  if (steps_.empty()) return free_now_;
  BuildPrefixes();
  std::size_t last = 0;
  while (last + 1 < steps_.size() && steps_[last + 1].at < end) ++last;
  return prefixes_[last];
}

const FreeSet& Profile::FreeAtLast() {
  BuildSteps();
  return steps_[steps_.size() - 2].free;
}

std::optional<Profile::Slot> Profile::Earliest(const JobRequest& request, const Placer& placer) {
  BuildSteps();
  for (std::size_t first = 0; first < steps_.size(); ++first) {
    auto placement = placer.Place(request, steps_[first].free);
    if (!placement) continue;
    const Instant start = steps_[first].at;
    const Instant end = EndOf(start, request.time_limit);
    if (first + 1 < steps_.size() && steps_[first + 1].at < end) {
      FreeSet free = steps_[first].free;
      for (std::size_t s = first + 1; s < steps_.size() && steps_[s].at < end; ++s)
        free.Intersect(steps_[s].free);
      placement = placer.Place(request, free);
      if (!placement) continue;
    }
    return Slot{start, std::move(*placement)};
  }
  return std::nullopt;
}

std::size_t Profile::StepAt(Instant at) {
  std::size_t i = steps_.size();
  while (steps_[i - 1].at > at) --i;
  if (steps_[i - 1].at == at) return i - 1;
  Step step{at, steps_[i - 1].free};
  steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(i), std::move(step));
  return i;
}

void Profile::Reserve(const Placement& placement, Instant start, Instant end) {
  BuildSteps();
  const std::size_t first = StepAt(std::max(start, now_));
  const std::size_t last = end >= kSomeday ? steps_.size() : StepAt(end);
  for (std::size_t s = first; s < last; ++s)
    for (const NodeShare& share : placement) steps_[s].free.Take(share);
  prefixes_.clear();
}

void Profile::StartNow(const Placement& placement, Instant end) {
  for (const NodeShare& share : placement) free_now_.Take(share);
  if (steps_.empty()) {
    started_.push_back({JobId(), end, placement});
    return;
  }
  const std::size_t last = end >= kSomeday ? steps_.size() : StepAt(std::max(end, now_ + kOverrun));
  // A prefix contains step 0 and so loses the cores whatever its length; a step made by StepAt needs a new
  // table.
  const bool same_steps = prefixes_.size() == steps_.size();
  for (std::size_t s = 0; s < last; ++s)
    for (const NodeShare& share : placement) steps_[s].free.Take(share);
  if (!same_steps) {
    prefixes_.clear();
    return;
  }
  for (FreeSet& prefix : prefixes_)
    for (const NodeShare& share : placement) prefix.Take(share);
}

}  // namespace msa
