#pragma once
// The commands where Slurm schedules (--backend slurm): what Slurm says, with what msa's controller knows
// beside it where one answers. An exit code that is not 0 is that of Slurm's command, which has said why.

#include <string>

#include "backend/choice.h"
#include "backend/translate.h"
#include "commands/invocation.h"
#include "commands/job_waiter.h"

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

// `signal` to the tasks of the steps of the job, the component or the task of an array that the second
// operand names.
Result<int> SlurmJobSignal(const Invocation& call, const BackendChoice& choice, int signal);
// Until all are over; the highest of their exit codes. kNotFound, kDataLoss: nobody knows it (any more).
Result<int> SlurmJobWait(const Invocation& call, const BackendChoice& choice, const WaitOptions& options);

enum class SlurmOutput { kOutput, kErrors };
struct SlurmLogs {
  bool follow = false;  // until the job has ended
  SlurmOutput which = SlurmOutput::kOutput;
};
Result<int> SlurmJobLogs(const Invocation& call, const BackendChoice& choice, const SlurmLogs& request);
struct SlurmAttach {
  bool label = false;
  bool quiet = false;
};
// Becomes sattach.
Result<int> SlurmJobAttach(const Invocation& call, const BackendChoice& choice, const SlurmAttach& request);
// kNotFound: this Slurm keeps no accounting.
Result<int> SlurmJobHistory(const Invocation& call, const BackendChoice& choice, const JobQuery& query);

Result<int> SlurmModuleList(const Invocation& call, const BackendChoice& choice);
// `module`: by name, kind or id; empty: all.
Result<int> SlurmNodeList(const Invocation& call, const BackendChoice& choice, const std::string& module);
Result<int> SlurmModuleShow(const Invocation& call, const BackendChoice& choice);
Result<int> SlurmModuleTopology(const Invocation& call, const BackendChoice& choice);
Result<int> SlurmNodeShow(const Invocation& call, const BackendChoice& choice);
// By `scontrol update`, then as the list.
Result<int> SlurmNodeDrain(const Invocation& call, const BackendChoice& choice, const std::string& reason);
Result<int> SlurmNodeResume(const Invocation& call, const BackendChoice& choice);

// Becomes srun: returns only if it does not.
Result<int> SlurmRun(const BackendChoice& choice, const TypedCall& call);
// Becomes salloc.
Result<int> SlurmAlloc(const BackendChoice& choice, const TypedCall& call);
// `file` and `script`: what msactl has read; both empty with --wrap.
Result<int> SlurmSubmit(const BackendChoice& choice, TypedCall call, const std::string& file,
                        const std::string& script);

}  // namespace msa::cli
