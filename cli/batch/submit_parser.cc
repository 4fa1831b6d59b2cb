#include "msa/base/clock.h"
#include "msa/topology/host_list.h"

#include "backend/choice.h"
#include "batch/foreign_options.h"
#include "batch/submit_draft.h"
#include "batch/wait_options.h"
#include "options/nam_options.h"
#include "options/resource_limits.h"
#include "options/values.h"

namespace msa::cli {
namespace {

using From = SubmitDraft::From;
using Setter = std::function<Status(std::string_view)>;

constexpr std::string_view kUsage = "[OPTIONS] [SCRIPT [ARGS...]]";
constexpr std::string_view kSummary =
    "Queue a batch script and return. It runs on the first node of its job; 'msactl run' in it starts steps "
    "in "
    "the\n"
    "job's nodes. Options also stand in the script, before its first command, in lines '#MSA ...' or "
    "'#SBATCH "
    "...';\n"
    "those given here go before them. Components are separated by ':' here, by '#MSA hetjob' or '#SBATCH "
    "hetjob'\n"
    "there. Without SCRIPT, or with '-', the script is read from standard input.";
constexpr std::string_view kEpilogue =
    "The options from --job-name on belong to the whole job and stand in its first component.\n"
    "File names may hold %j (job), %x (job name), %u (user), %N (node name).\n"
    "The script's output goes to msa-<job>.out unless --output is given.\n"
    "Options of sbatch that have no meaning here are named in a warning; all others are errors.\n"
    "Where Slurm schedules, this becomes an sbatch, which reads #SBATCH lines itself and takes all its "
    "options.\n\n"
    "example: msactl submit -m cluster -n 2 : -m booster -N 2 coupled.sh input.nml";

template <class T, class Parsed>
Status Store(Result<Parsed> parsed, T* to) {
  if (!parsed.ok()) return parsed.status();
  *to = static_cast<T>(*parsed);
  return Status::Ok();
}

// "2", "a100:2".
Result<std::uint64_t> ParseGpus(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return ParseNumber(colon == std::string_view::npos ? text : text.substr(colon + 1), {0, 65536});
}

// "gpu:2", "gpu:a100:2", "gpu".
Status SetGres(std::string_view text, std::uint32_t* gpus) {
  if (text == "none") return Status::Ok();
  if (text == "gpu") {
    *gpus = 1;
    return Status::Ok();
  }
  if (!text.starts_with("gpu:"))
    return Error(Code::kInvalidArgument, "'{}' is not known here; expected gpu:N", text);
  return Store(ParseGpus(text.substr(4)), gpus);
}

ComponentRequest& AskOf(SubmitDraft& draft) { return draft.part().component.resources; }

Status SetNodes(std::string_view value, From now, std::vector<std::string>& to, From& filled_from) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHostList(value));
  if (names.empty())
    return Status(Code::kInvalidArgument, "'' names no node; expected names as in cn0,bn[0-3]");
  if (filled_from != now) to.clear();
  filled_from = now;
  to.insert(to.end(), names.begin(), names.end());
  return Status::Ok();
}

// Options of the component that is being read.
class Components {
 public:
  Components(OptionParser& parser, SubmitDraft& draft, Dialect dialect)
      : parser_(parser), draft_(draft), dialect_(dialect) {}

  void Add() {
    const Setter module = [&draft = draft_](std::string_view value) {
      AskOf(draft).module = value;
      return Status::Ok();
    };
    // -m is sbatch's --distribution.
    const char letter = dialect_ == Dialect::kMsa ? 'm' : '\0';
    Value({.letter = letter,
           .name = "module",
           .value_name = "MODULE",
           .help = "module by name, kind or id (default: the first module)"},
          module);
    Value({.letter = 'p', .name = "partition", .value_name = "MODULE", .help = "the same"}, module);
    Value({.letter = 'N', .name = "nodes", .value_name = "MIN[-MAX]", .help = "number of nodes"},
          [&draft = draft_](std::string_view value) -> Status {
            MSA_ASSIGN_OR_RETURN(const NodeRange range, ParseNodeRange(value));
            AskOf(draft).min_nodes = range.min;
            AskOf(draft).max_nodes = range.max;
            return Status::Ok();
          });
    Number(
        {.letter = 'n', .name = "ntasks", .value_name = "N", .help = "number of tasks (default: one a node)"},
        {1, kMaxTasksPerJob}, &ComponentRequest::ntasks);
    Number({.name = "ntasks-per-node", .value_name = "N", .help = "at most so many tasks on a node"},
           {1, kMaxTasksPerJob}, &ComponentRequest::ntasks_per_node);
    Number({.letter = 'c',
            .name = "cpus-per-task",
            .value_name = "N",
            .help = "cores of each task (default: 1)"},
           {1, 65536}, &ComponentRequest::cpus_per_task);
    Value({.name = "mem", .value_name = "SIZE", .help = "memory on each node, in MiB or with K, M, G, T"},
          [&draft = draft_](std::string_view value) {
            return Store(ParseMemory(value), &AskOf(draft).memory);
          });
    Value({.name = "gpus-per-node", .value_name = "N", .help = "GPUs on each node"},
          [&draft = draft_](std::string_view value) {
            return Store(ParseGpus(value), &AskOf(draft).gpus_per_node);
          });
    Value({.name = "gres", .value_name = "gpu:N", .help = "the same, as sbatch has it"},
          [&draft = draft_](std::string_view value) { return SetGres(value, &AskOf(draft).gpus_per_node); });
    AddNodes();
  }

