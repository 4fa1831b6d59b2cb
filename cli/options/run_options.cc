#include "options/run_options.h"

#include <algorithm>
#include <optional>

#include "msa/topology/host_list.h"

#include "backend/choice.h"
#include "options/nam_options.h"
#include "options/parser.h"
#include "options/resource_limits.h"
#include "options/run_environment.h"
#include "options/values.h"

namespace msa::cli {
namespace {

constexpr std::string_view kUsage = "[OPTIONS] PROGRAM [ARGS...] [: [OPTIONS] PROGRAM [ARGS...]]...";
constexpr std::string_view kSummary =
    "Run programs as one job on one or more modules and wait for it. Components are separated by ':'; they "
    "start\n"
    "together and share one MPI_COMM_WORLD. Everything after a program's name belongs to the program.";
constexpr std::string_view kEpilogue =
    "The options from --output on belong to the whole job and stand before the first ':'.\n"
    "File names may hold %j (job), %t (rank), %n (node number), %N (node name), %u (user), %x (job name).\n"
    "Exit code: the highest of the tasks' codes, 128+N for a death by signal N, 125-127 if the launch "
    "failed.\n"
    "Where Slurm schedules, this becomes an srun, which judges the values; it takes options of srun too.\n\n"
    "example: msactl run -m cluster -n 2 ./a : -m booster -N 2 -n 4 ./b";

constexpr std::string_view kAllocUsage = "[OPTIONS] [: [OPTIONS]]... [COMMAND [ARGS...]]";
constexpr std::string_view kAllocSummary =
    "Wait for nodes on one or more modules, then run a command (default: your shell) here, beside them. "
    "'msactl run'\n"
    "started by it runs in the nodes; the end of the command gives them back.";
constexpr std::string_view kAllocEpilogue =
    "Exit code: that of the command; at least 1 if the job ended first. Ctrl-C while waiting cancels.\n"
    "Where Slurm schedules, this becomes an salloc, which judges the values; it takes options of salloc "
    "too.\n\n"
    "example: msactl job alloc -m cluster -n 4 : -m booster -N 2 sh -c 'msactl run ./a : -m booster ./b'";

// What the options of one component and those of the job are written to.
struct Draft {
  Component component;
  JobSpec spec;
  std::string chdir;
  std::string export_expression = "ALL";
  std::string propagate = "ALL";
  RunRequest request;
  std::string job_wide;  // the last job-wide option that was used, for messages
  std::vector<std::uint32_t> het_groups;
  bool exact = false;
};

template <class T, class Parsed>
Status Store(Result<Parsed> parsed, T* to) {
  if (!parsed.ok()) return parsed.status();
  *to = static_cast<T>(*parsed);
  return Status::Ok();
}

Status AppendHosts(std::string_view text, std::vector<std::string>* to) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHostList(text));
  if (names.empty())
    return Status(Code::kInvalidArgument, "'' names no node; expected names as in cn0,bn[0-3]");
  to->insert(to->end(), names.begin(), names.end());
  return Status::Ok();
}

void AddNumber(OptionParser& parser, OptionSpec option, NumberRange range, std::uint32_t* to) {
  option.takes = Takes::kValue;
  option.set = [range, to](std::string_view value) { return Store(ParseNumber(value, range), to); };
  parser.Add(std::move(option));
}

void AddText(OptionParser& parser, OptionSpec option, std::function<Status(std::string_view)> set) {
  option.takes = Takes::kValue;
  option.set = std::move(set);
  parser.Add(std::move(option));
}

