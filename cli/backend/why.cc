#include "backend/why.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "msa/job/records.h"
#include "msa/job/slurm_reasons.h"

#include "output/text.h"

namespace msa::cli {
namespace {

// As many as one screen takes.
constexpr std::size_t kMaxBlockers = 10;

struct Known {
  std::string_view word;  // or its beginning, if it ends with '*'
  std::string_view explanation;
};
// {job}: its id; {partition}; {qos}; {account}. What helps: RemedyText.
constexpr auto kKnown = std::to_array<Known>({
    {"", "Slurm has not looked at it yet"},
    {"Resources", "the nodes or cores that it asks for in partition '{partition}' are in use"},
    {"Priority", "jobs of higher priority in partition '{partition}' come first"},
    {"Dependency", "it waits for other jobs"},
    {"DependencyNeverSatisfied",
     "a job that it depends on ended otherwise than it demands: it can never start"},
    {"BeginTime", "its time of --begin has not come"},
    {"JobHeldUser", "its user holds it"},
    {"JobHeldAdmin", "an operator holds it"},
    {"JobHoldMaxRequeue", "it was requeued too often and is held"},
    {"launch_failed_requeued_held", "its start failed, and Slurm holds it"},
    {"launch failed requeued held", "its start failed, and Slurm holds it"},
    {"ReqNodeNotAvail", "nodes that it needs are down, drained or reserved"},
    {"Nodes_required_for_job*", "nodes that it needs are down, drained, or reserved for other jobs"},
    {"Nodes required for job*", "nodes that it needs are down, drained, or reserved for other jobs"},
    {"NodeDown", "a node that it needs is down"},
    {"PartitionDown", "partition '{partition}' starts no jobs at present (State=DOWN)"},
    {"PartitionInactive", "partition '{partition}' takes and starts no jobs (State=INACTIVE)"},
    {"PartitionNodeLimit", "it asks for more nodes than a job may have in partition '{partition}', or fewer"},
    {"PartitionTimeLimit", "its time limit is beyond that of partition '{partition}'"},
    {"PartitionConfig", "partition '{partition}' cannot run what it asks for"},
    {"BadConstraints", "no nodes of partition '{partition}' have what it asks for: it can never start"},
    {"Licenses",
     "licences that it asks for ({licenses}) are in use; network attached memory and gateways are licences"},
    {"Reservation", "its reservation has not begun, or has no room"},
    {"ReservationDeleted", "its reservation is gone"},
    {"InvalidQOS", "the quality of service '{qos}' is gone, or not for it"},
    {"InvalidAccount", "account '{account}' is gone, or not for it"},
    {"JobArrayTaskLimit", "its array runs as many tasks at once as it allows (--array=...%N)"},
    {"BurstBufferResources", "what it stages in has no room"},
    {"BurstBufferStageIn", "its files are being staged in"},
    {"BurstBufferOperation", "an operation of staging failed; the text behind the reason tells which"},
    {"Cleaning", "nodes of its last run are being cleaned up"},
    {"Prolog", "a program of the operators (prolog) runs before it"},
    {"FrontEndDown", "no host is there to start it"},
    {"DeadLine", "it cannot end before its --deadline any more"},
    {"SystemFailure", "Slurm itself failed"},
    {"QOSNotAllowed", "the quality of service '{qos}' may not use partition '{partition}'"},
    {"AccountNotAllowed", "account '{account}' may not use partition '{partition}'"},
});

SlurmJobNames NamesOf(const JobInfo& job) {
  const SlurmJobFacts& facts = *job.slurm;
  return {.job = fmt::format("{}", job.id),
          .partition = facts.components.empty() ? "" : facts.components[0].partition,
          .qos = facts.qos,
          .account = facts.account,
          .licenses = facts.licenses};
}

const Known* FindKnown(std::string_view word) {
  for (const Known& known : kKnown) {
    const bool prefix = known.word.ends_with('*');
    if (prefix ? word.starts_with(known.word.substr(0, known.word.size() - 1)) : word == known.word)
      return &known;
  }
  return nullptr;
}

std::string ExplainLimit(const SlurmLimit& limit, const JobInfo& job) {
  const SlurmJobFacts& facts = *job.slurm;
  const std::string whose = limit.qos ? fmt::format("of the quality of service '{}'", facts.qos)
                                      : fmt::format("of account '{}'", facts.account);
  if (limit.of == SlurmLimit::Of::kJob)
    return fmt::format("it asks for {} than one job may have ({}) by a limit {}",
                       limit.least ? "less" : "more", limit.counted, whose);
  // One on an association without a word for whose jobs it counts is its user's.
  const bool user = limit.of == SlurmLimit::Of::kUser && limit.qos;
  const std::string_view per = user                                   ? " for one user"
                               : limit.of == SlurmLimit::Of::kAccount ? " for one account"
                               : limit.of == SlurmLimit::Of::kAll     ? " for all of it together"
                                                                      : "";
  return fmt::format("a limit {} on {}{} is {}", whose, limit.counted, per,
                     limit.used_up ? "used up" : "reached by jobs that are there");
}

std::string ClockTime(std::int64_t unix_ms) { return unix_ms == 0 ? "" : ShowTime(unix_ms); }

bool InPartition(const JobInfo& job, const std::vector<std::string>& partitions) {
  return std::any_of(job.modules.begin(), job.modules.end(), [&](const std::string& name) {
    return std::find(partitions.begin(), partitions.end(), name) != partitions.end();
  });
}

// Those that run in its partitions, the first to end first.
std::vector<Blocker> Running(const JobInfo& job, const std::vector<JobInfo>& jobs, bool of_its_user) {
  std::vector<const JobInfo*> found;
  for (const JobInfo& other : jobs) {
    const bool runs = other.state != JobState::kPending && !wire::IsFinal(other.state);
    if (other.id == job.id || !runs) continue;
    if (of_its_user ? other.uid == job.uid : InPartition(other, job.modules)) found.push_back(&other);
  }
  const auto end = [](const JobInfo* it) {
    return it->slurm->expected_end_ms == 0 ? INT64_MAX : it->slurm->expected_end_ms;
  };
  std::stable_sort(found.begin(), found.end(), [&](auto* a, auto* b) { return end(a) < end(b); });
  std::vector<Blocker> out;
  for (const JobInfo* other : found) {
    const std::string until = ClockTime(other->slurm->expected_end_ms);
    out.push_back(
        {other->id.value, until.empty() ? "runs without a limit" : "runs until " + until + " at most"});
  }
  return out;
}

// Those that wait before it in its partitions, the next first.
std::vector<Blocker> Before(const JobInfo& job, const std::vector<JobInfo>& jobs) {
  std::vector<const JobInfo*> found;
  for (const JobInfo& other : jobs)
    if (other.id != job.id && other.state == JobState::kPending && InPartition(other, job.modules) &&
        other.slurm->priority > job.slurm->priority)
      found.push_back(&other);
  std::stable_sort(found.begin(), found.end(),
                   [](auto* a, auto* b) { return a->slurm->priority > b->slurm->priority; });
  std::vector<Blocker> out;
  for (const JobInfo* other : found)
    out.push_back({other->id.value, fmt::format("waits with priority {}, this one has {}",
                                                other->slurm->priority, job.slurm->priority)});
  return out;
}

void AddBlockers(Why& why, const JobInfo& job, const std::vector<JobInfo>& jobs) {
  if (why.word == "Priority") {
    why.blocked_by = Before(job, jobs);
  } else if (why.word == "Resources" || why.word == "Licenses") {
    why.blocked_by = Running(job, jobs, false);
  } else if (why.word.starts_with("Dependency")) {
    why.blocked_by = BlockersOf(job.slurm->dependency);
  } else if (const auto limit = ParseSlurmLimit(why.word);
             limit && limit->of != SlurmLimit::Of::kJob && !limit->used_up) {
    why.blocked_by = Running(job, jobs, true);
  }
}

Why ExplainRunning(const JobInfo& job) {
  Why out;
  out.word = job.reason;
  if (wire::IsFinal(job.state)) {
    out.explanation = fmt::format("it has ended: {}, exit code {}", job.slurm->state, job.exit_code);
    if (!job.exit_message.empty()) out.explanation += fmt::format(" ({})", job.exit_message);
  } else if (job.state == JobState::kEnding) {
    out.explanation = "it is ending: Slurm cleans its nodes up, or another component still runs";
  } else if (job.state == JobState::kStarting) {
    out.explanation = "its nodes are being made ready";
  } else if (job.slurm->state == "SUSPENDED") {
    out.explanation = "Slurm has suspended it";
    out.remedy = fmt::format(
        "an operator resumes it, 'scontrol resume {}'; one of higher priority may have its nodes", job.id);
  } else {
    out.explanation = fmt::format("it runs since {}", ShowTime(job.started_at_ms));
  }
  return out;
}

}  // namespace

std::vector<Blocker> BlockersOf(std::string_view dependency) {
  std::vector<Blocker> out;
  while (!dependency.empty()) {
    // "afterok:12_*(failed)", "singleton(unfulfilled)", "after:4+5".
    const std::string_view item = dependency.substr(0, dependency.find_first_of(",?"));
    dependency.remove_prefix(std::min(dependency.size(), item.size() + 1));
    const std::string_view kind = item.substr(0, item.find_first_of(":("));
    const std::size_t paren = item.find('(');
    const std::string_view state =
        paren == std::string_view::npos ? "" : item.substr(paren + 1, item.find(')', paren) - paren - 1);
    std::string_view ids = item.substr(0, paren);
    std::size_t colon = ids.find(':');
    while (colon != std::string_view::npos) {
      ids.remove_prefix(colon + 1);
      std::uint64_t id = 0;
      const auto [end, error] = std::from_chars(ids.data(), ids.data() + ids.size(), id);
      if (error == std::errc() && id > 0)
        out.push_back({id, state.empty() ? std::string(kind) : fmt::format("{}, {}", kind, state)});
      colon = ids.find(':');
    }
  }
  return out;
}

Why ExplainSlurm(const JobInfo& job, const std::vector<JobInfo>& jobs) {
  if (job.state != JobState::kPending) return ExplainRunning(job);
  Why out;
  // Of components the first one that Slurm has something against.
  std::string word = job.reason;
  // "ReqNodeNotAvail, UnavailableNodes:cn0"
  std::string more;
  if (const std::size_t comma = word.find_first_of(",("); comma != std::string::npos && comma > 0) {
    more = word.substr(comma + 1);
    more.erase(0, more.find_first_not_of(' '));
    word.resize(comma);
  }
  const SlurmJobNames names = NamesOf(job);
  if (const Known* known = FindKnown(word)) {
    out.explanation = WithNames(known->explanation, names);
  } else if (const auto limit = ParseSlurmLimit(word)) {
    out.explanation = ExplainLimit(*limit, job);
  } else {
    out.explanation = fmt::format("Slurm says '{}'", job.reason);
  }
  out.remedy = RemedyText(word, RemedyFor::kJob, names);
  out.word = word;
  if (!more.empty()) out.explanation += fmt::format(" ({})", more);
  AddBlockers(out, job, jobs);
  return out;
}

Why ExplainMsa(const JobInfo& job) {
  Why out;
  if (wire::IsFinal(job.state)) {
    out.explanation = fmt::format("it has ended: {}, exit code {}", StateName(job.state), job.exit_code);
    if (!job.exit_message.empty()) out.explanation += fmt::format(" ({})", job.exit_message);
    return out;
  }
  if (job.state != JobState::kPending) {
    out.explanation = job.state == JobState::kEnding ? "it is ending"
                      : job.started_at_ms == 0       ? "its nodes are being made ready"
                                               : fmt::format("it runs since {}", ShowTime(job.started_at_ms));
    return out;
  }
  out.explanation = job.reason.empty() ? "the scheduler has not looked at it yet" : job.reason;
  if (job.spec)
    for (const Dependency& one : job.spec->dependencies)
      if (one.state == DependencyState::kOpen && one.job.value != 0)
        out.blocked_by.push_back({one.job.value, "it depends on that job"});
  return out;
}

Details WhyDetails(const JobInfo& job, const Why& why) {
  const std::string label =
      job.slurm && !job.slurm->label.empty() ? job.slurm->label : fmt::format("{}", job.id);
  Details out{.kind = "JobWhy", .name = fmt::format("{}", job.id), .lines = {}, .fields = {}};
  out.lines = {{"job", label + (job.name.empty() ? "" : "  " + job.name)},
               {"state", std::string(StateName(job.state))}};
  if (!why.word.empty()) out.lines.emplace_back("reason", why.word);
  out.lines.emplace_back("why", why.explanation);
  Document::Array blockers;
  for (std::size_t i = 0; i < why.blocked_by.size(); ++i) {
    const Blocker& one = why.blocked_by[i];
    blockers.emplace_back(Document::Object{{"job", one.job}, {"how", one.how}});
    if (i < kMaxBlockers)
      out.lines.emplace_back(i == 0 ? "before it" : "", fmt::format("job {}: {}", one.job, one.how));
  }
  if (why.blocked_by.size() > kMaxBlockers)
    out.lines.emplace_back("", fmt::format("and {} more", why.blocked_by.size() - kMaxBlockers));
  if (job.state == JobState::kPending)
    out.lines.emplace_back("expected start",
                           job.expected_start_ms == 0 ? "not known" : ShowTime(job.expected_start_ms));
  if (!why.remedy.empty()) out.lines.emplace_back("you can", why.remedy);
  out.fields = {{"id", job.id.value},
                {"state", StateName(job.state)},
                {"reason", why.word},
                {"explanation", why.explanation},
                {"blocked_by", Document(std::move(blockers))},
                {"expected_start", job.state == JobState::kPending && job.expected_start_ms != 0
                                       ? Document(UtcTime(job.expected_start_ms))
                                       : Document()},
                {"remedy", why.remedy}};
  return out;
}

}  // namespace msa::cli
