#include <algorithm>

#include "controller_impl.h"

namespace msa {
namespace {

// Of a long list, in a reason for people.
constexpr std::size_t kShown = 4;

// From when on `after` counts; nullopt: neither started nor ended.
std::optional<Instant> StartOf(const JobRecord& other) {
  if (other.started_at != Instant()) return other.started_at;
  if (IsFinal(other.state)) return other.ended_at;
  return std::nullopt;
}

enum class Standing { kFree, kWaits, kNever };

Standing StandingOf(const JobSpec& spec) {
  const auto count = [&](DependencyState state) {
    return std::count_if(spec.dependencies.begin(), spec.dependencies.end(),
                         [state](const Dependency& d) { return d.state == state; });
  };
  const auto all = static_cast<std::ptrdiff_t>(spec.dependencies.size());
  const auto met = count(DependencyState::kMet);
  const auto never = count(DependencyState::kNever);
  if (met == all || (spec.dependency_any && met > 0)) return Standing::kFree;
  if (never == all || (!spec.dependency_any && never > 0)) return Standing::kNever;
  return Standing::kWaits;
}

}  // namespace

Status Controller::Impl::CheckDependencies(const JobSpec& spec) const {
  for (const Dependency& dependency : spec.dependencies)
    if (dependency.job > last_job)
      return Error(Code::kNotFound, "dependency {}: no job {} was submitted yet; see 'msactl job list --all'",
                   DependencyText(dependency), dependency.job);
  return Status::Ok();
}

void Controller::Impl::Enlist(const Job& job) {
  const JobRecord& record = job.record;
  same_name[{record.user.uid, record.spec.name}].insert(record.id);
  if (record.state != JobState::kPending) return;
  for (const Dependency& dependency : record.spec.dependencies)
    if (dependency.kind != DependencyKind::kSingleton && dependency.state == DependencyState::kOpen)
      dependents[dependency.job].insert(record.id);
  if (record.spec.dependencies.empty() && record.spec.begin_at_ms == 0) return;
  held.insert(record.id);
  unsettled.insert(record.id);
}

void Controller::Impl::Delist(const Job& job) {
  const JobRecord& record = job.record;
  held.erase(record.id);
  unsettled.erase(record.id);
  for (const Dependency& dependency : record.spec.dependencies) {
    const auto it = dependents.find(dependency.job);
    if (it == dependents.end()) continue;
    it->second.erase(record.id);
    if (it->second.empty()) dependents.erase(it);
  }
  const auto namesakes = same_name.find({record.user.uid, record.spec.name});
  if (namesakes == same_name.end()) return;
  namesakes->second.erase(record.id);
  if (namesakes->second.empty()) {
    same_name.erase(namesakes);
  } else if (held.contains(*namesakes->second.begin())) {
    unsettled.insert(*namesakes->second.begin());
  }
}

bool Controller::Impl::Judge(const Job& job, Dependency& dependency) {
  if (dependency.state != DependencyState::kOpen) return false;
  const auto decide = [&](bool met) {
    dependency.state = met ? DependencyState::kMet : DependencyState::kNever;
    return true;
  };
  if (dependency.kind == DependencyKind::kSingleton)
    return *same_name.at({job.record.user.uid, job.record.spec.name}).begin() == job.record.id &&
           decide(true);
  const Job* other = Find(dependency.job);
  // Pruned: it has ended, nobody knows how.
  if (other == nullptr)
    return decide(dependency.kind == DependencyKind::kAfter || dependency.kind == DependencyKind::kAfterAny);
  const bool ended = IsFinal(other->record.state);
  switch (dependency.kind) {
    case DependencyKind::kAfter: {
      const auto from = StartOf(other->record);
      return from && *from + Millis(std::int64_t{1000} * dependency.delay_s) <= now && decide(true);
    }
    case DependencyKind::kAfterOk:
      return ended && decide(other->record.state == JobState::kCompleted);
    case DependencyKind::kAfterNotOk:
      return ended && decide(other->record.state != JobState::kCompleted);
    default:
      return ended && decide(true);
  }
}

void Controller::Impl::TellDependents(const Job& job) {
  const auto it = dependents.find(job.record.id);
  if (it == dependents.end()) return;
  for (const JobId id : it->second) {
    Job& waiting = *Find(id);
    unsettled.insert(id);
    bool changed = false;
    for (Dependency& dependency : waiting.record.spec.dependencies)
      if (dependency.job == job.record.id) changed = Judge(waiting, dependency) || changed;
    if (changed) Put(waiting);
  }
  // `after:ID+MINUTES` is still open.
  std::erase_if(it->second, [&](JobId id) {
    const auto& list = Find(id)->record.spec.dependencies;
    return std::none_of(list.begin(), list.end(), [&](const Dependency& d) {
      return d.job == job.record.id && d.state == DependencyState::kOpen;
    });
  });
  if (it->second.empty()) dependents.erase(it);
}

std::string Controller::Impl::WhyNever(const Dependency& dependency) const {
  const Job* other = Find(dependency.job);
  const std::string text = DependencyText(dependency);
  if (other == nullptr)
    return fmt::format("{}: job {} is no longer in the history, how it ended is not known", text,
                       dependency.job);
  const JobRecord& record = other->record;
  const std::string code =
      record.state == JobState::kFailed ? fmt::format(" with code {}", record.exit_code) : "";
  return fmt::format("{}: job {} ended as {}{}", text, dependency.job, StateName(record.state), code);
}

std::string Controller::Impl::HoldReason(const Job& job) const {
  const JobSpec& spec = job.record.spec;
  const Standing standing = StandingOf(spec);
  if (standing == Standing::kFree) return "BeginTime: its begin is still to come";
  const bool never = standing == Standing::kNever;
  std::vector<std::string> parts;
  for (const Dependency& dependency : spec.dependencies) {
    if (never && dependency.state == DependencyState::kNever) parts.push_back(WhyNever(dependency));
    if (!never && dependency.state == DependencyState::kOpen) parts.push_back(DependencyText(dependency));
  }
  const std::size_t more = parts.size() > kShown ? parts.size() - kShown : 0;
  std::string list;
  for (std::size_t i = 0; i + more < parts.size(); ++i) list += (i == 0 ? "" : "; ") + parts[i];
  if (more > 0) list += fmt::format(" and {} more", more);
  if (never) return "DependencyNeverSatisfied: " + list;
  const bool choice = spec.dependency_any && parts.size() > 1;
  return fmt::format("Dependency: waits for {}{}", choice ? "one of " : "", list);
}

void Controller::Impl::Settle(Job& job) {
  JobRecord& record = job.record;
  bool changed = false;
  for (Dependency& dependency : record.spec.dependencies) {
    changed = Judge(job, dependency) || changed;
    if (dependency.kind != DependencyKind::kAfter || dependency.state != DependencyState::kOpen) continue;
    const Job* other = Find(dependency.job);
    if (const auto from = other == nullptr ? std::nullopt : StartOf(other->record))
      Arm(*from + Millis(std::int64_t{1000} * dependency.delay_s), record.id);
  }
  if (changed) Put(job);
  const Standing standing = StandingOf(record.spec);
  const Instant begin = FromUnixMillis(record.spec.begin_at_ms);
  if (standing == Standing::kFree && begin <= now) {
    held.erase(record.id);
    job.wait_reason = "not yet looked at by the scheduler";
    job.expected_start = Instant();
    Change(job);
    return NeedPass();
  }
  const std::string reason = HoldReason(job);
  if (standing == Standing::kNever && record.spec.kill_on_invalid_dep)
    return Finish(job, {.state = JobState::kCancelled, .reason = reason});
  if (standing == Standing::kFree) {
    job.expected_start = begin;
    Arm(begin, record.id);
  }
  if (job.wait_reason == reason) return;
  job.wait_reason = reason;
  Change(job);
}

Status Controller::Impl::CheckHeld() const {
  std::size_t alive = 0;
  for (const auto& [key, ids] : same_name) {
    alive += ids.size();
    for (const JobId id : ids)
      if (!pending.contains(id) && !active.contains(id))
        return Error(Code::kInternal, "job {} named '{}' is counted and has ended", id, key.second);
  }
  if (alive != pending.size() + active.size())
    return Error(Code::kInternal, "{} jobs by name, {} wait or run", alive, pending.size() + active.size());
  for (const auto& [other, ids] : dependents)
    for (const JobId id : ids)
      if (Find(id) == nullptr || IsFinal(Find(id)->record.state))
        return Error(Code::kInternal, "job {} waits for job {} and has ended", id, other);
  for (const JobId id : held)
    if (!pending.contains(id)) return Error(Code::kInternal, "job {} is held back and does not wait", id);
  for (const JobId id : pending) {
    const JobSpec& spec = Find(id)->record.spec;
    const bool free = StandingOf(spec) == Standing::kFree;
    if (!held.contains(id) && !free) return Error(Code::kInternal, "job {} is not held back", id);
    if (unsettled.contains(id)) continue;
    if (held.contains(id) && free && spec.begin_at_ms == 0)
      return Error(Code::kInternal, "job {} is held back for nothing", id);
    for (const Dependency& dependency : spec.dependencies) {
      const Job* other = Find(dependency.job);
      if (dependency.state != DependencyState::kOpen || dependency.kind == DependencyKind::kSingleton)
        continue;
      if (dependency.kind != DependencyKind::kAfter && (other == nullptr || IsFinal(other->record.state)))
        return Error(Code::kInternal, "job {} waits for job {}, which has ended", id, dependency.job);
      const auto it = dependents.find(dependency.job);
      if (it == dependents.end() || !it->second.contains(id))
        return Error(Code::kInternal, "job {} waits for job {} unknown to it", id, dependency.job);
    }
  }
  return Status::Ok();
}

void Controller::Impl::SettleAll() {
  while (!unsettled.empty()) {
    const JobId id = *unsettled.begin();
    unsettled.erase(unsettled.begin());
    if (held.contains(id)) Settle(*Find(id));
  }
}

}  // namespace msa
