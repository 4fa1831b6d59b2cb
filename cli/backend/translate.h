#pragma once
// Command lines of `msactl run`, `submit` and `job alloc` as those of srun, sbatch and salloc. Slurm judges
// the values; what has no counterpart is refused here. Pure; any thread.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

// An option as it was typed, by its long name.
struct TypedOption {
  std::string name;
  std::string value;
  bool has_value = false;
  std::string where;  // "job.sh:3"; empty: the command line
};

struct TypedCall {
  std::vector<std::vector<TypedOption>> components{1};
  std::vector<std::vector<std::string>> programs;  // of run: argv of each component
  std::string script;  // of submit; empty or "-": standard input; of alloc: a command
  std::vector<std::string> script_args;
  std::string backend;  // --backend
  std::string dir;      // --dir
  bool help_asked = false;
};
// srun's and sbatch's options that msactl's do not name are taken too. On an error `out` holds what came
// before it. kInvalidArgument: an unknown option, a missing value.
Status ReadTypedRun(const std::vector<std::string>& args, TypedCall* out);
Status ReadTypedSubmit(const std::vector<std::string>& args, TypedCall* out);
Status ReadTypedAlloc(const std::vector<std::string>& args, TypedCall* out);
// Adds the options of the script's #MSA lines before those of the command line, which go before them; its
// #SBATCH lines are sbatch's to read. kInvalidArgument, with FILE:LINE.
Status AddScriptLines(std::string_view file, std::string_view script, TypedCall* call);

// What Slurm says about itself, as far as a translation needs it.
struct SlurmPlace {
  std::vector<std::string> partitions;
  // Of the job around this process, by component: SLURM_JOB_PARTITION and the like. Empty: there is none.
  std::vector<std::string> job_partitions;
  bool job_submit = false;  // a plugin turns --module into a partition or a feature
};
// From "K=V" lines.
std::vector<std::string> PartitionsAround(const std::vector<std::string>& env);
// Whether `scontrol show config` names msa's job_submit, or one in Lua.
bool HasJobSubmit(std::string_view config);
// What it says of ClusterName; empty: nothing.
std::string ClusterName(std::string_view config);
// A module was named that is no partition there: HasJobSubmit matters.
bool NeedsJobSubmit(const TypedCall& call, const std::vector<std::string>& partitions);

// The words from "srun" on. kInvalidArgument names the option and Slurm's way.
Result<std::vector<std::string>> SrunWords(const TypedCall& call, const SlurmPlace& place);

// Likewise from "salloc" on.
Result<std::vector<std::string>> SallocWords(const TypedCall& call, const SlurmPlace& place);

struct SbatchCall {
  std::vector<std::string> words;  // from "sbatch" on, without the script
  bool wait = false;
  bool parsable = false;
  bool quiet = false;
  bool wraps = false;
};
Result<SbatchCall> SbatchWords(const TypedCall& call, const SlurmPlace& place);

// Of `sbatch --parsable`: "4711" or "4711;cluster". kDataLoss: something else.
Result<std::uint64_t> SubmittedJob(std::string_view text);

}  // namespace msa::cli
