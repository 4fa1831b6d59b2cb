#include "backend/slurm_steps.h"

#include <algorithm>
#include <array>
#include <utility>

#include "msa/topology/host_list.h"

#include "backend/records.h"
#include "output/text.h"

namespace msa::cli {
namespace {

// What users write stands last.
constexpr std::array<std::string_view, 3> kFields = {"StepID", "Nodes", "StepName"};
constexpr std::size_t kMostListed = 10;

}  // namespace

std::span<const std::string_view> SlurmStepFields() { return kFields; }

bool SlurmStep::of_srun() const {
  const std::size_t dot = id.rfind('.');
  return dot != std::string::npos && dot + 1 < id.size() &&
         id.find_first_not_of("0123456789", dot + 1) == std::string::npos;
}

Result<std::vector<SlurmStep>> ReadSlurmSteps(const std::vector<std::vector<std::string>>& records) {
  std::vector<SlurmStep> out;
  for (const std::vector<std::string>& values : records) {
    if (values.size() != kFields.size() || values[0].find('.') == std::string::npos)
      return Error(Code::kDataLoss, "a record of squeue --steps begins with '{}', expected a step as 7.0",
                   values.empty() ? "" : values[0]);
    out.push_back({.id = values[0], .node_list = NodesOfList(values[1]), .name = values[2]});
  }
  return out;
}

std::vector<SlurmStep> StepsOfSrun(const std::vector<SlurmStep>& steps, std::string_view label) {
  const std::string before =
      label.find('_') == std::string_view::npos || label.ends_with(']') ? "" : fmt::format("{}.", label);
  std::vector<SlurmStep> out;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(out),
               [&](const SlurmStep& step) { return step.of_srun() && step.id.starts_with(before); });
  std::stable_sort(out.begin(), out.end(), [](const SlurmStep& a, const SlurmStep& b) {
    return std::pair(a.id.size(), a.id) < std::pair(b.id.size(), b.id);
  });
  return out;
}

std::string ListSteps(const std::vector<SlurmStep>& steps) {
  std::string out;
  for (std::size_t i = 0; i < steps.size() && i < kMostListed; ++i)
    out += fmt::format("{}{} ({}, {})", i == 0 ? "" : "; ", steps[i].id, Printable(steps[i].name),
                       CompressHostList(steps[i].node_list));
  if (steps.size() > kMostListed) out += fmt::format("; and {} more", steps.size() - kMostListed);
  return out;
}

}  // namespace msa::cli
