// Decoders of the messages between job daemons and of tasks: whatever decodes must encode again to the same
// message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msa/base/wire.h"
#include "msa/jobd/task_messages.h"
#include "msa/pmix/collective.h"

#include "peer_messages.h"

namespace {

template <class M>
void RoundTrip(std::string_view payload) {
  const auto message = msa::wire::Decode<M>(payload);
  if (!message.ok()) return;
  const std::string once = msa::wire::Encode(*message);
  const auto again = msa::wire::Decode<M>(once);
  if (!again.ok() || msa::wire::Encode(*again) != once) std::abort();
}

template <class... Ms>
void Pick(std::uint8_t which, std::string_view payload) {
  std::uint8_t i = 0;
  ((i++ == which % sizeof...(Ms) ? RoundTrip<Ms>(payload) : void()), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::jobd;
  if (size == 0) return 0;
  Pick<PeerHello, PeerWelcome, PeerRefused, NamespaceRegister, NamespaceReady, NamespaceStart, TasksStarted,
       TaskEnded, NamespaceSignal, NamespaceKill, NamespaceDeregister, TaskOutput, OutputCredit, TaskInput,
       InputTaken, ModexRequest, ModexReply, StorePublish, StoreLookup, StoreUnpublish, StoreReply,
       SpawnRequest, SpawnReply, AbortRequest, NamespacesLinked, NamespaceConnected, TaskNotice, Membership,
       MemberGone, JobEnd, msa::pmix::CollectiveMessage, msa::wire::TaskHello, msa::wire::TaskWelcome>(
      data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
