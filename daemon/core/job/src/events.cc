#include "msa/job/events.h"

#include "msa/base/wire.h"

namespace msa {
namespace {

template <class Any, class M>
Result<Any> DecodeAs(std::string_view payload) {
  MSA_ASSIGN_OR_RETURN(M message, wire::Decode<M>(payload));
  return Any(std::move(message));
}

}  // namespace

Result<JobdMessage> DecodeJobdMessage(std::uint16_t type, std::string_view payload) {
  switch (type) {
    case wire::JobStarted::kType:
      return DecodeAs<JobdMessage, wire::JobStarted>(payload);
    case wire::NamespaceReport::kType:
      return DecodeAs<JobdMessage, wire::NamespaceReport>(payload);
    case wire::GrantAsk::kType:
      return DecodeAs<JobdMessage, wire::GrantAsk>(payload);
    case wire::GrantRelease::kType:
      return DecodeAs<JobdMessage, wire::GrantRelease>(payload);
    case wire::GrantWithdraw::kType:
      return DecodeAs<JobdMessage, wire::GrantWithdraw>(payload);
    case wire::JobExit::kType:
      return DecodeAs<JobdMessage, wire::JobExit>(payload);
    case wire::MemberFailed::kType:
      return DecodeAs<JobdMessage, wire::MemberFailed>(payload);
    case wire::NamePublish::kType:
      return DecodeAs<JobdMessage, wire::NamePublish>(payload);
    case wire::NameLookup::kType:
      return DecodeAs<JobdMessage, wire::NameLookup>(payload);
    case wire::LinkAsk::kType:
      return DecodeAs<JobdMessage, wire::LinkAsk>(payload);
    case wire::LinkReady::kType:
      return DecodeAs<JobdMessage, wire::LinkReady>(payload);
    case wire::NamFromTask::kType:
      return DecodeAs<JobdMessage, wire::NamFromTask>(payload);
    case wire::NamTaskGone::kType:
      return DecodeAs<JobdMessage, wire::NamTaskGone>(payload);
    case wire::NamAllotmentAsk::kType:
      return DecodeAs<JobdMessage, wire::NamAllotmentAsk>(payload);
    case wire::CompanionReport::kType:
      return DecodeAs<JobdMessage, wire::CompanionReport>(payload);
    default:
      return Error(Code::kInvalidArgument,
                   "message type 0x{:04x} is none that a job daemon sends to the controller", type);
  }
}

Result<NamdMessage> DecodeNamdMessage(std::uint16_t type, std::string_view payload) {
  switch (type) {
    case wire::NamExtentDone::kType:
      return DecodeAs<NamdMessage, wire::NamExtentDone>(payload);
    case wire::NamExtentDamaged::kType:
      return DecodeAs<NamdMessage, wire::NamExtentDamaged>(payload);
    case wire::NamFromLocal::kType:
      return DecodeAs<NamdMessage, wire::NamFromLocal>(payload);
    case wire::NamLocalGone::kType:
      return DecodeAs<NamdMessage, wire::NamLocalGone>(payload);
    case wire::NamScanned::kType:
      return DecodeAs<NamdMessage, wire::NamScanned>(payload);
    default:
      return Error(Code::kInvalidArgument,
                   "message type 0x{:04x} is none that a namd sends to the controller", type);
  }
}

Result<SlurmAgentMessage> DecodeSlurmAgentMessage(std::uint16_t type, std::string_view payload) {
  switch (type) {
    case wire::SlurmAgentState::kType:
      return DecodeAs<SlurmAgentMessage, wire::SlurmAgentState>(payload);
    case wire::SlurmJobsChanged::kType:
      return DecodeAs<SlurmAgentMessage, wire::SlurmJobsChanged>(payload);
    case wire::SlurmJobAnswer::kType:
      return DecodeAs<SlurmAgentMessage, wire::SlurmJobAnswer>(payload);
    case wire::SlurmOrphansCancelled::kType:
      return DecodeAs<SlurmAgentMessage, wire::SlurmOrphansCancelled>(payload);
    case wire::SlurmDone::kType:
      return DecodeAs<SlurmAgentMessage, wire::SlurmDone>(payload);
    default:
      return Error(Code::kInvalidArgument, "message type 0x{:04x} is none that msa-slurm-agent sends", type);
  }
}

}  // namespace msa
