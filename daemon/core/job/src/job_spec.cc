#include "msa/job/job_spec.h"

#include "msa/job/name_text.h"
#include "msa/job/resource_limits.h"
#include "msa/job/stdio_pattern.h"

namespace msa {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Status CheckText(std::string_view what, const std::string& text, std::size_t limit) {
  if (text.size() > limit)
    return Error(Code::kInvalidArgument, "{} has {} bytes, the limit is {}; shorten it", what, text.size(),
                 limit);
  if (text.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, "{} contains a zero byte, which no program can be given", what);
  return Status::Ok();
}

Status CheckDirectory(std::string_view what, const std::string& path) {
  MSA_RETURN_IF_ERROR(CheckText(what, path, kMaxPathBytes));
  if (!path.starts_with('/'))
    return Error(Code::kInvalidArgument,
                 "{} is '{}', which is not absolute; give a path that starts with '/'", what, path);
  return Status::Ok();
}

// Adds the bytes of `env` to `total`.
Status CheckEnvironment(const std::vector<std::string>& env, std::size_t& total) {
  for (const std::string& entry : env) {
    total += entry.size() + 1;
    if (total > kMaxEnvironmentBytes)
      return Error(Code::kInvalidArgument,
                   "the environment has more than {} bytes; pass less of it with --export",
                   kMaxEnvironmentBytes);
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error(Code::kInvalidArgument, "environment entry '{}' is not of the form NAME=VALUE",
                   entry.substr(0, 80));
    MSA_RETURN_IF_ERROR(CheckText("an environment entry", entry, kMaxEnvironmentBytes));
  }
  return Status::Ok();
}

Status CheckPatterns(const wire::StdioSpec& stdio) {
  for (const std::string* pattern : {&stdio.out, &stdio.err, &stdio.in}) {
    MSA_RETURN_IF_ERROR(CheckText("a file pattern", *pattern, kMaxPathBytes));
    if (*pattern != "none") MSA_RETURN_IF_ERROR(ExpandPattern(*pattern, {}).status());
  }
  return Status::Ok();
}

Status CheckPrograms(const JobSpec& spec) {
  std::size_t environment = 0;
  std::size_t arguments = 0;
  MSA_RETURN_IF_ERROR(CheckEnvironment(spec.env, environment));
  for (std::size_t i = 0; i < spec.components.size(); ++i) {
    const Component& component = spec.components[i];
    if (component.argv.empty() || component.argv[0].empty())
      return Error(Code::kInvalidArgument,
                   "component {} names no program; write it behind the component's options", i);
    for (const std::string& argument : component.argv) {
      arguments += argument.size() + 1;
      MSA_RETURN_IF_ERROR(CheckText("an argument", argument, kMaxArgumentBytes));
    }
    if (arguments > kMaxArgumentBytes)
      return Error(Code::kInvalidArgument, "the arguments have more than {} bytes; pass them in a file",
                   kMaxArgumentBytes);
    MSA_RETURN_IF_ERROR(CheckEnvironment(component.env, environment));
    if (!component.cwd.empty())
      MSA_RETURN_IF_ERROR(CheckDirectory(fmt::format("working directory of component {}", i), component.cwd));
  }
  return Status::Ok();
}

}  // namespace

JobRequest RequestOf(const JobSpec& spec) {
  JobRequest request;
  for (const Component& component : spec.components) request.components.push_back(component.resources);
  if (spec.time_limit_s > 0) request.time_limit = Millis(std::int64_t{1000} * spec.time_limit_s);
  request.oversubscribe = spec.oversubscribe;
  return request;
}

Status CompleteSpec(JobSpec& spec, const SystemTopology& topology) {
  if (spec.components.empty())
    return Status(Code::kInvalidArgument, "the job has no component; name a program to run");
  if (spec.components.size() > kMaxComponents)
    return Error(Code::kInvalidArgument, "the job has {} components, the limit is {}", spec.components.size(),
                 kMaxComponents);
  MSA_RETURN_IF_ERROR(CheckText("the job's name", spec.name, kMaxNameBytes));
  MSA_RETURN_IF_ERROR(CheckName("the job's name", spec.name));
  MSA_RETURN_IF_ERROR(CheckPrograms(spec));
  MSA_RETURN_IF_ERROR(CheckDirectory("the working directory", spec.cwd));
  MSA_RETURN_IF_ERROR(CheckPatterns(spec.stdio));
  MSA_RETURN_IF_ERROR(CheckLimits(spec.limits));
  if (spec.name.empty()) spec.name = CleanName(BaseName(spec.components[0].argv[0]).substr(0, kMaxNameBytes));

  JobRequest request = RequestOf(spec);
  MSA_RETURN_IF_ERROR(FillDefaults(request, topology));
  MSA_RETURN_IF_ERROR(CheckCanEver(request, topology));
  for (std::size_t i = 0; i < spec.components.size(); ++i)
    spec.components[i].resources = std::move(request.components[i]);
  return Status::Ok();
}

}  // namespace msa
