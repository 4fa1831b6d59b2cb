#include "backend/job_detail.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "backend/records.h"

namespace msa::cli {
namespace {

constexpr std::uint32_t kMaxCore = 65535;

std::optional<std::uint32_t> Core(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kMaxCore) return std::nullopt;
  return value;
}

// The text behind the job's name: all that users write stands at its end from there on.
std::string_view BehindName(std::string_view text, const SlurmRow& row) {
  const std::string begin = fmt::format("JobId={} ", row.job);
  const std::string name = fmt::format(" JobName={} ", row.name);
  const std::string user = fmt::format("UserId={}({}) ", row.user, row.uid);
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string_view::npos; at += begin.size()) {
    if (at > 0 && text[at - 1] != '\n') continue;
    // Between the two stand numbers alone: HetJobId, ArrayJobId, ArrayTaskId.
    const std::size_t named = text.find(" JobName=", at);
    if (named == std::string_view::npos || text.substr(named, name.size()) != name) continue;
    std::string_view rest = text.substr(named + name.size());
    if (rest.starts_with("HetJobIdSet=")) rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
    if (rest.starts_with(user)) return rest.substr(user.size());
  }
  return {};
}

// Up to the next blank.
std::string_view ValueOf(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(" \n"));
}

// Files may hold blanks: up to the next key.
std::string FileOf(std::string_view text, std::string_view key, std::string_view next) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  const std::size_t end = text.find(next);
  return end == std::string_view::npos ? std::string() : std::string(text.substr(0, end));
}

}  // namespace

std::vector<std::uint32_t> ReadCoreList(std::string_view text) {
  std::vector<std::uint32_t> out;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    const auto first = Core(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : Core(item.substr(dash + 1));
    if (!first || !last) continue;
    for (std::uint32_t core = *first; core <= *last && out.size() <= kMaxCore; ++core) out.push_back(core);
  }
  return out;
}

std::string BatchFile(std::string_view file, const JobInfo& job) {
  const std::pair<char, std::string> values[] = {
      {'N', job.head_node}, {'n', "0"}, {'t', "0"}, {'s', "batch"}, {'J', fmt::format("{}", job.id)}};
  std::string out;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const char letter = i + 1 < file.size() ? file[i + 1] : '\0';
    const auto it = std::find_if(std::begin(values), std::end(values),
                                 [&](const auto& value) { return value.first == letter; });
    if (file[i] != '%' || it == std::end(values)) {
      out += file[i];
      continue;
    }
    out += it->second;
    ++i;
  }
  return out;
}

JobDetail ReadJobDetail(std::string_view text, const SlurmRow& row) {
  JobDetail out;
  std::string_view job = BehindName(text, row);
  // "  Nodes=cn[0-1] CPU_IDs=0-3 Mem=0 GRES=", one for each group of nodes with the same cores.
  constexpr std::string_view kKey = " CPU_IDs=";
  const std::size_t end = std::min(job.find(" MinCPUsNode="), job.size());
  std::string_view rest = job.substr(0, end);
  for (std::size_t at = 0; (at = rest.find(kKey)) != std::string_view::npos;) {
    const std::size_t nodes = rest.rfind("Nodes=", at);
    if (nodes != std::string_view::npos) {
      const std::string_view list = rest.substr(nodes + 6, at - nodes - 6);
      for (const std::string& node : NodesOfList(list))
        out.cores[node] = ReadCoreList(ValueOf(rest.substr(at), kKey));
    }
    rest.remove_prefix(at + kKey.size());
  }
  if (job.size() > end) {
    job.remove_prefix(end);
    out.err = FileOf(job, " StdErr=", " StdIn=");
    out.in = FileOf(job, " StdIn=", " StdOut=");
    out.out = FileOf(job, " StdOut=", " Power=");
  }
  return out;
}

}  // namespace msa::cli
