// Reads what was typed: options by their long names, without judging their values.
#include <algorithm>
#include <set>

#include "backend/translate.h"
#include "batch/directives.h"
#include "batch/foreign_options.h"
#include "batch/submit_draft.h"
#include "batch/submit_options.h"
#include "options/run_options.h"

namespace msa::cli {
namespace {

using Words = std::vector<std::string>;

// Of a command that does nothing but tell them.
template <class Command>
OptionTable TableOfCommand(Command&& command) {
  const OptionProbe probe;
  command();
  return probe.table().value_or(OptionTable{});
}

void Record(OptionSpec& option, std::vector<TypedOption>** to, const std::string& where) {
  option.set = [to, name = option.name, takes = option.takes, &where](std::string_view value) {
    const bool has = takes == Takes::kValue || (takes == Takes::kOptionalValue && !value.empty());
    (*to)->push_back({name, std::string(value), has, where});
    return Status::Ok();
  };
}

// What knows all options and puts those that it meets at the end of **to.
OptionParser Recorder(const OptionTable& table, std::vector<TypedOption>** to, const std::string& where) {
  OptionParser out(table.command, table.usage, "");
  std::set<std::string> names = {"help"};
  std::set<char> letters = {'h'};
  const auto add = [&](OptionSpec option) {
    if (!names.insert(option.name).second) return;
    if (!letters.insert(option.letter).second) option.letter = 0;
    Record(option, to, where);
    out.Add(std::move(option));
  };
  for (const OptionSpec& option : table.options) add(option);
  for (const ForeignOption& foreign : ForeignOptions())
    add({.letter = foreign.letter,
         .name = std::string(foreign.name),
         .takes = foreign.takes,
         .value_name = "VALUE"});
  // Slurm's own beyond sbatch's, and those of msa's plugin.
  const OptionSpec more[] = {
      {.letter = 'p', .name = "partition", .takes = Takes::kValue, .value_name = "NAME"},
      {.name = "msa", .takes = Takes::kValue, .value_name = "auto|yes|no"},
      {.name = "gateways", .takes = Takes::kValue, .value_name = "N"},
      {.name = "gres", .takes = Takes::kValue, .value_name = "LIST"},
      {.name = "mpi", .takes = Takes::kValue, .value_name = "TYPE"},
      {.name = "cpu-bind", .takes = Takes::kValue, .value_name = "HOW"},
      {.name = "dependency", .takes = Takes::kValue, .value_name = "LIST"},
      {.name = "begin", .takes = Takes::kValue, .value_name = "WHEN"},
      {.letter = 'O', .name = "overcommit"},
      {.letter = 'v', .name = "verbose"}};
  for (const OptionSpec& option : more) add(option);
  return out;
}

// Takes what msactl itself follows out of the options.
void TakeOwn(TypedCall* call) {
  for (std::vector<TypedOption>& options : call->components) {
    for (const TypedOption& option : options) {
      if (option.name == "backend") call->backend = option.value;
      if (option.name == "dir" || option.name == "server") call->dir = option.value;
    }
    std::erase_if(options, [](const TypedOption& option) {
      return option.name == "backend" || option.name == "dir" || option.name == "server";
    });
  }
}

Status ReadRun(const Words& args, TypedCall* out) {
  std::vector<TypedOption>* to = nullptr;
  const std::string where;
  OptionParser parser = Recorder(TableOfCommand([] { (void)ParseRun({}, {}); }), &to, where);
  const std::vector<Words> parts = SplitComponents(args);
  out->components.assign(parts.size(), {});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    to = &out->components[i];
    MSA_ASSIGN_OR_RETURN(Words program, parser.Parse(parts[i], Operands::kEndOptions));
    out->help_asked = parser.help_asked();
    if (out->help_asked) return Status::Ok();
    if (program.empty())
      return Error(Code::kInvalidArgument, "{}no program was given; see 'msactl run --help'",
                   parts.size() == 1 ? "" : fmt::format("component {}: ", i));
    out->programs.push_back(std::move(program));
  }
  return Status::Ok();
}

OptionTable SubmitTable(Dialect dialect) {
  SubmitDraft draft;
  OptionParser parser = MakeSubmitParser(draft, dialect);
  return TableOfCommand([&] { (void)parser.Parse({}); });
}

OptionTable AllocTable() {
  return TableOfCommand([] { (void)ParseRun({}, {}, RunKind::kAlloc); });
}

// Components, and then a script or a command with its arguments.
Status ReadComponents(const OptionTable& table, const Words& args, TypedCall* out) {
  std::vector<TypedOption>* to = nullptr;
  const std::string where;
  OptionParser parser = Recorder(table, &to, where);
  out->components.clear();
  for (Words rest = args;;) {
    std::vector<TypedOption> options;
    to = &options;
    Result<Words> operands = parser.Parse(rest, Operands::kEndOptions);
    out->components.push_back(std::move(options));
    if (!operands.ok()) return operands.status();
    out->help_asked = parser.help_asked();
    if (out->help_asked || operands->empty()) return Status::Ok();
    rest = *std::move(operands);
    if (rest[0] != ":") {
      out->script = rest[0];
      out->script_args.assign(rest.begin() + 1, rest.end());
      return Status::Ok();
    }
    rest.erase(rest.begin());
  }
}

}  // namespace

Status ReadTypedRun(const Words& args, TypedCall* out) {
  const Status read = ReadRun(args, out);
  TakeOwn(out);
  return read;
}

Status ReadTypedSubmit(const Words& args, TypedCall* out) {
  const Status read = ReadComponents(SubmitTable(Dialect::kMsa), args, out);
  TakeOwn(out);
  return read;
}

Status ReadTypedAlloc(const Words& args, TypedCall* out) {
  const Status read = ReadComponents(AllocTable(), args, out);
  TakeOwn(out);
  return read;
}

Status AddScriptLines(std::string_view file, std::string_view script, TypedCall* call) {
  MSA_ASSIGN_OR_RETURN(const ScriptHead head, ReadDirectives(file, script));
  std::vector<TypedOption>* to = nullptr;
  std::string where;
  OptionParser parser = Recorder(SubmitTable(Dialect::kMsa), &to, where);
  std::vector<std::vector<TypedOption>> found(1);
  for (const Directive& directive : head.directives) {
    const bool next =
        directive.words.size() == 1 && (directive.words[0] == "hetjob" || directive.words[0] == "packjob");
    if (next) found.emplace_back();
    if (next || directive.dialect != Dialect::kMsa) continue;
    where = fmt::format("{}:{}", file, directive.line);
    bool first = true;
    for (const Words& part : SplitComponents(directive.words)) {
      if (!std::exchange(first, false)) found.emplace_back();
      to = &found.back();
      Result<Words> operands = parser.Parse(part);
      if (!operands.ok()) return operands.status().WithContext(where);
      if (!operands->empty() || parser.help_asked())
        return Error(Code::kInvalidArgument,
                     "{}: '{}' is no option; expected options, or 'hetjob' alone between "
                     "components",
                     where, operands->empty() ? "--help" : operands->front());
    }
  }
  if (call->components.size() < found.size()) call->components.resize(found.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    call->components[i].insert(call->components[i].begin(), found[i].begin(), found[i].end());
  TakeOwn(call);
  // A component that #SBATCH lines alone describe needs no word on sbatch's command line.
  while (call->components.size() > 1 && call->components.back().empty()) call->components.pop_back();
  return Status::Ok();
}

}  // namespace msa::cli
