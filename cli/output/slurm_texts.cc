#include "output/slurm_texts.h"

#include "msa/topology/host_list.h"

#include "output/text.h"

namespace msa::cli {
namespace {

Document ComponentsDocument(const SlurmJobFacts& facts) {
  Document::Array out;
  for (const SlurmComponent& one : facts.components)
    out.emplace_back(Document::Object{{"job", one.job},
                                      {"partition", one.partition},
                                      {"state", one.state},
                                      {"reason", one.reason},
                                      {"nodes", one.nodes},
                                      {"tasks", one.tasks},
                                      {"node_list", Document::ListOf(one.node_list)}});
  return Document(std::move(out));
}

Document CompanionsDocument(const SlurmJobFacts& facts) {
  Document::Array out;
  for (const SlurmCompanion& one : facts.companions)
    out.emplace_back(Document::Object{{"job", one.job},
                                      {"request", one.request},
                                      {"partition", one.partition},
                                      {"state", one.state},
                                      {"reason", one.reason},
                                      {"node_list", Document::ListOf(one.node_list)}});
  return Document(std::move(out));
}

Document ShownDocument(const DetailLines& shown) {
  Document::Object out;
  for (const auto& [key, value] : shown) out.emplace_back(key, value);
  return Document(std::move(out));
}

// "bn[0-1]", or Slurm's reason while there are none.
std::string WhereOrWhy(const std::vector<std::string>& nodes, const std::string& reason) {
  return nodes.empty() ? reason : CompressHostList(nodes);
}

}  // namespace

std::string ShownJobId(const JobInfo& job) {
  return job.slurm && !job.slurm->label.empty() ? job.slurm->label : fmt::format("{}", job.id);
}

Document SlurmDocument(const SlurmJobFacts& facts) {
  return Document::Object{
      {"id", facts.label},
      {"state", facts.state},
      {"account", facts.account},
      {"qos", facts.qos},
      {"priority", facts.priority},
      {"command", facts.command},
      {"working_directory", facts.directory},
      {"dependency", facts.dependency},
      {"licenses", facts.licenses},
      {"expected_end", facts.expected_end_ms == 0 ? Document() : Document(UtcTime(facts.expected_end_ms))},
      {"components", ComponentsDocument(facts)},
      {"companions", CompanionsDocument(facts)},
      {"companion_of", facts.companion_of == 0 ? Document() : Document(facts.companion_of)},
      {"request", facts.companion_of == 0 ? Document() : Document(facts.request)}};
}

Document SlurmDocument(const SlurmNodeFacts& facts) {
  Document::Object out = {{"state", facts.state.empty() ? Document() : Document(facts.state)},
                          {"partitions", Document::ListOf(facts.partitions)},
                          {"msa", facts.msa.empty() ? Document() : Document(facts.msa)}};
  if (!facts.shown.empty()) out.emplace_back("shown", ShownDocument(facts.shown));
  return Document(std::move(out));
}

Document SlurmDocument(const SlurmModuleFacts& facts) {
  Document::Object out = {
      {"partition_state", facts.partition_state.empty() ? Document() : Document(facts.partition_state)},
      {"time_limit_seconds", facts.time_limit_s}};
  if (!facts.shown.empty()) out.emplace_back("shown", ShownDocument(facts.shown));
  return Document(std::move(out));
}

std::string SlurmNote(const JobInfo& job, const std::string& reason) {
  std::string out = reason;
  for (const SlurmCompanion& one : job.slurm->companions)
    out += fmt::format("{}companion {}: {} {}", out.empty() ? "" : "; ", one.job, one.partition,
                       WhereOrWhy(one.node_list, one.reason));
  if (job.slurm->companion_of != 0)
    out += fmt::format("{}companion of {}", out.empty() ? "" : "; ", job.slurm->companion_of);
  return out;
}

void AddSlurmHead(const SlurmJobFacts& facts, DetailLines* lines) {
  lines->emplace_back("in Slurm", facts.state);
  if (facts.companion_of != 0)
    lines->emplace_back("companion of", fmt::format("job {}, request {}", facts.companion_of, facts.request));
  if (!facts.account.empty()) lines->emplace_back("account", facts.account);
  if (!facts.qos.empty()) lines->emplace_back("QOS", facts.qos);
  if (!facts.dependency.empty()) lines->emplace_back("dependency", facts.dependency);
  if (!facts.licenses.empty()) lines->emplace_back("licences", facts.licenses);
  if (facts.expected_end_ms != 0) lines->emplace_back("ends by", ShowTime(facts.expected_end_ms));
}

void AddSlurmShown(const DetailLines& shown, DetailLines* lines) {
  // As one text below one label: a label's width is that of the longest, and these are long.
  for (std::size_t i = 0; i < shown.size(); ++i)
    lines->emplace_back(i == 0 ? "Slurm says" : "", shown[i].first + " = " + shown[i].second);
}

void AddSlurmParts(const SlurmJobFacts& facts, DetailLines* lines) {
  for (std::size_t i = 0; i < facts.components.size(); ++i) {
    const SlurmComponent& one = facts.components[i];
    lines->emplace_back(
        fmt::format("component {}", i),
        fmt::format("{}  {}  {}  job {}  {}", one.partition, Count(one.nodes, "node"),
                    Count(one.tasks, "task"), one.job, WhereOrWhy(one.node_list, one.reason)));
  }
  for (const SlurmCompanion& one : facts.companions)
    lines->emplace_back("companions",
                        fmt::format("request {}  {}  job {}  {}  {}", one.request, one.partition, one.job,
                                    one.state, WhereOrWhy(one.node_list, one.reason)));
  if (!facts.command.empty()) lines->emplace_back("command", facts.command);
  if (!facts.directory.empty()) lines->emplace_back("directory", facts.directory);
}

}  // namespace msa::cli
