#pragma once
// The commands where Slurm schedules (--backend slurm): what Slurm says, with what msa's controller knows
// beside it where one answers. An exit code that is not 0 is that of Slurm's command, which has said why.

#include <string>

#include "backend/choice.h"
#include "backend/translate.h"
#include "commands/invocation.h"

namespace msa::cli {

// `option`: --backend, `dir`: --dir. Reads MSA_BACKEND and the client file, whose word holds for the system
// that it names alone: one's own local system is msa's.
Result<BackendChoice> ChoiceFor(const std::string& option, const std::string& dir);

Result<int> SlurmJobList(const Invocation& call, const BackendChoice& choice, const JobQuery& query);
Result<int> SlurmJobShow(const Invocation& call, const BackendChoice& choice);
Result<int> SlurmJobWhy(const Invocation& call, const BackendChoice& choice);
struct SlurmCancel {
  bool all = false;  // of this user
  std::string user;  // of that one
  bool now = false;
};
Result<int> SlurmJobCancel(const Invocation& call, const BackendChoice& choice, const SlurmCancel& request);

Result<int> SlurmModuleList(const Invocation& call, const BackendChoice& choice);
// `module`: by name, kind or id; empty: all.
Result<int> SlurmNodeList(const Invocation& call, const BackendChoice& choice, const std::string& module);

// Becomes srun: returns only if it does not.
Result<int> SlurmRun(const BackendChoice& choice, const TypedCall& call);
// `file` and `script`: what msactl has read; both empty with --wrap.
Result<int> SlurmSubmit(const BackendChoice& choice, TypedCall call, const std::string& file,
                        const std::string& script);

}  // namespace msa::cli
