#include "msa/job/job_spec.h"

namespace msa {

std::string DependencyText(const Dependency& dependency) {
  constexpr std::uint32_t kMinute = 60;
  switch (dependency.kind) {
    case DependencyKind::kAfter:
      if (dependency.delay_s == 0) return fmt::format("after:{}", dependency.job);
      return fmt::format("after:{}+{}", dependency.job, (dependency.delay_s + kMinute - 1) / kMinute);
    case DependencyKind::kAfterAny:
      return fmt::format("afterany:{}", dependency.job);
    case DependencyKind::kAfterOk:
      return fmt::format("afterok:{}", dependency.job);
    case DependencyKind::kAfterNotOk:
      return fmt::format("afternotok:{}", dependency.job);
    case DependencyKind::kSingleton:
      break;
  }
  return "singleton";
}

}  // namespace msa