 private:
  void Value(OptionSpec option, Setter set) {
    option.takes = Takes::kValue;
    option.set = std::move(set);
    parser_.Add(std::move(option));
  }
  void Number(OptionSpec option, NumberRange range, std::uint32_t ComponentRequest::*to) {
    Value(std::move(option), [&draft = draft_, range, to](std::string_view value) {
      return Store(ParseNumber(value, range), &(AskOf(draft).*to));
    });
  }
  void AddNodes() {
    Value({.letter = 'w',
           .name = "nodelist",
           .value_name = "NODES",
           .help = "exactly these nodes, as cn0,bn[0-3]"},
          [&draft = draft_](std::string_view value) {
            return SetNodes(value, draft.from, AskOf(draft).nodelist, draft.part().nodelist_from);
          });
    Value({.letter = 'x', .name = "exclude", .value_name = "NODES", .help = "none of these nodes"},
          [&draft = draft_](std::string_view value) {
            return SetNodes(value, draft.from, AskOf(draft).exclude, draft.part().exclude_from);
          });
    parser_.Add({.name = "exclusive",
                 .takes = Takes::kOptionalValue,
                 .value_name = "user",
                 .help = "share the nodes with no other job",
                 .set = [&draft = draft_](std::string_view) {
                   AskOf(draft).exclusive = true;
                   return Status::Ok();
                 }});
  }

  OptionParser& parser_;
  SubmitDraft& draft_;
  const Dialect dialect_;
};

// Options that belong to the whole job. sbatch lets each component repeat them.
class JobWide {
 public:
  JobWide(OptionParser& parser, SubmitDraft& draft) : parser_(parser), draft_(draft) {}

  void Add(OptionSpec option, Setter set) {
    option.set = [&draft = draft_, name = option.name,
                  set = std::move(set)](std::string_view value) -> Status {
      const bool later = draft.at > 0;
      if (later && (draft.dialect == Dialect::kMsa || draft.from == From::kCommandLine))
        return Error(Code::kInvalidArgument,
                     "belongs to the whole job, not to component {}; put it into the first one", draft.at);
      const auto [it, first] = draft.given.try_emplace(name);
      SubmitDraft::Given& known = it->second;
      if (later && !first && known.from == draft.from) {
        if (known.value != value)
          draft.Warn(fmt::format("--{}={} is left out: it belongs to the whole job, and that of {} stands",
                                 name, value, known.where));
        return Status::Ok();
      }
      known = {draft.from, std::string(value), draft.where};
      return set(value);
    };
    parser_.Add(std::move(option));
  }
  void Value(OptionSpec option, Setter set) {
    option.takes = Takes::kValue;
    Add(std::move(option), std::move(set));
  }
  void Text(OptionSpec option, std::string* to) {
    Value(std::move(option), [to](std::string_view value) {
      if (value.empty())
        return Status(Code::kInvalidArgument, "'' is empty; give a value or leave the option out");
      *to = value;
      return Status::Ok();
    });
  }
  void Flag(OptionSpec option, bool* to) {
    Add(std::move(option), [to](std::string_view) {
      *to = true;
      return Status::Ok();
    });
  }
  // One of two words.
  struct Words {
    std::string_view no;
    std::string_view yes;
  };
  void Choice(OptionSpec option, Words words, std::function<void(bool)> set) {
    option.value_name = fmt::format("{}|{}", words.yes, words.no);
    Value(std::move(option), [words, set = std::move(set)](std::string_view value) {
      if (value != words.yes && value != words.no)
        return Error(Code::kInvalidArgument, "'{}' is unknown; expected {} or {}", value, words.yes,
                     words.no);
      set(value == words.yes);
      return Status::Ok();
    });
  }

