#include "output_file.h"

#include <unistd.h>

#include <cerrno>

namespace msa::jobd {
namespace {

std::string Absolute(const std::string& path, const std::string& cwd) {
  return path.starts_with('/') ? path : cwd + "/" + path;
}

Result<Sink> PlanSink(const std::string& pattern, const std::string& cwd, const PatternValues& values) {
  if (pattern.empty()) return Sink{SinkKind::kCarry, {}};
  if (pattern == "none") return Sink{SinkKind::kDrop, {}};
  MSA_ASSIGN_OR_RETURN(const std::string expanded, ExpandPattern(pattern, values));
  if (IsPerTask(pattern)) return Sink{SinkKind::kPerTask, Absolute(pattern, cwd)};
  return Sink{SinkKind::kFile, Absolute(expanded, cwd)};
}

}  // namespace

Result<StdioPlan> PlanStdio(const wire::StdioSpec& spec, const std::string& cwd,
                            const PatternValues& values) {
  StdioPlan plan;
  MSA_ASSIGN_OR_RETURN(plan.out, PlanSink(spec.out, cwd, values));
  MSA_ASSIGN_OR_RETURN(plan.err, PlanSink(spec.err, cwd, values));
  // srun: standard error follows standard output into its file unless it has its own.
  if (spec.err.empty() && (plan.out.kind == SinkKind::kFile || plan.out.kind == SinkKind::kPerTask))
    plan.err = plan.out;
  return plan;
}

Status WriteAll(int fd, const std::string& path, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n > 0) {
      data.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno != EINTR) {
      return ErrnoError(errno, "write output file '" + path + "'");
    }
  }
  return Status::Ok();
}

}  // namespace msa::jobd
