#include "msa/job/job_spec.h"

#include <set>

#include "msa/job/name_text.h"
#include "msa/job/resource_limits.h"
#include "msa/job/stdio_pattern.h"
#include "msa/nam/nam_text.h"
#include "msa/topology/size_text.h"

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

// Adds the bytes of `argv` to `total`.
Status CheckArguments(const std::vector<std::string>& argv, std::size_t& total) {
  for (const std::string& argument : argv) {
    total += argument.size() + 1;
    MSA_RETURN_IF_ERROR(CheckText("an argument", argument, kMaxArgumentBytes));
    if (total > kMaxArgumentBytes)
      return Error(Code::kInvalidArgument, "the arguments have more than {} bytes; pass them in a file",
                   kMaxArgumentBytes);
  }
  return Status::Ok();
}

Status CheckProgram(const JobSpec& spec, std::size_t index, std::size_t& arguments) {
  const std::vector<std::string>& argv = spec.components[index].argv;
  if (spec.mode != wire::JobMode::kStep) {
    if (argv.empty()) return Status::Ok();
    return Error(Code::kInvalidArgument,
                 "component {} names the program '{}', but the steps of a {} name their own; leave it out",
                 index, argv[0].substr(0, 80), spec.mode == wire::JobMode::kBatch ? "script" : "allocation");
  }
  if (argv.empty() || argv[0].empty())
    return Error(Code::kInvalidArgument,
                 "component {} names no program; write it behind the component's options", index);
  return CheckArguments(argv, arguments);
}

Status CheckScript(const JobSpec& spec) {
  if (spec.mode != wire::JobMode::kBatch) {
    if (spec.script.empty() && spec.script_args.empty()) return Status::Ok();
    return Status(Code::kInvalidArgument, "only a batch job has a script; leave it out");
  }
  std::size_t arguments = 0;
  MSA_RETURN_IF_ERROR(CheckArguments(spec.script_args, arguments));
  if (spec.script.size() > kMaxScriptBytes)
    return Error(Code::kInvalidArgument, "the script has {} bytes, the limit is {}; keep data in other files",
                 spec.script.size(), kMaxScriptBytes);
  if (spec.script.find('\0') != std::string::npos)
    return Status(Code::kInvalidArgument, "the script contains a zero byte; submit a script that calls it");
  if (!spec.script.starts_with("#!"))
    return Status(Code::kInvalidArgument,
                  "the script does not begin with '#!' and the path of its interpreter, as '#!/bin/sh'");
  return Status::Ok();
}

Status CheckWaits(JobSpec& spec) {
  if (spec.dependencies.size() > kMaxDependencies)
    return Error(Code::kInvalidArgument, "{} dependencies, the limit is {}; depend on fewer jobs",
                 spec.dependencies.size(), kMaxDependencies);
  for (Dependency& dependency : spec.dependencies) {
    dependency.state = DependencyState::kOpen;
    const bool named = dependency.job.value != 0;
    if (dependency.kind > DependencyKind::kSingleton ||
        named == (dependency.kind == DependencyKind::kSingleton))
      return Error(Code::kInvalidArgument, "dependency {}: job {}; expected a job's id from 1 on{}",
                   DependencyText(dependency), dependency.job, ", none with singleton");
    if (dependency.kind != DependencyKind::kAfter && dependency.delay_s != 0)
      return Error(Code::kInvalidArgument, "dependency {}: only 'after' takes a delay",
                   DependencyText(dependency));
  }
  // The year 2200: sums with it stay in range.
  constexpr std::int64_t kLastBegin = 7'258'118'400'000;
  if (spec.begin_at_ms < 0 || spec.begin_at_ms > kLastBegin)
    return Error(Code::kInvalidArgument, "begin at {} ms since 1970; expected 0 (at once) to {}",
                 spec.begin_at_ms, kLastBegin);
  return Status::Ok();
}

Status CheckNam(const JobSpec& spec, const SystemTopology& topology) {
  const Bytes quota = topology.nam_job_quota;
  if (quota.value != 0 && spec.nam > quota)
    return Error(Code::kOutOfRange,
                 "--nam {}: one job may have {}; reduce --nam, or ask the operator for more",
                 SizeText(spec.nam), SizeText(quota));
  if (spec.nam_regions.size() > kMaxNamBindings)
    return Error(Code::kInvalidArgument, "{} regions with --nam-region, the limit is {}; name fewer",
                 spec.nam_regions.size(), kMaxNamBindings);
  std::set<std::string> named;
  for (const wire::NamRegionBinding& binding : spec.nam_regions) {
    MSA_RETURN_IF_ERROR(CheckNamBinding(binding));
    if (!named.insert(binding.region).second)
      return Error(Code::kInvalidArgument, "--nam-region {} is given twice; name each region once",
                   binding.region);
  }
  return Status::Ok();
}

Status CheckPrograms(const JobSpec& spec) {
  std::size_t environment = 0;
  std::size_t arguments = 0;
  if (spec.mode > wire::JobMode::kAlloc)
    return Error(Code::kInvalidArgument, "job mode {}; expected 0 to {}", static_cast<int>(spec.mode),
                 static_cast<int>(wire::JobMode::kAlloc));
  MSA_RETURN_IF_ERROR(CheckEnvironment(spec.env, environment));
  for (std::size_t i = 0; i < spec.components.size(); ++i) {
    const Component& component = spec.components[i];
    MSA_RETURN_IF_ERROR(CheckProgram(spec, i, arguments));
    MSA_RETURN_IF_ERROR(CheckEnvironment(component.env, environment));
    if (!component.cwd.empty())
      MSA_RETURN_IF_ERROR(CheckDirectory(fmt::format("working directory of component {}", i), component.cwd));
  }
  return Status::Ok();
}

std::string DefaultName(const JobSpec& spec) {
  if (spec.mode == wire::JobMode::kBatch) return "script";
  if (spec.mode == wire::JobMode::kAlloc) return "alloc";
  return CleanName(BaseName(spec.components[0].argv[0]).substr(0, kMaxNameBytes));
}

}  // namespace

JobRequest RequestOf(const JobSpec& spec) {
  JobRequest request;
  request.components.reserve(spec.components.size());
  for (const Component& component : spec.components) request.components.push_back(component.resources);
  if (spec.time_limit_s > 0) request.time_limit = Millis(std::int64_t{1000} * spec.time_limit_s);
  request.oversubscribe = spec.oversubscribe;
  request.nam = spec.nam;
  request.gateways = spec.gateways;
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
  MSA_RETURN_IF_ERROR(CheckScript(spec));
  MSA_RETURN_IF_ERROR(CheckWaits(spec));
  MSA_RETURN_IF_ERROR(CheckNam(spec, topology));
  if (spec.name.empty()) spec.name = DefaultName(spec);

  JobRequest request = RequestOf(spec);
  MSA_RETURN_IF_ERROR(FillDefaults(request, topology));
  MSA_RETURN_IF_ERROR(CheckCanEver(request, topology));
  for (std::size_t i = 0; i < spec.components.size(); ++i)
    spec.components[i].resources = std::move(request.components[i]);
  return Status::Ok();
}

}  // namespace msa
