#include "batch/submit_options.h"

#include <algorithm>

#include "msa/job/name_text.h"

#include "batch/submit_draft.h"
#include "options/resource_limits.h"
#include "options/run_environment.h"
#include "options/run_options.h"

namespace msa::cli {
namespace {

using From = SubmitDraft::From;
using Words = std::vector<std::string>;

Status TooMany() {
  return Error(Code::kInvalidArgument, "more than {} components; join some of them", kMaxComponents);
}

bool SeparatesComponents(const Words& words) {
  return words.size() == 1 && (words[0] == "hetjob" || words[0] == "packjob");
}

// Reads one component's options of a line.
Status ReadWords(OptionParser& parser, const Words& words) {
  MSA_ASSIGN_OR_RETURN(const Words operands, parser.Parse(words));
  if (parser.help_asked())
    return Status(Code::kInvalidArgument, "--help is no option of a script; remove it");
  if (operands.empty()) return Status::Ok();
  return Error(
      Code::kInvalidArgument,
      "'{}' is no option; expected options, or 'hetjob' alone between components; a value with blanks "
      "is quoted",
      operands[0]);
}

Status ReadDirective(SubmitDraft& draft, OptionParser& parser, const Directive& directive) {
  if (SeparatesComponents(directive.words)) {
    draft.NextComponent();
    return draft.at < kMaxComponents ? Status::Ok() : TooMany();
  }
  std::vector<Words> parts = {directive.words};
  if (directive.dialect == Dialect::kMsa) parts = SplitComponents(directive.words);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) draft.NextComponent();
    if (draft.at >= kMaxComponents) return TooMany();
    MSA_RETURN_IF_ERROR(ReadWords(parser, parts[i]));
  }
  return Status::Ok();
}

Status ReadHead(SubmitDraft& draft, std::string_view file, ScriptHead head) {
  draft.from = From::kScript;
  OptionParser msa = MakeSubmitParser(draft, Dialect::kMsa);
  OptionParser sbatch = MakeSubmitParser(draft, Dialect::kSbatch);
  for (const Directive& directive : head.directives) {
    draft.where = fmt::format("{}:{}", file, directive.line);
    draft.dialect = directive.dialect;
    Status status = ReadDirective(draft, directive.dialect == Dialect::kMsa ? msa : sbatch, directive);
    if (!status.ok()) return status.WithContext(draft.where);
  }
  std::move(head.warnings.begin(), head.warnings.end(), std::back_inserter(draft.request.warnings));
  return Status::Ok();
}

Status ReadCommandLine(SubmitDraft& draft, const std::vector<Words>& components) {
  draft.from = From::kCommandLine;
  draft.dialect = Dialect::kMsa;
  draft.where.clear();
  draft.at = 0;
  OptionParser parser = MakeSubmitParser(draft, Dialect::kMsa);
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (i > 0) draft.NextComponent();
    MSA_RETURN_IF_ERROR(parser.Parse(components[i], Operands::kEndOptions).status());
  }
  return Status::Ok();
}

std::string Absolute(const std::string& path, const std::string& base) {
  return path.starts_with('/') ? path : base == "/" ? base + path : base + "/" + path;
}

std::string JobName(std::string_view file) {
  return CleanName(file.substr(file.rfind('/') + 1).substr(0, kMaxNameBytes));
}