void AddComponentOptions(OptionParser& parser, Draft& draft) {
  ComponentRequest& ask = draft.component.resources;
  parser.Text('m', "module", "MODULE", "module by name, kind or id (default: the first module)", &ask.module);
  AddText(parser, {.letter = 'N', .name = "nodes", .value_name = "MIN[-MAX]", .help = "number of nodes"},
          [&ask](std::string_view value) -> Status {
            MSA_ASSIGN_OR_RETURN(const NodeRange range, ParseNodeRange(value));
            ask.min_nodes = range.min;
            ask.max_nodes = range.max;
            return Status::Ok();
          });
  AddNumber(
      parser,
      {.letter = 'n', .name = "ntasks", .value_name = "N", .help = "number of tasks (default: one a node)"},
      {1, kMaxTasksPerJob}, &ask.ntasks);
  AddNumber(parser, {.name = "ntasks-per-node", .value_name = "N", .help = "at most so many tasks on a node"},
            {1, kMaxTasksPerJob}, &ask.ntasks_per_node);
  AddNumber(
      parser,
      {.letter = 'c', .name = "cpus-per-task", .value_name = "N", .help = "cores of each task (default: 1)"},
      {1, 65536}, &ask.cpus_per_task);
  AddText(parser,
          {.name = "mem", .value_name = "SIZE", .help = "memory on each node, in MiB or with K, M, G, T"},
          [&ask](std::string_view value) { return Store(ParseMemory(value), &ask.memory); });
  AddText(parser,
          {.letter = 'w',
           .name = "nodelist",
           .value_name = "NODES",
           .help = "exactly these nodes, as cn0,bn[0-3]"},
          [&ask](std::string_view value) { return AppendHosts(value, &ask.nodelist); });
  AddText(parser, {.letter = 'x', .name = "exclude", .value_name = "NODES", .help = "none of these nodes"},
          [&ask](std::string_view value) { return AppendHosts(value, &ask.exclude); });
  parser.Flag(0, "exclusive", "share the nodes with no other job", &ask.exclusive);
  AddNumber(parser, {.name = "gpus-per-node", .value_name = "N", .help = "GPUs on each node"}, {0, 65536},
            &ask.gpus_per_node);
}

// "0", "0,2", "0-1".
Status AppendHetGroups(std::string_view text, std::vector<std::uint32_t>* to) {
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t dash = item.find('-');
    const NumberRange range{0, kMaxComponents - 1};
    MSA_ASSIGN_OR_RETURN(const std::uint64_t first, ParseNumber(item.substr(0, dash), range));
    std::uint64_t last = first;
    if (dash != std::string_view::npos) {
      MSA_ASSIGN_OR_RETURN(last, ParseNumber(item.substr(dash + 1), range));
    }
    if (last < first)
      return Error(Code::kInvalidArgument, "'{}' counts down; expected numbers of components as in 0,2-3",
                   item);
    for (std::uint64_t group = first; group <= last; ++group)
      to->push_back(static_cast<std::uint32_t>(group));
    if (comma == std::string_view::npos) return Status::Ok();
    rest.remove_prefix(comma + 1);
  }
}

// Of a step inside a batch job or an allocation.
void AddStepOptions(OptionParser& parser, Draft& draft) {
  AddText(parser,
          {.name = "het-group",
           .value_name = "LIST",
           .help = "inside a job: in these components of it, as 0 or 0,2-3"},
          [&draft](std::string_view value) { return AppendHetGroups(value, &draft.het_groups); });
  parser.Flag(0, "overlap", "inside a job: share cores with its other steps, and wait for none",
              &draft.request.overlap);
  bool* const ignored = &draft.exact;
  parser.Flag(0, "exact", "inside a job: only the cores that are asked for (always so)", ignored);
  AddText(parser, {.name = "job", .value_name = "JOB", .help = "run as a step of this job of yours"},
          [&draft](std::string_view value) { return Store(ParseJobId(value), &draft.request.job); });
}

// Refuses options that are srun's or of a later version, with what to do instead.
void AddRefusals(OptionParser& parser) {
  struct Refusal {
    const char* name;
    const char* value_name;
    const char* text;
  };
  static constexpr Refusal kRefusals[] = {
      {"query", "QUERY", "this version selects nodes by --module, --nodelist and --exclude only; use these"},
      {"spawn-max", "N", "this version sets no limit on spawned processes; leave it out"},
  };
  for (const Refusal& refusal : kRefusals) {
    AddText(parser, {.name = refusal.name, .value_name = refusal.value_name, .help = "not in this version"},
            [text = refusal.text](std::string_view) { return Status(Code::kInvalidArgument, text); });
  }
  AddText(parser,
          {.name = "world",
           .value_name = "joint",
           .help = "all components share MPI_COMM_WORLD (the only way yet)"},
          [](std::string_view value) {
            if (value == "joint") return Status::Ok();
            if (value == "separate")
              return Status(Code::kInvalidArgument,
                            "'separate' is not in this version; run the components as jobs of their own");
            return Error(Code::kInvalidArgument, "'{}' is unknown; expected joint", value);
          });
}

// Adds options that note their name in draft.job_wide.
class JobWide {
 public:
  JobWide(OptionParser& parser, Draft& draft) : parser_(parser), draft_(draft) {}
  void Add(OptionSpec option, std::function<Status(std::string_view)> set) {
    option.set = [&draft = draft_, name = option.name, set = std::move(set)](std::string_view value) {
      draft.job_wide = "--" + name;
      return set(value);
    };
    parser_.Add(std::move(option));
  }
  void Flag(char letter, std::string name, std::string help, bool* to) {
    Add({.letter = letter, .name = std::move(name), .help = std::move(help)}, [to](std::string_view) {
      *to = true;
      return Status::Ok();
    });
  }
  void Text(char letter, std::string name, std::string value_name, std::string help, std::string* to) {
    Add({.letter = letter,
         .name = std::move(name),
         .takes = Takes::kValue,
         .value_name = std::move(value_name),
         .help = std::move(help)},
        [to](std::string_view value) {
          if (value.empty())
            return Status(Code::kInvalidArgument, "'' is empty; give a value or leave the option out");
          *to = value;
          return Status::Ok();
        });
  }

