#include "backend/accounting.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backend/records.h"

namespace msa::cli {
namespace {

// Two days after 1970 began: sacct takes 0 for no time at all, and zones are up to 14 hours away from it.
constexpr std::int64_t kFirstSecond = 172'800;

struct Field {
  std::string_view name;
  void (*set)(SlurmRow& row, const std::string& value);
};

std::uint32_t Small(std::string_view text) {
  const std::uint64_t number = SlurmNumber(text);
  return number < UINT32_MAX - 1 ? static_cast<std::uint32_t>(number) : 0;
}

// "7", "7+1" of a heterogeneous job, "7_3" and "7_[4-9]" of an array.
void ReadName(SlurmRow& row, std::string_view text) {
  const std::size_t mark = text.find_first_of("+_");
  if (mark == std::string_view::npos) return;
  std::string_view rest = text.substr(mark + 1);
  if (text[mark] == '+') {
    row.het = true;
    row.leader = SlurmNumber(text.substr(0, mark));
    row.offset = Small(rest);
    return;
  }
  row.array_job = SlurmNumber(text.substr(0, mark));
  if (rest.starts_with('[')) rest.remove_prefix(1);
  row.array_tasks = rest.substr(0, rest.find(']'));
}

// "3:0", "0:15": code and signal.
int WaitStatus(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view signal = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  return static_cast<int>(((Small(text.substr(0, colon)) & 0xff) << 8) | (Small(signal) & 0x7f));
}

bool IsSbatch(std::string_view line) {
  const std::string_view word = line.substr(0, line.find(' '));
  return word.substr(word.rfind('/') + 1) == "sbatch";
}

constexpr auto kFields = std::to_array<Field>({
    {"JobID", [](SlurmRow& row, const std::string& value) { ReadName(row, value); }},
    {"JobIDRaw", [](SlurmRow& row, const std::string& value) { row.job = SlurmNumber(value); }},
    // "CANCELLED by 1000".
    {"State",
     [](SlurmRow& row, const std::string& value) { row.state = value.substr(0, value.find(' ')); }},
    {"ExitCode", [](SlurmRow& row, const std::string& value) { row.wait_status = WaitStatus(value); }},
    {"User", [](SlurmRow& row, const std::string& value) { row.user = value; }},
    {"UID", [](SlurmRow& row, const std::string& value) { row.uid = Small(value); }},
    {"Partition", [](SlurmRow& row, const std::string& value) { row.partition = Given(value); }},
    {"Account", [](SlurmRow& row, const std::string& value) { row.account = Given(value); }},
    {"QOS", [](SlurmRow& row, const std::string& value) { row.qos = Given(value); }},
    {"Reason", [](SlurmRow& row, const std::string& value) { row.reason = Given(value); }},
    {"Submit", [](SlurmRow& row, const std::string& value) { row.submit_ms = SlurmTime(value); }},
    {"Start", [](SlurmRow& row, const std::string& value) { row.start_ms = SlurmTime(value); }},
    {"End", [](SlurmRow& row, const std::string& value) { row.end_ms = SlurmTime(value); }},
    // Minutes, or a word.
    {"TimelimitRaw", [](SlurmRow& row, const std::string& value) { row.time_limit_s = Small(value) * 60; }},
    {"NNodes", [](SlurmRow& row, const std::string& value) { row.nodes = Small(value); }},
    {"AllocCPUS", [](SlurmRow& row, const std::string& value) { row.cpus = Small(value); }},
    {"NodeList",
     [](SlurmRow& row, const std::string& value) {
       if (value != "None assigned") row.node_list = NodesOfList(value);
     }},
    {"Priority", [](SlurmRow& row, const std::string& value) { row.priority = SlurmNumber(value); }},
    // What users write stands last.
    {"WorkDir", [](SlurmRow& row, const std::string& value) { row.directory = value; }},
    {"SubmitLine", [](SlurmRow& row, const std::string& value) { row.batch = IsSbatch(value); }},
    {"Comment", [](SlurmRow& row, const std::string& value) { row.comment = Given(value); }},
    {"JobName", [](SlurmRow& row, const std::string& value) { row.name = value; }},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kFields.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kFields[i].name;
  return out;
}();

}  // namespace

std::span<const std::string_view> SacctFields() { return kNames; }

Result<std::vector<SlurmRow>> ReadSacct(const std::vector<std::vector<std::string>>& records) {
  std::vector<SlurmRow> out;
  out.reserve(records.size());
  for (const std::vector<std::string>& values : records) {
    if (values.size() != kFields.size())
      return Error(Code::kDataLoss, "a record of sacct has {} fields, expected {}", values.size(),
                   kFields.size());
    SlurmRow row;
    for (std::size_t i = 0; i < kFields.size(); ++i) kFields[i].set(row, values[i]);
    if (row.job == 0)
      return Error(Code::kDataLoss, "a record of sacct names '{}', expected a job's id", values[1]);
    if (!row.het) row.leader = row.job;
    MarkCompanion(row);
    out.push_back(std::move(row));
  }
  return out;
}

bool SaysNoAccounting(std::string_view error) {
  return error.find("accounting storage is disabled") != std::string_view::npos;
}

std::string SacctTime(std::int64_t unix_ms) {
  const time_t seconds = static_cast<time_t>(std::max(unix_ms / 1000, kFirstSecond));
  tm local{};
  ::localtime_r(&seconds, &local);
  char out[32];
  const std::size_t size = ::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%S", &local);
  return std::string(out, size);
}

}  // namespace msa::cli
