#include "output/batch_texts.h"

#include "output/text.h"

namespace msa::cli {
namespace {

std::string_view StateOf(const Dependency& dependency) noexcept {
  switch (dependency.state) {
    case DependencyState::kMet:
      return "met";
    case DependencyState::kNever:
      return "never";
    case DependencyState::kOpen:
      break;
  }
  return "open";
}

std::string TypeOf(const Dependency& dependency) {
  const std::string text = DependencyText(dependency);
  return text.substr(0, text.find(':'));
}

}  // namespace

std::string_view ModeName(wire::JobMode mode) noexcept {
  switch (mode) {
    case wire::JobMode::kBatch:
      return "batch";
    case wire::JobMode::kAlloc:
      return "alloc";
    case wire::JobMode::kStep:
      break;
  }
  return "run";
}

Document DependenciesDocument(const JobSpec& spec) {
  Document::Array out;
  for (const Dependency& dependency : spec.dependencies)
    out.emplace_back(
        Document::Object{{"type", TypeOf(dependency)},
                         {"job", dependency.job.value == 0 ? Document() : Document(dependency.job.value)},
                         {"delay_seconds", dependency.delay_s},
                         {"state", StateOf(dependency)}});
  return Document(std::move(out));
}

void AddWaits(const JobSpec& spec, std::vector<std::pair<std::string, std::string>>* lines) {
  std::string list;
  for (const Dependency& dependency : spec.dependencies) {
    if (!list.empty()) list += spec.dependency_any ? " or " : ", ";
    list += fmt::format("{} ({})", DependencyText(dependency), StateOf(dependency));
  }
  if (!list.empty()) lines->emplace_back("dependencies", list);
  if (spec.begin_at_ms != 0) lines->emplace_back("begin", ShowTime(spec.begin_at_ms));
}

}  // namespace msa::cli