 private:
  OptionParser& parser_;
  SubmitDraft& draft_;
};

void AddStreams(JobWide& wide, SubmitDraft& draft) {
  wire::StdioSpec& stdio = draft.spec.stdio;
  wide.Text({.letter = 'o',
             .name = "output",
             .value_name = "FILE",
             .help = "file for standard output, or 'none' (default: msa-%j.out)"},
            &stdio.out);
  wide.Text({.letter = 'e',
             .name = "error",
             .value_name = "FILE",
             .help = "file for standard error, or 'none' (default: where the output goes)"},
            &stdio.err);
  wide.Text({.letter = 'i', .name = "input", .value_name = "FILE", .help = "standard input (default: none)"},
            &stdio.in);
  wide.Value({.name = "open-mode",
              .value_name = "append|truncate",
              .help = "how files are opened (default: truncate)"},
             [&stdio](std::string_view value) {
               if (value != "append" && value != "truncate" && value != "a" && value != "t")
                 return Error(Code::kInvalidArgument, "'{}' is unknown; expected append or truncate", value);
               stdio.append = value[0] == 'a';
               return Status::Ok();
             });
}

void AddWaits(JobWide& wide, SubmitDraft& draft) {
  wide.Value(
      {.letter = 'd',
       .name = "dependency",
       .value_name = "LIST",
       .help = "start after other jobs: afterok:1:2,afterany:3,after:4+5 (minutes),afternotok:6,singleton; "
               "',' all of them, '?' one of them"},
      [&spec = draft.spec](std::string_view value) -> Status {
        MSA_ASSIGN_OR_RETURN(DependencyList list, ParseDependencies(value));
        spec.dependencies = std::move(list.dependencies);
        spec.dependency_any = list.any;
        return Status::Ok();
      });
  wide.Choice(
      {.name = "kill-on-invalid-dep",
       .help = "cancel the job when its dependency can never be met (default: no, it waits and says so)"},
      {"no", "yes"}, [&spec = draft.spec](bool yes) { spec.kill_on_invalid_dep = yes; });
  wide.Value({.letter = 'b',
              .name = "begin",
              .value_name = "WHEN",
              .help = "not before: now+1hour, 16:00, tomorrow, 2026-12-24T16:00"},
             [&draft](std::string_view value) {
               return Store(ParseBegin(value, draft.now), &draft.spec.begin_at_ms);
             });
  wide.Value(
      {.letter = 't',
       .name = "time",
       .value_name = "TIME",
       .help = "time limit: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS"},
      [&draft](std::string_view value) { return Store(ParseTimeLimit(value), &draft.spec.time_limit_s); });
}

void AddSurroundings(JobWide& wide, SubmitDraft& draft) {
  wide.Text({.letter = 'D',
             .name = "chdir",
             .value_name = "DIRECTORY",
             .help = "working directory of the script (default: the present one)"},
            &draft.chdir);
  wide.Text({.name = "export",
             .value_name = "VARIABLES",
             .help = "ALL, NONE, or names as in A,B=value (default: ALL)"},
            &draft.export_expression);
  wide.Add({.name = "propagate",
            .takes = Takes::kOptionalValue,
            .value_name = "LIMITS",
            .help = "resource limits of this shell that the script gets: ALL, NONE, or some of "
                    "AS,CORE,CPU,DATA,FSIZE,MEMLOCK,NOFILE,NPROC,RSS,STACK (default: ALL)"},
           [&draft](std::string_view value) -> Status {
             draft.propagate = value;
             return Propagated(value, {}).status();
           });
  wide.Choice(
      {.name = "on-child-failure",
       .help = "when a process fails that the script has spawned by MPI: kill ends who is still connected "
               "to it (default)"},
      {"event", "kill"}, [&spec = draft.spec](bool kill) {
        spec.on_child_failure = kill ? wire::OnChildFailure::kKill : wire::OnChildFailure::kEvent;
      });
}

void AddNam(JobWide& wide, SubmitDraft& draft) {
  wide.Value({.name = "nam", .value_name = "SIZE", .help = kNamHelp},
             [&draft](std::string_view value) { return Store(ParseMemory(value), &draft.spec.nam); });
  wide.Value({.name = "nam-region", .value_name = "NAME[:ro|rw]", .help = kNamRegionHelp},
             [&draft](std::string_view value) {
               if (draft.nam_regions_from != draft.from) draft.spec.nam_regions.clear();
               draft.nam_regions_from = draft.from;
               return AddNamRegion(value, &draft.spec.nam_regions);
             });
  wide.Value({.name = "gateways", .value_name = "N", .help = kGatewaysHelp},
             [&draft](std::string_view value) {
               return Store(ParseNumber(value, {0, kMaxGateways}), &draft.spec.gateways);
             });
}

