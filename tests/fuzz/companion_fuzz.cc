// Any bytes as any message between msa's daemons and the helpers of Slurm, and as the texts of Slurm's jobs
// that the helpers read: names, comments, processors, reasons. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msa/base/companion_messages.h"
#include "msa/base/slurm_agent_messages.h"

#include "companion_mark.h"
#include "core_list.h"
#include "reason_text.h"
#include "round_trip.h"
#include "said_on_stderr.h"

namespace {

void Texts(std::string_view text) {
  using namespace msa::companion;
  const std::size_t half = text.size() / 2;
  if (const auto mark = ParseMark(text.substr(0, half), text.substr(half)))
    if (ParseMark(JobName(*mark), JobComment(*mark)) != mark) std::abort();
  const auto cores = ParseCores(text);
  if (cores.ok() && cores->size() > 65536) std::abort();
  (void)ReasonText(text);
  (void)ProspectOf(text);
  (void)LibslurmText(std::string(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::wire;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  Texts(rest);
  msa::fuzz::RoundTripAs<CompanionAsk, CompanionShrink, CompanionRelease, CompanionPending, CompanionGranted,
                         CompanionRefused, CompanionKept, CompanionEnded, SlurmAgentState, SlurmJobsChanged,
                         SlurmJobQuestion, SlurmJobAnswer, SlurmCancelOrphans, SlurmOrphansCancelled,
                         SlurmKillStep, SlurmCancelJob, SlurmDone>(data[0], rest);
  return 0;
}
