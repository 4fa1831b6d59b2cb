#include "msa/adapters/config/topology_file.h"
#include "msa/topology/size_text.h"

#include "commands/invocation.h"
#include "commands/print.h"
#include "output/site_file.h"

namespace msa::cli {

Result<int> AdminJobSubmit(const Args& args) {
  Invocation call({"msactl admin job-submit", "[OPTIONS] FILE",
                   "Write what Slurm's job_submit plugin has to know of the system of a topology file, for\n"
                   "/etc/slurm/msa_job_submit.conf on the host of slurmctld. Needs no running system."});
  std::string granule_text = "1G";
  call.options().Text(0, "granule", "SIZE", "network attached memory of one licence (default: 1G)",
                      &granule_text);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a topology file"}));
  if (!go) return 0;
  const Result<Bytes> granule = ParseMemory(granule_text);
  if (!granule.ok()) return granule.status().WithContext("--granule");
  if (granule->value == 0)
    return Error(Code::kInvalidArgument, "--granule={} is nothing; give a size as 1G", granule_text);
  MSA_ASSIGN_OR_RETURN(const SystemTopology topology, LoadTopologyFile(call.operands().front()));
  MSA_RETURN_IF_ERROR(Print(SiteFileText(topology, *granule)));
  return 0;
}

}  // namespace msa::cli
