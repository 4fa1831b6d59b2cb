#include "backend/slurm_jobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "backend/records.h"
#include "options/values.h"

namespace msa::cli {
namespace {

using Values = std::vector<std::string>;

// One field of squeue's and where it goes.
struct Field {
  std::string_view name;
  void (*set)(SlurmRow& row, const std::string& value);
};

// Slurm's INFINITE and NO_VAL, the two largest numbers of 32 bits, are none.
std::uint32_t Small(std::string_view text) {
  const std::uint64_t number = SlurmNumber(text);
  return number < UINT32_MAX - 1 ? static_cast<std::uint32_t>(number) : 0;
}

std::uint32_t TimeLimit(std::string_view text) {
  const Result<std::uint32_t> seconds = ParseTimeLimit(text);
  return seconds.ok() ? *seconds : 0;
}

template <std::string SlurmRow::*member>
void Text(SlurmRow& row, const std::string& value) {
  row.*member = Given(value);
}
template <std::uint32_t SlurmRow::*member>
void Number(SlurmRow& row, const std::string& value) {
  row.*member = Small(value);
}
template <std::int64_t SlurmRow::*member>
void Time(SlurmRow& row, const std::string& value) {
  row.*member = SlurmTime(value);
}

constexpr auto kFields = std::to_array<Field>({
    {"JobID", [](SlurmRow& row, const std::string& value) { row.job = SlurmNumber(value); }},
    {"HetJobID", [](SlurmRow& row, const std::string& value) { row.leader = SlurmNumber(value); }},
    {"HetJobOffset", &Number<&SlurmRow::offset>},
    {"ArrayJobID", [](SlurmRow& row, const std::string& value) { row.array_job = SlurmNumber(value); }},
    {"ArrayTaskID", &Text<&SlurmRow::array_tasks>},
    {"State", &Text<&SlurmRow::state>},
    {"UserName", &Text<&SlurmRow::user>},
    {"UserID", &Number<&SlurmRow::uid>},
    {"Partition", &Text<&SlurmRow::partition>},
    {"Account", &Text<&SlurmRow::account>},
    {"QOS", &Text<&SlurmRow::qos>},
    {"Reason", &Text<&SlurmRow::reason>},
    {"SubmitTime", &Time<&SlurmRow::submit_ms>},
    {"StartTime", &Time<&SlurmRow::start_ms>},
    {"EndTime", &Time<&SlurmRow::end_ms>},
    {"TimeLimit", [](SlurmRow& row, const std::string& value) { row.time_limit_s = TimeLimit(value); }},
    {"NumNodes", &Number<&SlurmRow::nodes>},
    {"NumCPUs", &Number<&SlurmRow::cpus>},
    {"NumTasks", &Number<&SlurmRow::tasks>},
    {"NodeList", [](SlurmRow& row, const std::string& value) { row.node_list = NodesOfList(value); }},
    {"PriorityLong", [](SlurmRow& row, const std::string& value) { row.priority = SlurmNumber(value); }},
    {"Dependency", &Text<&SlurmRow::dependency>},
    {"exit_code",
     [](SlurmRow& row,
        const std::string& value) { row.wait_status = static_cast<int>(Small(value) & 0xffff); }},
    {"BatchFlag", [](SlurmRow& row, const std::string& value) { row.batch = value == "1"; }},
    {"BatchHost", &Text<&SlurmRow::head>},
    {"STDOUT", &Text<&SlurmRow::out>},
    {"STDERR", &Text<&SlurmRow::err>},
    {"WorkDir", &Text<&SlurmRow::directory>},
    {"Licenses", &Text<&SlurmRow::licenses>},
    // What users write stands last.
    {"Name", [](SlurmRow& row, const std::string& value) { row.name = value; }},
    {"Comment", &Text<&SlurmRow::comment>},
    {"Command", &Text<&SlurmRow::command>},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kFields.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kFields[i].name;
  return out;
}();

// The digits behind `before` at the start of `text`, which must end there or with one of `after`.
std::uint64_t NumberAfter(std::string_view text, std::string_view before, std::string_view after) {
  if (!text.starts_with(before)) return 0;
  text.remove_prefix(before.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return rest.empty() || after.find(rest.front()) != std::string_view::npos ? value : 0;
}

// "1-3,7,...%2" of a list that is too long for a line.
std::string ShownTasks(const std::string& tasks) {
  constexpr std::size_t kMost = 60;  // as squeue's own
  const std::size_t end = std::min(tasks.find('%'), tasks.size());
  if (end <= kMost) return tasks;
  // 0: one number, longer than any.
  const std::size_t comma = tasks.rfind(',', kMost);
  return tasks.substr(0, comma == std::string::npos ? 0 : comma + 1) + "..." + tasks.substr(end);
}

std::string LabelOf(const SlurmRow& row) {
  if (row.het) return fmt::format("{}", row.leader);
  if (row.array_tasks.empty()) return fmt::format("{}", row.job);
  const bool one = row.array_tasks.find_first_not_of("0123456789") == std::string::npos;
  return one ? fmt::format("{}_{}", row.array_job, row.array_tasks)
             : fmt::format("{}_[{}]", row.array_job, ShownTasks(row.array_tasks));
}

void AddShares(JobInfo& job, const SlurmRow& row) {
  for (const std::string& node : row.node_list)
    job.allocations.push_back(
        {.node = node, .module = row.partition, .component = row.offset, .tasks = 0, .held = true});
}

JobInfo Begin(const SlurmRow& row) {
  JobInfo out;
  out.id = JobId(row.leader);
  out.name = row.name;
  out.uid = row.uid;
  out.user = row.user;
  out.submitted_at_ms = row.submit_ms;
  out.time_limit_s = row.time_limit_s;
  out.head_node = row.batch ? row.head : "";
  out.interactive = !row.batch;
  out.mode = row.batch ? wire::JobMode::kBatch : wire::JobMode::kAlloc;
  // squeue does not expand the names of an array's files.
  if (row.batch && row.array_tasks.empty()) {
    out.stdout_path = row.out;
    out.stderr_path = row.err;
  }
  out.state = StateOf(row.state);
  out.slurm = SlurmJobFacts{.label = LabelOf(row),
                            .array_tasks = row.het ? "" : row.array_tasks,
                            .state = row.state,
                            .account = row.account,
                            .qos = row.qos,
                            .command = row.command,
                            .directory = row.directory,
                            .dependency = row.dependency,
                            .licenses = row.licenses,
                            .priority = row.priority,
                            .companion_of = row.companion_of,
                            .request = row.request};
  return out;
}

void Extend(JobInfo& job, const SlurmRow& row) {
  const JobState state = StateOf(row.state);
  // Its first component has ended, another has not.
  if (wire::IsFinal(job.state) && !wire::IsFinal(state)) job.state = JobState::kEnding;
  job.nodes += row.nodes;
  job.tasks += row.tasks;
  if (!row.partition.empty() &&
      std::find(job.modules.begin(), job.modules.end(), row.partition) == job.modules.end())
    job.modules.push_back(row.partition);
  if (state == JobState::kPending) {
    job.expected_start_ms = std::max(job.expected_start_ms, row.start_ms);
  } else {
    job.started_at_ms = std::max(job.started_at_ms, row.start_ms);
    if (wire::IsFinal(state)) {
      job.ended_at_ms = std::max(job.ended_at_ms, row.end_ms);
    } else {
      job.slurm->expected_end_ms = std::max(job.slurm->expected_end_ms, row.end_ms);
    }
  }
  job.exit_code = std::max(job.exit_code, ExitCodeOfWait(row.wait_status));
  if (job.reason.empty()) job.reason = row.reason;
  AddShares(job, row);
  job.slurm->components.push_back(
      {row.job, row.partition, row.state, row.reason, row.nodes, row.tasks, row.node_list});
}

// One whose last component has not ended yet has no end.
void Finish(JobInfo& job) {
  if (!wire::IsFinal(job.state)) {
    job.ended_at_ms = 0;
    return;
  }
  // One that never ran keeps the reason for which it waited.
  if (job.allocations.empty()) {
    job.reason.clear();
    job.started_at_ms = 0;
  }
  job.exit_message = job.reason;
}

// Of a job: its companions, by request.
using Behind = std::map<std::uint64_t, std::vector<std::uint64_t>>;

Behind AttachCompanions(std::map<std::uint64_t, JobInfo>& jobs) {
  Behind out;
  for (auto& [id, job] : jobs) {
    const auto parent = jobs.find(job.slurm->companion_of);
    if (parent == jobs.end() || parent->first == id) continue;
    // Anybody may give a job of his own such a name.
    if (parent->second.uid != job.uid || parent->second.slurm->companion_of != 0) continue;
    const SlurmComponent& only = job.slurm->components[0];
    parent->second.slurm->companions.push_back(
        {id, job.slurm->request, only.partition, job.slurm->state, only.reason, only.node_list});
    out[parent->first].push_back(id);
  }
  for (auto& [id, job] : jobs)
    std::stable_sort(job.slurm->companions.begin(), job.slurm->companions.end(),
                     [](const auto& a, const auto& b) { return a.request < b.request; });
  return out;
}

struct TaskRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t step = 1;
};

// "2-4,7-19:4%2"
std::vector<TaskRange> RangesOf(std::string_view tasks) {
  std::vector<TaskRange> out;
  tasks = tasks.substr(0, tasks.find('%'));
  while (!tasks.empty()) {
    const std::string_view item = tasks.substr(0, tasks.find(','));
    tasks.remove_prefix(std::min(tasks.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    const std::size_t colon = item.find(':');
    TaskRange& range = out.emplace_back();
    range.first = range.last = SlurmNumber(item.substr(0, dash));
    if (dash != std::string_view::npos) range.last = SlurmNumber(item.substr(dash + 1));
    if (colon != std::string_view::npos)
      range.step = std::clamp<std::uint64_t>(SlurmNumber(item.substr(colon + 1)), 1, UINT32_MAX);
  }
  return out;
}

bool HasTask(std::string_view tasks, std::uint64_t task) {
  const std::vector<TaskRange> ranges = RangesOf(tasks);
  return std::any_of(ranges.begin(), ranges.end(), [&](const TaskRange& range) {
    return range.first <= task && task <= range.last && (task - range.first) % range.step == 0;
  });
}

// Without steps, which scancel does not know.
std::string PlainTasks(std::string_view tasks) {
  constexpr std::uint64_t kMostTasks = 4'000'001;  // of Slurm's arrays
  std::string out;
  for (const TaskRange& range : RangesOf(tasks)) {
    const std::uint64_t last = std::min(range.last, kMostTasks);
    if (range.step == 1 && range.first < range.last) {
      out += fmt::format(",{}-{}", range.first, range.last);
      continue;
    }
    for (std::uint64_t task = range.first; task <= last; task += range.step) out += fmt::format(",{}", task);
  }
  return out.empty() ? out : out.substr(1);
}

// Of an array: "4_1", "4_[1-3]" that holds it, or that very list.
bool IsTask(const SlurmJobFacts& facts, const SlurmJobName& name) {
  const std::string before = fmt::format("{}_", name.job);
  if (!facts.label.starts_with(before)) return false;
  if (name.array_task.empty()) return name.list.empty() || facts.label == before + name.list;
  return HasTask(facts.array_tasks, SlurmNumber(name.array_task));
}

}  // namespace

std::span<const std::string_view> SlurmJobFields() { return kNames; }

Result<std::vector<SlurmRow>> ReadSlurmRows(const std::vector<Values>& records) {
  std::vector<SlurmRow> out;
  out.reserve(records.size());
  for (const Values& values : records) {
    if (values.size() != kFields.size())
      return Error(Code::kDataLoss, "a record of squeue has {} fields, expected {}", values.size(),
                   kFields.size());
    SlurmRow row;
    for (std::size_t i = 0; i < kFields.size(); ++i) kFields[i].set(row, values[i]);
    if (row.job == 0)
      return Error(Code::kDataLoss, "a record of squeue begins with '{}', expected a job's id", values[0]);
    row.het = row.leader != 0;
    if (!row.het) row.leader = row.job;
    MarkCompanion(row);
    out.push_back(std::move(row));
  }
  return out;
}

void MarkCompanion(SlurmRow& row) {
  const std::uint64_t parent = NumberAfter(row.name, "msa:", ".");
  const std::size_t dot = row.name.find('.');
  const std::size_t asked = row.comment.find(" request=");
  if (parent == 0 || asked == std::string::npos || NumberAfter(row.comment, "msa parent=", " ") != parent)
    return;
  const std::uint64_t request = NumberAfter(std::string_view(row.comment).substr(asked), " request=", " ");
  if (request == 0 || NumberAfter(std::string_view(row.name).substr(dot), ".", "") != request) return;
  row.companion_of = parent;
  row.request = request;
}

std::vector<JobInfo> FoldJobs(const std::vector<SlurmRow>& rows, Companions companions) {
  std::vector<const SlurmRow*> order;
  for (const SlurmRow& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const SlurmRow* a, const SlurmRow* b) {
    return std::pair(a->leader, a->offset) < std::pair(b->leader, b->offset);
  });
  std::map<std::uint64_t, JobInfo> jobs;
  for (const SlurmRow* row : order) {
    const auto [it, first] = jobs.try_emplace(row->leader);
    if (first) it->second = Begin(*row);
    Extend(it->second, *row);
  }
  for (auto& [id, job] : jobs) Finish(job);
  const Behind behind = AttachCompanions(jobs);
  std::set<std::uint64_t> folded;
  for (const auto& [parent, ids] : behind) folded.insert(ids.begin(), ids.end());
  std::vector<JobInfo> out;
  for (const auto& [id, job] : jobs) {
    if (folded.contains(id)) continue;
    out.push_back(job);
    const auto mine = behind.find(id);
    if (companions == Companions::kFolded || mine == behind.end()) continue;
    for (const std::uint64_t companion : mine->second) out.push_back(jobs.at(companion));
  }
  return out;
}

Result<SlurmJobName> ParseSlurmJob(std::string_view text) {
  SlurmJobName out;
  const std::size_t mark = text.find_first_of("_+");
  const std::string_view id = text.substr(0, mark);
  const std::string_view rest = mark == std::string_view::npos ? "" : text.substr(mark + 1);
  out.job = NumberAfter(id, "", "");
  const auto made_of = [](std::string_view word, std::string_view characters) {
    return !word.empty() && word.find_first_not_of(characters) == std::string_view::npos;
  };
  const bool list = mark != std::string_view::npos && text[mark] == '_' && rest.starts_with('[') &&
                    rest.ends_with(']') && made_of(rest.substr(1, rest.size() - 2), "0123456789-,:%.");
  const bool number = made_of(rest, "0123456789") && rest.size() < 10;
  if (out.job == 0 || (mark != std::string_view::npos && !list && !number))
    return Error(
        Code::kInvalidArgument,
        "'{}' is not a job's id; expected a number from 1 on, or 12_3 for a task of an array; see 'msactl "
        "job list'",
        text);
  if (mark == std::string_view::npos) return out;
  if (text[mark] == '_') (list ? out.list : out.array_task) = rest;
  out.component = text[mark] == '+';
  if (out.component) out.offset = Small(rest);
  return out;
}

std::vector<JobInfo> JobsNamed(const std::vector<JobInfo>& jobs, const SlurmJobName& name) {
  std::vector<JobInfo> out;
  const bool whole = name.array_task.empty() && name.list.empty();
  for (const JobInfo& job : jobs) {
    const auto& parts = job.slurm->components;
    const bool one =
        std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.job == name.job; });
    if ((whole && one) || IsTask(*job.slurm, name)) out.push_back(job);
  }
  return out;
}

std::string ScancelName(const JobInfo& job) {
  const SlurmJobFacts& facts = *job.slurm;
  const std::size_t list = facts.label.find("_[");
  if (list == std::string::npos) return facts.label;
  return fmt::format("{}_[{}]", facts.label.substr(0, list), PlainTasks(facts.array_tasks));
}

void LimitEnded(std::vector<JobInfo>& jobs, std::size_t most) {
  // Slurm tells ends in seconds, in which many jobs may end.
  const auto rank = [](const JobInfo& job) { return std::pair(job.ended_at_ms, job.id.value); };
  std::vector<std::pair<std::int64_t, std::uint64_t>> ends;
  for (const JobInfo& job : jobs)
    if (wire::IsFinal(job.state)) ends.push_back(rank(job));
  if (ends.size() <= most) return;
  std::sort(ends.rbegin(), ends.rend());
  std::erase_if(jobs,
                [&](const JobInfo& job) { return wire::IsFinal(job.state) && rank(job) <= ends[most]; });
}

std::vector<std::uint64_t> PartsNamed(const JobInfo& job, const SlurmJobName& name) {
  const std::vector<SlurmComponent>& parts = job.slurm->components;
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool by_number = parts[i].job == name.job && name.job != job.id.value;
    if (name.component ? i == name.offset : by_number) return {parts[i].job};
    out.push_back(parts[i].job);
  }
  return name.component ? std::vector<std::uint64_t>() : out;
}