 private:
  OptionParser& parser_;
  Draft& draft_;
};

void AddStdioOptions(JobWide& wide, Draft& draft) {
  wire::StdioSpec& stdio = draft.spec.stdio;
  wide.Text('o', "output", "FILE", "file for standard output, or 'none' (default: to msactl's)", &stdio.out);
  wide.Text('e', "error", "FILE", "file for standard error, or 'none' (default: where the output goes)",
            &stdio.err);
  wide.Text('i', "input", "FILE", "standard input of rank 0, or 'none' (default: msactl's)", &stdio.in);
  wide.Add({.name = "open-mode",
            .takes = Takes::kValue,
            .value_name = "append|truncate",
            .help = "how files are opened (default: truncate)"},
           [&stdio](std::string_view value) {
             if (value != "append" && value != "truncate" && value != "a" && value != "t")
               return Error(Code::kInvalidArgument, "'{}' is unknown; expected append or truncate", value);
             stdio.append = value[0] == 'a';
             return Status::Ok();
           });
  wide.Flag('l', "label", "put 'RANK: ' before each line, 's1.RANK: ' for tasks of the first spawn",
            &stdio.label);
}

void AddPropagation(JobWide& wide, Draft& draft) {
  wide.Add({.name = "propagate",
            .takes = Takes::kOptionalValue,
            .value_name = "LIMITS",
            .help = "resource limits of this shell that the tasks get, as srun's: ALL, NONE, or some of "
                    "AS,CORE,CPU,DATA,FSIZE,MEMLOCK,NOFILE,NPROC,RSS,STACK (default: ALL)"},
           [&draft](std::string_view value) -> Status {
             draft.propagate = value;
             return Propagated(value, {}).status();
           });
}

// Of runs and allocations.
void AddQueueOptions(JobWide& wide, Draft& draft) {
  wide.Text('J', "job-name", "NAME", "name of the job (default: that of the program)", &draft.spec.name);
  wide.Add(
      {.letter = 't',
       .name = "time",
       .takes = Takes::kValue,
       .value_name = "TIME",
       .help = "time limit: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS"},
      [&draft](std::string_view value) { return Store(ParseTimeLimit(value), &draft.spec.time_limit_s); });
  wide.Add({.letter = 'I',
            .name = "immediate",
            .takes = Takes::kOptionalValue,
            .value_name = "SECONDS",
            .help = "give up (exit code 6) unless the job starts within so many seconds (default: 1)"},
           [&draft](std::string_view value) -> Status {
             draft.spec.immediate_s = 1;
             if (value.empty()) return Status::Ok();
             return Store(ParseNumber(value, {1, 86400}), &draft.spec.immediate_s);
           });
}

// Of runs and allocations.
void AddNamOptions(JobWide& wide, Draft& draft) {
  wide.Add({.name = "nam", .takes = Takes::kValue, .value_name = "SIZE", .help = kNamHelp},
           [&draft](std::string_view value) {
             draft.request.job_only = "--nam";
             return Store(ParseMemory(value), &draft.spec.nam);
           });
  wide.Add(
      {.name = "nam-region", .takes = Takes::kValue, .value_name = "NAME[:ro|rw]", .help = kNamRegionHelp},
      [&draft](std::string_view value) {
        draft.request.job_only = "--nam-region";
        return AddNamRegion(value, &draft.spec.nam_regions);
      });
  wide.Add({.name = "gateways", .takes = Takes::kValue, .value_name = "N", .help = kGatewaysHelp},
           [&draft](std::string_view value) {
             draft.request.job_only = "--gateways";
             return Store(ParseNumber(value, {0, kMaxGateways}), &draft.spec.gateways);
           });
}

