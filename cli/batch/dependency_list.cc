#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "msa/topology/suggest.h"

#include "batch/wait_options.h"
#include "options/values.h"

namespace msa::cli {
namespace {

constexpr std::uint64_t kMinute = 60;
// A year: what no queue outlives.
constexpr NumberRange kDelay{0, std::uint64_t{366} * 24 * 60};

std::optional<DependencyKind> KindOf(std::string_view name) {
  if (name == "after") return DependencyKind::kAfter;
  if (name == "afterany") return DependencyKind::kAfterAny;
  if (name == "afterok") return DependencyKind::kAfterOk;
  if (name == "afternotok") return DependencyKind::kAfterNotOk;
  if (name == "singleton") return DependencyKind::kSingleton;
  return std::nullopt;
}

Status UnknownKind(std::string_view name) {
  const std::vector<std::string> known = {"after", "afterany", "afterok", "afternotok", "singleton"};
  if (name == "aftercorr")
    return Error(Code::kInvalidArgument, "'aftercorr' is for job arrays, which this version does not have");
  if (name == "afterburstbuffer" || name == "expand")
    return Error(Code::kInvalidArgument, "'{}' is not in this version; expected {}", name, ListNames(known));
  return Error(Code::kInvalidArgument, "'{}' is no kind of dependency; {}expected {}, as in afterok:12", name,
               DidYouMean(name, known), ListNames(known));
}

Result<Dependency> ParseOne(DependencyKind kind, std::string_view item) {
  Dependency out;
  out.kind = kind;
  const std::size_t plus = item.find('+');
  if (plus != std::string_view::npos) {
    if (kind != DependencyKind::kAfter)
      return Error(Code::kInvalidArgument, "'{}': only 'after' takes +MINUTES; leave it out", item);
    MSA_ASSIGN_OR_RETURN(const std::uint64_t minutes, ParseNumber(item.substr(plus + 1), kDelay));
    out.delay_s = static_cast<std::uint32_t>(minutes * kMinute);
  }
  MSA_ASSIGN_OR_RETURN(out.job, ParseJobId(item.substr(0, plus)));
  return out;
}

// "afterok:1:2"
Status AddPart(std::string_view part, std::vector<Dependency>* to) {
  const std::size_t colon = part.find(':');
  const std::string_view name = part.substr(0, colon);
  const auto kind = KindOf(name);
  if (!kind) return UnknownKind(name);
  const bool singleton = *kind == DependencyKind::kSingleton;
  if (singleton && colon != std::string_view::npos)
    return Error(Code::kInvalidArgument, "'{}': singleton takes no job ids", part);
  if (!singleton && colon == std::string_view::npos)
    return Error(Code::kInvalidArgument, "'{}' names no job; expected the ids behind it, as in afterok:12:13",
                 part);
  if (singleton) {
    to->push_back({DependencyKind::kSingleton});
    return Status::Ok();
  }
  for (std::string_view rest = part.substr(colon + 1);;) {
    const std::size_t end = rest.find(':');
    MSA_ASSIGN_OR_RETURN(const Dependency one, ParseOne(*kind, rest.substr(0, end)));
    to->push_back(one);
    if (end == std::string_view::npos) return Status::Ok();
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

Result<DependencyList> ParseDependencies(std::string_view text) {
  DependencyList out;
  out.any = text.find('?') != std::string_view::npos;
  if (out.any && text.find(',') != std::string_view::npos)
    return Error(Code::kInvalidArgument,
                 "'{}' mixes ',' (all of them) and '?' (one of them); use one of both", text);
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find(out.any ? '?' : ',');
    MSA_RETURN_IF_ERROR(AddPart(rest.substr(0, end), &out.dependencies));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (out.dependencies.size() > kMaxDependencies)
    return Error(Code::kInvalidArgument,
                 "{} dependencies, at most {} are possible; let a job in between depend on some of them",
                 out.dependencies.size(), kMaxDependencies);
  return out;
}

}  // namespace msa::cli
