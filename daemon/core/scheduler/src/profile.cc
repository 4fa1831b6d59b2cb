#include "profile.h"

#include <algorithm>

namespace msa {
namespace {

// Steps of what runs now; more ends than this are rounded up to the next step kept. Each is a possible start
// of each job that is planned.
constexpr std::size_t kMaxReleaseSteps = 128;
constexpr std::size_t kMinReleaseSteps = 16;
constexpr std::size_t kNodeSteps = 256 * 1024;
// Each costs a free set, and an update with each start and reservation.
constexpr std::size_t kMarks = 8;
// Bounds of larger systems of very large nodes would take more memory than they save time.
constexpr std::size_t kMaxBound = 16 * 1024;

}  // namespace

Profile::Profile(const ClusterView& view, const CoreLayout& layout, Instant now)
    : view_(view),
      layout_(layout),
      now_(now),
      free_now_(layout, *view.topology),
      countable_reserved_(layout.nodes(), false) {
  std::vector<Piece> pieces;
  for (const RunningJob& job : view.running) {
    for (const NodeShare& share : job.held) AddPieces(layout_, share, pieces);
    AddPiece({job.nam, job.gateways}, pieces);
  }
  free_now_.Bound({view.nam_capacity, view.gateway_capacity});
  free_now_.Take(pieces);
}

Instant Profile::EndOf(Instant start, const std::optional<Millis>& limit) {
  if (!limit || start >= kSomeday || *limit > kSomeday - start) return kNever;
  return start + *limit;
}

std::vector<Piece> Profile::PiecesOf(const Taken& taken) const {
  std::vector<Piece> pieces;
  pieces.reserve(taken.placement.size() + 1);
  for (const NodeShare& share : taken.placement) AddPieces(layout_, share, pieces);
  AddPiece(taken.system, pieces);
  return pieces;
}

void Profile::BuildSteps() {
  if (!steps_.empty()) return;
  // Of a running job, or one that was started in this pass.
  struct Release {
    Instant at;
    const RunningJob* job;
    const std::vector<Piece>* pieces;
  };
  std::vector<Release> releases;
  const auto end_of = [&](Instant end) {
    return end >= kSomeday ? kSomeday : std::max(end, now_ + kOverrun);
  };
  for (const RunningJob& job : view_.running) releases.push_back({end_of(job.expected_end), &job, nullptr});
  for (const Started& job : started_) releases.push_back({end_of(job.end), nullptr, &job.pieces});
  std::stable_sort(releases.begin(), releases.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  const auto dated = static_cast<std::size_t>(
      std::find_if(releases.begin(), releases.end(), [](const auto& r) { return r.at == kSomeday; }) -
      releases.begin());
  const std::size_t limit =
      std::clamp(kNodeSteps / std::max<std::size_t>(1, layout_.nodes()), kMinReleaseSteps, kMaxReleaseSteps);
  const std::size_t chunk = dated / limit + 1;
  const auto give = [&](Step& step, std::size_t index) {
    const Release& release = releases[index];
    if (release.pieces != nullptr) {
      step.gives.insert(step.gives.end(), release.pieces->begin(), release.pieces->end());
      return;
    }
    for (const NodeShare& share : release.job->held) AddPieces(layout_, share, step.gives);
    AddPiece({release.job->nam, release.job->gateways}, step.gives);
  };
  steps_.push_back({now_, {}, {}, {}});
  for (std::size_t i = 0; i < dated;) {
    std::size_t end = std::min(dated, i + chunk);
    while (end < dated && releases[end].at == releases[end - 1].at) ++end;
    Step step{releases[end - 1].at, {}, {}, {}};
    for (; i < end; ++i) give(step, i);
    steps_.push_back(std::move(step));
  }
  Step last{kSomeday, {}, {}, {}};
  for (std::size_t i = dated; i < releases.size(); ++i) give(last, i);
  steps_.push_back(std::move(last));
}

void Profile::Apply(const Step& step, FreeSet& free) {
  free.Give(step.gives);
  free.Take(step.takes);
}

// What of `before`, the state ahead of step `first`, stays free in all steps up to `end`.
FreeSet Profile::Throughout(const FreeSet& before, std::size_t first, std::size_t end) const {
  FreeSet kept = before;
  bool countable = false;
  for (std::size_t s = first; s < end; ++s) {
    kept.TakeCores(steps_[s].takes);
    for (const Piece& piece : steps_[s].takes) countable = countable || piece.countable();
  }
  if (!countable) return kept;
  // Counts have no identity: the least of all steps, not what was taken, is what stays.
  FreeSet then = before;
  for (std::size_t s = first; s < end; ++s) {
    then.GiveCountable(steps_[s].gives);
    then.TakeCountable(steps_[s].takes);
    for (const Piece& piece : steps_[s].takes)
      if (piece.countable()) kept.LowerCountable(piece.node, then);
  }
  return kept;
}

const FreeSet& Profile::FreeUntil(Instant end) {
  std::size_t steps = steps_.empty() ? 0 : std::max<std::size_t>(1, FirstStepFrom(end));
  while (steps > 0 && steps_[steps - 1].takes.empty()) --steps;
  // Without reservations nothing becomes scarcer with time.
  if (steps == 0) return free_now_;
  const Instant last = steps_[steps - 1].at;
  for (const Kept& kept : kept_)
    if (kept.at == last) return kept.free;
  kept_.push_back({last, Throughout(free_now_, 0, steps)});
  return kept_.back().free;
}

FreeSet Profile::FreeAtLast() {
  BuildSteps();
  FreeSet free = free_now_;
  for (std::size_t s = 0; s + 1 < steps_.size(); ++s) Apply(steps_[s], free);
  return free;
}

// From the state after `applied` steps to that after `step`.
void Profile::Advance(FreeSet& free, std::size_t& applied, std::size_t step) const {
  const Kept* nearest = nullptr;
  for (const Kept& mark : marks_)
    if (mark.at <= steps_[step].at && (nearest == nullptr || mark.at > nearest->at)) nearest = &mark;
  if (nearest != nullptr && (applied == 0 || nearest->at > steps_[applied - 1].at)) {
    free = nearest->free;
    applied = FirstStepFrom(nearest->at + Millis(1));
  }
  for (; applied <= step; ++applied) Apply(steps_[applied], free);
}

void Profile::Mark(Instant at, FreeSet free) {
  if (at >= kSomeday) return;
  for (const Kept& mark : marks_)
    if (mark.at == at) return;
  if (marks_.size() == kMarks) marks_.erase(marks_.begin());
  marks_.push_back({at, std::move(free)});
}

std::optional<Profile::Slot> Profile::Earliest(const JobRequest& request, const Placer& placer) {
  BuildSteps();
  FreeSet free = free_now_;
  std::size_t applied = 0;
  for (std::size_t first = 0; first < steps_.size(); ++first) {
    Step& step = steps_[first];
    if (!step.bound.empty() && !placer.MayFit(request, step.bound)) continue;
    Advance(free, applied, first);
    if (free.by_free().size() <= kMaxBound) step.bound = free.by_free();
    if (!placer.Fits(request, free)) continue;
    const std::size_t end = FirstStepFrom(EndOf(step.at, request.time_limit));
    const auto takes = [](const Step& later) { return !later.takes.empty(); };
    const auto from = steps_.begin() + static_cast<std::ptrdiff_t>(first) + 1;
    const auto to = steps_.begin() + static_cast<std::ptrdiff_t>(std::max(end, first + 1));
    auto placement = std::any_of(from, to, takes) ? placer.Place(request, Throughout(free, first + 1, end))
                                                  : placer.Place(request, free);
    if (!placement) continue;
    Mark(step.at, std::move(free));
    return Slot{step.at, std::move(*placement)};
  }
  return std::nullopt;
}

// The first step that is not before `at`.
std::size_t Profile::FirstStepFrom(Instant at) const {
  return static_cast<std::size_t>(
      std::lower_bound(steps_.begin(), steps_.end(), at,
                       [](const Step& step, Instant when) { return step.at < when; }) -
      steps_.begin());
}

Profile::Step& Profile::StepAt(Instant at) {
  const std::size_t i = FirstStepFrom(at);
  if (i < steps_.size() && steps_[i].at == at) return steps_[i];
  // As much is free as at the step before.
  Step step{at, {}, {}, steps_[i - 1].bound};
  return *steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(i), std::move(step));
}

void Profile::Reserve(const Taken& taken, Instant start, Instant end) {
  BuildSteps();
  start = std::max(start, now_);
  if (end <= start) return;
  const std::vector<Piece> pieces = PiecesOf(taken);
  std::vector<Piece>& takes = StepAt(start).takes;
  takes.insert(takes.end(), pieces.begin(), pieces.end());
  for (const Piece& piece : pieces) {
    system_reserved_ = system_reserved_ || piece.of_system();
    if (piece.memory != 0 || piece.gpus != 0) countable_reserved_[piece.node] = true;
  }
  if (end < kSomeday) {
    std::vector<Piece>& gives = StepAt(end).gives;
    gives.insert(gives.end(), pieces.begin(), pieces.end());
  }
  std::erase_if(kept_, [&](const Kept& kept) { return kept.at >= start; });
  for (Kept& mark : marks_)
    if (start <= mark.at && mark.at < end) mark.free.Take(pieces);
}

void Profile::StartNow(const Taken& taken, Instant end) {
  std::vector<Piece> pieces = PiecesOf(taken);
  free_now_.Take(pieces);
  if (steps_.empty()) {
    started_.push_back({end, std::move(pieces)});
    return;
  }
  if (end < kSomeday) {
    std::vector<Piece>& gives = StepAt(end).gives;
    gives.insert(gives.end(), pieces.begin(), pieces.end());
  }
  for (Kept& mark : marks_)
    if (mark.at < end) mark.free.Take(pieces);
  // It runs from the first step on: what stays free throughout any of them loses its cores. Of counts that is
  // so only where they do not shrink later.
  const bool counts_shrink = std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.of_system() ? system_reserved_ : piece.countable() && countable_reserved_[piece.node];
  });
  if (counts_shrink) return kept_.clear();
  for (Kept& kept : kept_) kept.free.Take(pieces);
}

}  // namespace msa