void AddLifeOptions(JobWide& wide, Draft& draft) {
  wide.Text('D', "chdir", "DIRECTORY", "working directory of the tasks (default: the present one)",
            &draft.chdir);
  wide.Text(0, "export", "VARIABLES", "ALL, NONE, or names as in A,B=value (default: ALL)",
            &draft.export_expression);
  wide.Add(
      {.letter = 'K',
       .name = "kill-on-bad-exit",
       .takes = Takes::kOptionalValue,
       .value_name = "0|1",
       .help =
           "1: end the job when any task fails; 0: only when one aborts (default: when an MPI task fails)"},
      [&draft](std::string_view value) {
        if (!value.empty() && value != "0" && value != "1")
          return Error(Code::kInvalidArgument, "'{}' is unknown; expected 0 or 1", value);
        draft.spec.kill_policy = value == "0" ? wire::KillPolicy::kNever : wire::KillPolicy::kAlways;
        return Status::Ok();
      });
  wide.Add(
      {.name = "on-child-failure",
       .takes = Takes::kValue,
       .value_name = "kill|event",
       .help = "when a spawned process fails: kill ends who is still connected to it (default); event leaves "
               "them to go on, told by a PMIx event"},
      [&draft](std::string_view value) {
        if (value != "kill" && value != "event")
          return Error(Code::kInvalidArgument, "'{}' is unknown; expected kill or event", value);
        draft.spec.on_child_failure =
            value == "kill" ? wire::OnChildFailure::kKill : wire::OnChildFailure::kEvent;
        return Status::Ok();
      });
  wide.Flag(0, "no-mpi-library", "run the tasks without libmsampi (arch and soft in MPI_Comm_spawn)",
            &draft.spec.no_mpi_library);
  wide.Flag(0, "no-bind", "do not bind tasks to cores", &draft.spec.no_bind);
  wide.Flag(0, "oversubscribe", "allow more tasks than cores", &draft.spec.oversubscribe);
}

void AddCallOptions(JobWide& wide, Draft& draft) {
  wide.Add({.letter = 'v', .name = "verbose", .help = "say what happens; twice: more"},
           [&draft](std::string_view) {
             draft.request.verbose += 1;
             return Status::Ok();
           });
  wide.Flag('q', "quiet", "only errors", &draft.request.quiet);
  wide.Text(0, "dir", "DIR", "directory of the local system (default: MSA_DIR, else the user's own)",
            &draft.request.dir);
  wide.Text(0, "server", "tls:HOST:PORT", "controller on another host, instead of --dir", &draft.request.dir);
  wide.Text(0, "backend", "msa|slurm|auto", kBackendHelp, &draft.request.backend);
}

void AddAllocOptions(OptionParser& parser, Draft& draft) {
  JobWide wide(parser, draft);
  AddPropagation(wide, draft);
  AddQueueOptions(wide, draft);
  AddNamOptions(wide, draft);
  wide.Flag(0, "oversubscribe", "allow more tasks than cores", &draft.spec.oversubscribe);
  wide.Flag(0, "no-shell", "run no command: the nodes are held until 'msactl job cancel'",
            &draft.request.no_shell);
  AddCallOptions(wide, draft);
}

void AddJobOptions(OptionParser& parser, Draft& draft) {
  JobWide wide(parser, draft);
  AddStdioOptions(wide, draft);
  AddPropagation(wide, draft);
  AddQueueOptions(wide, draft);
  AddNamOptions(wide, draft);
  AddLifeOptions(wide, draft);
  wide.Flag('d', "detach", "queue the job and return; output goes to msa-<job>.out unless --output is given",
            &draft.request.detach);
  AddCallOptions(wide, draft);
}

OptionParser MakeParser(Draft& draft, RunKind kind) {
  const bool run = kind == RunKind::kRun;
  OptionParser parser(run ? "msactl run" : "msactl job alloc", std::string(run ? kUsage : kAllocUsage),
                      std::string(run ? kSummary : kAllocSummary));
  AddComponentOptions(parser, draft);
  AddRefusals(parser);
  if (run) {
    AddStepOptions(parser, draft);
    AddJobOptions(parser, draft);
  } else {
    AddAllocOptions(parser, draft);
  }
  parser.Epilogue(std::string(run ? kEpilogue : kAllocEpilogue));
  return parser;
}

std::string Absolute(const std::string& path, const std::string& base) {
  return path.starts_with('/') ? path : base == "/" ? base + path : base + "/" + path;
}

// Files are named from the working directory of the tasks, as srun does.
void CompleteFiles(wire::StdioSpec& stdio, const std::string& cwd) {
  for (std::string* file : {&stdio.out, &stdio.err, &stdio.in})
    if (!file->empty() && *file != "none") *file = Absolute(*file, cwd);
}

