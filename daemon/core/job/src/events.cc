#include "msa/job/events.h"

#include "msa/base/wire.h"

namespace msa {
namespace {

template <class M>
Result<JobdMessage> DecodeAs(std::string_view payload) {
  MSA_ASSIGN_OR_RETURN(M message, wire::Decode<M>(payload));
  return JobdMessage(std::move(message));
}

}  // namespace

Result<JobdMessage> DecodeJobdMessage(std::uint16_t type, std::string_view payload) {
  switch (type) {
    case wire::JobStarted::kType:
      return DecodeAs<wire::JobStarted>(payload);
    case wire::NamespaceReport::kType:
      return DecodeAs<wire::NamespaceReport>(payload);
    case wire::GrantAsk::kType:
      return DecodeAs<wire::GrantAsk>(payload);
    case wire::GrantRelease::kType:
      return DecodeAs<wire::GrantRelease>(payload);
    case wire::GrantWithdraw::kType:
      return DecodeAs<wire::GrantWithdraw>(payload);
    case wire::JobExit::kType:
      return DecodeAs<wire::JobExit>(payload);
    case wire::MemberFailed::kType:
      return DecodeAs<wire::MemberFailed>(payload);
    case wire::NamePublish::kType:
      return DecodeAs<wire::NamePublish>(payload);
    case wire::NameLookup::kType:
      return DecodeAs<wire::NameLookup>(payload);
    case wire::LinkAsk::kType:
      return DecodeAs<wire::LinkAsk>(payload);
    case wire::LinkReady::kType:
      return DecodeAs<wire::LinkReady>(payload);
    default:
      return Error(Code::kInvalidArgument,
                   "message type 0x{:04x} is none that a job daemon sends to the controller", type);
  }
}

}  // namespace msa
