// Any bytes as any message that crosses a process's edge: decoded or refused, never read beyond the end; what
// is decoded encodes again the same way. The first byte of the input chooses the message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "msa/base/enrol_messages.h"
#include "msa/base/messages.h"
#include "msa/base/nam_messages.h"

#include "round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::wire;
  if (size == 0) return 0;
  msa::fuzz::RoundTripAs<
      JobdHello, LaunchJob, MembersChanged, CancelJob, GrantAnswer, NamespaceReport, GrantAsk, JobExit,
      AttachOpen, Output, Input, SessionEnd, JobdWelcome, JobdQuit, SignalJob, ExitAck, JobStarted,
      GrantRelease, MemberFailed, OutputAck, InputAck, ClientSignal, Notice, StepOpen, StepStatus,
      RecallGrant, NameAnswer, LinkOffer, LinkAnswer, LinkEnd, NamePublish, NameLookup, LinkAsk, LinkReady,
      NamCreate, NamOpen, NamClose, NamRefresh, NamRemove, NamSetLifetime, NamList, NamResize, NamSetAccess,
      NamUsageAsk, NamCheckAsk, NamGranted, NamDone, NamListing, NamUsage, NamCheckResult, NamFailed,
      SignedNamLease, NamAttach, NamAttached, NamDetach, NamAtomic, NamAtomicDone, NamLock, NamLocked,
      NamdHello, NamExtentDone, NamExtentDamaged, NamFromLocal, NamLocalGone, NamdWelcome, NamExtentAllocate,
      NamExtentCommit, NamToLocal, NamExtentFree, NamRevoke, NamScan, NamScanned, NamdQuit, NamEnded,
      NamWithdraw, NamClientHello, NamFromTask, NamTaskGone, NamToTask, NamAllotmentAsk, NamAllotment,
      EnrolRequest, Enrolled, EnrolRefused>(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
