// Decoders of what job daemons tell each other, of what tasks tell them, and of what the node daemon reads
// back from its own disk. The first byte of the input chooses the message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msa/base/messages.h"
#include "msa/base/slurm_messages.h"
#include "msa/jobd/task_messages.h"
#include "msa/pmix/collective.h"

#include "jobd_record.h"
#include "peer_messages.h"
#include "round_trip.h"
#include "slurm_peer_messages.h"

namespace {

// The node daemon reads the first fields of a LaunchJob, the job daemon all of it: they must agree.
void SameHeader(std::string_view payload) {
  const auto launch = msa::wire::Decode<msa::wire::LaunchJob>(payload);
  if (!launch.ok()) return;
  const auto header = msa::wire::Decode<msa::node::LaunchHeader>(payload);
  if (!header.ok() || header->job != launch->job || header->incarnation != launch->incarnation ||
      header->user.uid != launch->user.uid || header->head_index != launch->head_index)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::jobd;
  if (size == 0) return 0;
  const std::string_view payload(reinterpret_cast<const char*>(data) + 1, size - 1);
  msa::fuzz::RoundTripAs<
      PeerHello, PeerWelcome, PeerRefused, NamespaceRegister, NamespaceReady, NamespaceStart, TasksStarted,
      TaskEnded, NamespaceSignal, NamespaceKill, NamespaceDeregister, TaskOutput, OutputCredit, TaskInput,
      InputTaken, ModexRequest, ModexReply, StorePublish, StoreLookup, StoreUnpublish, StoreReply,
      SpawnRequest, SpawnReply, AbortRequest, NamespacesLinked, NamespaceConnected, Membership, MemberGone,
      JobEnd, msa::pmix::CollectiveMessage, msa::wire::TaskHello, msa::wire::TaskWelcome,
      msa::node::JobdRecord, TaskNotice, PlanRequest, PlanReply, PlanDrop, NamespaceEvent,
      msa::wire::SpawnAsk, msa::wire::SpawnVerdict, msa::wire::SpawnWithdraw, msa::wire::Disconnected,
      ForeignRegister, ForeignReady, ForeignEnded, ForeignCollective, ForeignPart, ForeignResult,
      ForeignModex, ForeignModexReply, ForeignModexServe, SlurmJoined, SlurmLost, SlurmRefused, SlurmNotice,
      msa::wire::SlurmTaskJoin, msa::wire::SlurmTaskReady, msa::wire::SlurmTaskEnd, msa::wire::SlurmStepEnd>(
      data[0], payload);
  SameHeader(payload);
  return 0;
}