Status FinishRequest(Draft& draft, const RunSurroundings& surroundings) {
  JobSpec& spec = draft.spec;
  spec.cwd = draft.chdir.empty() ? surroundings.cwd : Absolute(draft.chdir, surroundings.cwd);
  Result<std::vector<std::string>> env = ExportEnvironment(draft.export_expression, surroundings.env);
  if (!env.ok()) return env.status().WithContext("--export");
  spec.env = *std::move(env);
  MSA_ASSIGN_OR_RETURN(spec.limits, Propagated(draft.propagate, surroundings.limits));
  if (draft.request.detach) {
    if (spec.stdio.out.empty()) spec.stdio.out = "msa-%j.out";
    if (spec.stdio.in.empty()) spec.stdio.in = "none";
    if (spec.stdio.label)
      return Status(
          Code::kInvalidArgument,
          "--label needs the output here, that of a job with --detach or from a file of submissions goes to "
          "a file; leave it out");
    if (spec.immediate_s != 0)
      return Status(
          Code::kInvalidArgument,
          "--immediate waits for the start; with --detach or from a file of submissions nobody waits; leave "
          "it out");
  }
  CompleteFiles(spec.stdio, spec.cwd);
  return Status::Ok();
}

void AddComponent(Draft& draft) {
  const ComponentRequest& ask = draft.component.resources;
  if (ask.memory.value != 0) draft.request.job_only = "--mem";
  if (ask.gpus_per_node != 0) draft.request.job_only = "--gpus-per-node";
  draft.request.het_groups.push_back(draft.het_groups);
  draft.spec.components.push_back(std::move(draft.component));
}

Status FinishAlloc(Draft& draft) {
  draft.spec.mode = wire::JobMode::kAlloc;
  const std::vector<std::string>& command = draft.spec.components.back().argv;
  if (draft.request.no_shell && !command.empty())
    return Status(Code::kInvalidArgument, "--no-shell runs no command; leave one of them out");
  if (draft.spec.name.empty())
    draft.spec.name = command.empty() ? "shell" : command[0].substr(command[0].rfind('/') + 1);
  return Status::Ok();
}

}  // namespace

std::vector<std::vector<std::string>> SplitComponents(const std::vector<std::string>& args) {
  std::vector<std::vector<std::string>> out(1);
  for (const std::string& word : args) {
    if (word == ":") {
      out.emplace_back();
    } else {
      out.back().push_back(word == "\\:" ? ":" : word);
    }
  }
  return out;
}

Result<RunRequest> ParseRun(const std::vector<std::string>& args, const RunSurroundings& surroundings,
                            RunKind kind) {
  Draft draft;
  draft.request.detach = surroundings.queued;
  OptionParser parser = MakeParser(draft, kind);
  const auto parts = SplitComponents(args);
  std::size_t words = 0;  // read, separators included
  if (parts.size() > kMaxComponents)
    return Error(Code::kInvalidArgument, "{} components; at most {} are possible, join some of them",
                 parts.size(), kMaxComponents);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    draft.component = {};
    draft.het_groups.clear();
    draft.job_wide.clear();
    Result<std::vector<std::string>> argv = parser.Parse(parts[i], Operands::kEndOptions);
    if (!argv.ok() && parts.size() > 1) return argv.status().WithContext(fmt::format("component {}", i));
    if (!argv.ok()) return argv.status();
    if (parser.help_asked()) {
      draft.request.help_asked = true;
      return draft.request;
    }
    if (i > 0 && !draft.job_wide.empty())
      return Error(Code::kInvalidArgument,
                   "component {}: {} belongs to the whole job; put it before the first ':'", i,
                   draft.job_wide);
    words += parts[i].size() + 1;
    if (kind == RunKind::kRun && (argv->empty() || argv->front().empty())) {
      const std::string where = parts.size() == 1 ? "" : fmt::format("component {}: ", i);
      return Error(Code::kInvalidArgument, "{}no program was given; expected: msactl run {}", where, kUsage);
    }
    draft.component.argv = *std::move(argv);
    AddComponent(draft);
    if (kind == RunKind::kAlloc && !draft.spec.components.back().argv.empty()) {
      // All that follows is the command's, a ':' too.
      if (words <= args.size())
        draft.spec.components.back().argv.insert(draft.spec.components.back().argv.end(),
                                                 args.begin() + static_cast<std::ptrdiff_t>(words) - 1,
                                                 args.end());
      break;
    }
  }
  MSA_RETURN_IF_ERROR(FinishRequest(draft, surroundings));
  if (kind == RunKind::kAlloc) MSA_RETURN_IF_ERROR(FinishAlloc(draft));
  draft.request.spec = std::move(draft.spec);
  return std::move(draft.request);
}

std::string RunHelp(RunKind kind) {
  Draft draft;
  return MakeParser(draft, kind).Help();
}

}  // namespace msa::cli