JobState StateOf(std::string_view word) {
  struct Known {
    std::string_view word;
    JobState state;
  };
  constexpr auto kStates = std::to_array<Known>({
      {"PENDING", JobState::kPending},      {"REQUEUED", JobState::kPending},
      {"REQUEUE_HOLD", JobState::kPending}, {"REQUEUE_FED", JobState::kPending},
      {"SPECIAL_EXIT", JobState::kPending}, {"RESV_DEL_HOLD", JobState::kPending},
      {"CONFIGURING", JobState::kStarting}, {"COMPLETING", JobState::kEnding},
      {"STAGE_OUT", JobState::kEnding},     {"COMPLETED", JobState::kCompleted},
      {"FAILED", JobState::kFailed},        {"BOOT_FAIL", JobState::kFailed},
      {"OUT_OF_MEMORY", JobState::kFailed}, {"CANCELLED", JobState::kCancelled},
      {"PREEMPTED", JobState::kCancelled},  {"REVOKED", JobState::kCancelled},
      {"TIMEOUT", JobState::kTimeout},      {"DEADLINE", JobState::kTimeout},
      {"NODE_FAIL", JobState::kNodeFail},
  });
  const auto it =
      std::find_if(kStates.begin(), kStates.end(), [&](const Known& known) { return known.word == word; });
  return it == kStates.end() ? JobState::kRunning : it->state;
}

int ExitCodeOfWait(int wait_status) {
  const int signal = wait_status & 0x7f;
  return signal != 0 ? 128 + signal : (wait_status >> 8) & 0xff;
}

}  // namespace msa::cli
