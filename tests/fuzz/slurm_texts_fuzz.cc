// What Slurm's commands print, and what stands in its fields: texts of users and of another program.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backend/job_detail.h"
#include "backend/records.h"
#include "backend/slurm_nodes.h"
#include "backend/translate.h"
#include "backend/why.h"

namespace {

using namespace msa::cli;

void Check(bool holds) {
  if (!holds) std::abort();
}

// Lines as records of bytes separated by '|', so that mutations reach the fields.
std::vector<std::vector<std::string>> Split(std::string_view text, std::size_t fields) {
  std::vector<std::vector<std::string>> out(1);
  for (;;) {
    const std::size_t end = text.find('|');
    if (out.back().size() == fields) out.emplace_back();
    out.back().emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  out.back().resize(fields);
  return out;
}

void Jobs(std::string_view text) {
  const auto rows = ReadSlurmRows(Split(text, SlurmJobFields().size()));
  if (!rows.ok()) return;
  const std::vector<JobInfo> all = FoldJobs(*rows, Companions::kRows);
  Check(FoldJobs(*rows, Companions::kFolded).size() <= all.size());
  for (const JobInfo& job : all) {
    (void)ExplainSlurm(job, all);
    Check(JobsNamed(all, {.job = job.id.value, .array_task = "", .component = false}).size() <= all.size());
  }
  for (const SlurmRow& row : *rows) (void)ReadJobDetail(text, row);
  (void)ReadSlurmNodes(Split(text, SlurmNodeFields().size()), *rows, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const RecordFormat format("a");
  for (const std::size_t fields : {1u, 2u}) {
    const auto records = format.Read(text, fields);
    if (!records.ok()) continue;
    for (const auto& record : *records) Check(record.size() == fields);
  }
  Jobs(text);
  (void)ParseSlurmJob(text);
  (void)BlockersOf(text);
  (void)HasJobSubmit(text);
  (void)SubmittedJob(text);
  (void)ReadCoreList(text);
  TypedCall call;
  (void)AddScriptLines("f", text, &call);
  return 0;
}
