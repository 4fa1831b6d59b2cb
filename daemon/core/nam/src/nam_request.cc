#include "msa/base/wire.h"
#include "msa/nam/nam_book.h"

namespace msa {
namespace {

template <class M>
Result<NamRequest> DecodeAs(std::string_view payload) {
  MSA_ASSIGN_OR_RETURN(M message, wire::Decode<M>(payload));
  return NamRequest(std::move(message));
}

}  // namespace

Result<NamRequest> DecodeNamRequest(std::uint16_t type, std::string_view payload) {
  switch (type) {
    case wire::NamCreate::kType:
      return DecodeAs<wire::NamCreate>(payload);
    case wire::NamOpen::kType:
      return DecodeAs<wire::NamOpen>(payload);
    case wire::NamClose::kType:
      return DecodeAs<wire::NamClose>(payload);
    case wire::NamRefresh::kType:
      return DecodeAs<wire::NamRefresh>(payload);
    case wire::NamRemove::kType:
      return DecodeAs<wire::NamRemove>(payload);
    case wire::NamSetLifetime::kType:
      return DecodeAs<wire::NamSetLifetime>(payload);
    case wire::NamList::kType:
      return DecodeAs<wire::NamList>(payload);
    case wire::NamResize::kType:
      return DecodeAs<wire::NamResize>(payload);
    case wire::NamSetAccess::kType:
      return DecodeAs<wire::NamSetAccess>(payload);
    case wire::NamUsageAsk::kType:
      return DecodeAs<wire::NamUsageAsk>(payload);
    case wire::NamCheckAsk::kType:
      return DecodeAs<wire::NamCheckAsk>(payload);
    case wire::NamWithdraw::kType:
      return DecodeAs<wire::NamWithdraw>(payload);
    default:
      return Error(Code::kInvalidArgument, "message type 0x{:04x} is no request for memory", type);
  }
}

}  // namespace msa