void AddCall(JobWide& wide, SubmitDraft& draft) {
  wide.Flag({.letter = 'W', .name = "wait", .help = "wait for the job's end and return its code"},
            &draft.request.wait);
  wide.Flag({.name = "parsable", .help = "print the job's id alone"}, &draft.request.parsable);
  wide.Flag({.letter = 'Q', .name = "quiet", .help = "only errors"}, &draft.request.quiet);
  bool* const ignored = &draft.verbose;
  wide.Flag({.letter = 'v', .name = "verbose", .help = "as sbatch's", .hidden = true}, ignored);
  const auto only_here = [&draft](std::string* to) {
    return [&draft, to](std::string_view value) -> Status {
      if (draft.from == From::kScript)
        return Status(Code::kInvalidArgument, "stands on the command line only; remove it here");
      *to = value;
      return Status::Ok();
    };
  };
  wide.Value({.name = "wrap", .value_name = "COMMAND", .help = "a command line instead of a script"},
             [wrap = only_here(&draft.wrap)](std::string_view value) -> Status {
               if (value.find_first_not_of(" \t\n") == std::string_view::npos)
                 return Error(Code::kInvalidArgument, "'{}' holds no command; name one, or leave it out",
                              value);
               return wrap(value);
             });
  wide.Value({.name = "from",
              .value_name = "FILE",
              .help = "queue a job for each line of FILE ('-': standard input): options and program of "
                      "'msactl run', quoted as in a shell"},
             only_here(&draft.from_file));
  wide.Value({.name = "dir",
              .value_name = "DIR",
              .help = "directory of the local system (default: MSA_DIR, else the user's own)"},
             only_here(&draft.request.dir));
  wide.Value({.name = "server",
              .value_name = "tls:HOST:PORT",
              .help = "controller on another host, instead of --dir"},
             only_here(&draft.request.dir));
  wide.Value({.name = "backend", .value_name = "msa|slurm|auto", .help = kBackendHelp},
             only_here(&draft.request.backend));
}

// More tasks than cores. In sbatch's lines --oversubscribe means shared nodes, which is how nodes are anyway.
void AddSharing(OptionParser& parser, JobWide& wide, SubmitDraft& draft, Dialect dialect) {
  if (dialect == Dialect::kMsa) {
    wide.Flag({.name = "oversubscribe", .help = "allow more tasks than cores"}, &draft.spec.oversubscribe);
  } else {
    parser.Add({.letter = 's', .name = "oversubscribe", .set = [&draft](std::string_view) {
                  draft.Warn("--oversubscribe is ignored: jobs share nodes, by cores");
                  return Status::Ok();
                }});
  }
  wide.Flag({.letter = 'O', .name = "overcommit", .help = "the same, as sbatch has it"},
            &draft.spec.oversubscribe);
}

void AddForeign(OptionParser& parser, SubmitDraft& draft, Dialect dialect) {
  for (const ForeignOption& foreign : ForeignOptions()) {
    const bool distribution = dialect == Dialect::kSbatch && foreign.name == "distribution";
    parser.Add({.letter = distribution ? 'm' : foreign.letter,
                .name = std::string(foreign.name),
                .takes = foreign.takes,
                .value_name = "VALUE",
                .hidden = true,
                .set = [&draft, &foreign](std::string_view) -> Status {
                  if (foreign.meaningless.empty())
                    return Status(Code::kInvalidArgument, std::string(foreign.remedy));
                  draft.Warn(fmt::format("--{} is ignored: {}", foreign.name, foreign.meaningless));
                  return Status::Ok();
                }});
  }
}

}  // namespace

OptionParser MakeSubmitParser(SubmitDraft& draft, Dialect dialect) {
  OptionParser parser("msactl submit", std::string(kUsage), std::string(kSummary));
  Components(parser, draft, dialect).Add();
  JobWide wide(parser, draft);
  wide.Text({.letter = 'J',
             .name = "job-name",
             .value_name = "NAME",
             .help = "name of the job (default: that of the script)"},
            &draft.spec.name);
  AddStreams(wide, draft);
  AddWaits(wide, draft);
  AddSurroundings(wide, draft);
  AddNam(wide, draft);
  AddSharing(parser, wide, draft, dialect);
  AddCall(wide, draft);
  AddForeign(parser, draft, dialect);
  parser.Epilogue(std::string(kEpilogue));
  return parser;
}

}  // namespace msa::cli
