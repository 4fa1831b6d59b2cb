#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "msa/adapters/process/child_process.h"
#include "msa/base/unique_fd.h"

#include "backend/slurm_command.h"
#include "commands/print.h"
#include "commands/slurm.h"

namespace msa::cli {
namespace {

bool NamesModule(const TypedCall& call) {
  for (const std::vector<TypedOption>& options : call.components)
    for (const TypedOption& option : options)
      if (option.name == "module" || option.name == "partition") return true;
  return false;
}

// Slurm is asked only what the call needs. If it does not answer, srun and sbatch say why.
Result<SlurmPlace> PlaceOf(const BackendChoice& choice, const TypedCall& call) {
  SlurmPlace out;
  out.job_partitions = PartitionsAround(CurrentEnvironment());
  if (!NamesModule(call)) return out;
  SlurmCall ask;
  ask.words = {"sinfo", "--noheader", "--all", "--summarize", "-o", "%R"};
  ask.errors = Errors::kKept;
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, ask));
  for (std::string_view rest = answer.exit_code == 0 ? std::string_view(answer.out) : ""; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.empty()) out.partitions.emplace_back(line);
  }
  if (!NeedsJobSubmit(call, out.partitions)) return out;
  ask.words = {"scontrol", "show", "config"};
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer config, RunSlurm(choice, ask));
  out.job_submit = HasJobSubmit(config.out);
  return out;
}

// The script as the standard input of sbatch.
Result<UniqueFd> InMemory(const std::string& text) {
  UniqueFd file(::memfd_create("script", MFD_CLOEXEC));
  if (!file) return ErrnoError(errno, "make a file in memory for the script");
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = ::write(file.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "keep the script in memory");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return ErrnoError(errno, "keep the script in memory");
  return file;
}

}  // namespace

Result<int> SlurmRun(const BackendChoice& choice, const TypedCall& call) {
  MSA_ASSIGN_OR_RETURN(const SlurmPlace place, PlaceOf(choice, call));
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> words, SrunWords(call, place));
  return BecomeSlurm(choice, words);
}

Result<int> SlurmAlloc(const BackendChoice& choice, const TypedCall& call) {
  MSA_ASSIGN_OR_RETURN(const SlurmPlace place, PlaceOf(choice, call));
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> words, SallocWords(call, place));
  return BecomeSlurm(choice, words);
}

Result<int> SlurmSubmit(const BackendChoice& choice, TypedCall call, const std::string& file,
                        const std::string& script) {
  if (!script.empty()) MSA_RETURN_IF_ERROR(AddScriptLines(file, script, &call));
  const bool from_input = !script.empty() && (call.script.empty() || call.script == "-");
  if (from_input && !call.script_args.empty())
    return Error(
        Code::kInvalidArgument,
        "'{}' is an argument for a script from standard input, and sbatch gives none to it; put the script "
        "into a file",
        call.script_args[0]);
  MSA_ASSIGN_OR_RETURN(SlurmPlace place, PlaceOf(choice, call));
  MSA_ASSIGN_OR_RETURN(SbatchCall sbatch, SbatchWords(call, place));
  SlurmCall run;
  run.as_typed = true;
  run.words = std::move(sbatch.words);
  UniqueFd input;
  if (from_input) {
    MSA_ASSIGN_OR_RETURN(input, InMemory(script));
    run.in = input.get();
  } else if (!script.empty()) {
    // sbatch would look for a bare name in PATH.
    run.words.push_back(call.script.find('/') == std::string::npos ? "./" + call.script : call.script);
    run.words.insert(run.words.end(), call.script_args.begin(), call.script_args.end());
  }
  run.on_first_line = [&sbatch](std::string_view line) -> Status {
    MSA_ASSIGN_OR_RETURN(const std::uint64_t id, SubmittedJob(line));
    if (sbatch.parsable) return Print(fmt::format("{}\n", id));
    return sbatch.quiet ? Status::Ok() : Print(fmt::format("submitted job {}\n", id));
  };
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, run));
  return answer.exit_code;
}

}  // namespace msa::cli