Result<JobSpec> FinishSpec(SubmitDraft& draft, const SubmitCall& call,
                           const SubmitSurroundings& surroundings) {
  JobSpec spec = std::move(draft.spec);
  spec.mode = wire::JobMode::kBatch;
  spec.script_args = call.script_args;
  for (SubmitDraft::Part& part : draft.parts) spec.components.push_back(std::move(part.component));
  spec.cwd = draft.chdir.empty() ? surroundings.cwd : Absolute(draft.chdir, surroundings.cwd);
  Result<Words> env = ExportEnvironment(draft.export_expression, surroundings.env);
  if (!env.ok()) return env.status().WithContext("--export");
  spec.env = *std::move(env);
  MSA_ASSIGN_OR_RETURN(spec.limits, Propagated(draft.propagate, surroundings.limits));
  if (spec.stdio.out.empty()) spec.stdio.out = "msa-%j.out";
  if (spec.stdio.in.empty()) spec.stdio.in = "none";
  // Files are named from the working directory of the script, as sbatch does.
  for (std::string* file : {&spec.stdio.out, &spec.stdio.err, &spec.stdio.in})
    if (!file->empty() && *file != "none") *file = Absolute(*file, spec.cwd);
  return spec;
}

// A file of submissions holds the options of each of its jobs.
Status CheckFromFile(const SubmitCall& call, const Words& rest) {
  if (!rest.empty())
    return Error(Code::kInvalidArgument, "--from {} holds the jobs, '{}' is one too; leave one of them out",
                 call.from, rest[0]);
  const Words& words = call.components[0];
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (name == "--parsable") continue;
    if (name != "--from" && name != "--dir" && name != "--backend")
      return Error(Code::kInvalidArgument, "'{}' stands beside --from; write it into the lines of {}",
                   words[i], call.from);
    if (name == words[i]) ++i;
  }
  return Status::Ok();
}

}  // namespace

Result<SubmitCall> ReadSubmitCall(const Words& args) {
  SubmitDraft draft;
  OptionParser parser = MakeSubmitParser(draft, Dialect::kMsa);
  SubmitCall call;
  Words rest = args;
  for (;;) {
    MSA_ASSIGN_OR_RETURN(const Words operands, parser.Parse(rest, Operands::kEndOptions));
    call.help_asked = parser.help_asked();
    if (call.help_asked) return call;
    const auto options = static_cast<std::ptrdiff_t>(rest.size() - operands.size());
    call.components.emplace_back(rest.begin(), rest.begin() + options);
    rest = operands;
    if (rest.empty() || rest[0] != ":") break;
    rest.erase(rest.begin());
    draft.NextComponent();
    if (draft.at >= kMaxComponents) return TooMany();
  }
  call.from = draft.from_file;
  call.dir = draft.request.dir;
  call.backend = draft.request.backend;
  call.parsable = draft.request.parsable;
  if (!call.from.empty()) {
    MSA_RETURN_IF_ERROR(CheckFromFile(call, rest));
    return call;
  }
  call.wrap = draft.wrap;
  if (!draft.wrap.empty() && !rest.empty())
    return Error(Code::kInvalidArgument, "--wrap makes the script, '{}' is one too; leave one of them out",
                 rest[0]);
  if (!rest.empty()) {
    call.script = rest[0];
    call.script_args.assign(rest.begin() + 1, rest.end());
  }
  return call;
}

Result<SubmitRequest> ReadSubmission(const SubmitCall& call, std::string_view file, std::string_view script,
                                     const SubmitSurroundings& surroundings) {
  MSA_ASSIGN_OR_RETURN(ScriptHead head, ReadDirectives(file, script));
  SubmitDraft draft;
  draft.now = surroundings.now;
  MSA_RETURN_IF_ERROR(ReadHead(draft, file, std::move(head)));
  MSA_RETURN_IF_ERROR(ReadCommandLine(draft, call.components));
  SubmitRequest request = std::move(draft.request);
  MSA_ASSIGN_OR_RETURN(request.spec, FinishSpec(draft, call, surroundings));
  request.spec.script = script;
  if (request.spec.name.empty()) request.spec.name = JobName(file);
  return request;
}

std::string WrapScript(std::string_view command) {
  return fmt::format("#!/bin/sh\n# made by msactl submit --wrap\n\n{}\n", command);
}

std::string SubmitHelp() {
  SubmitDraft draft;
  return MakeSubmitParser(draft, Dialect::kMsa).Help();
}

}  // namespace msa::cli
