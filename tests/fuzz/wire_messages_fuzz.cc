// Any bytes as any message: decoded or refused, never read beyond the end; what is decoded encodes again the
// same way.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "msa/base/messages.h"
#include "msa/base/wire.h"

namespace msa::wire {
namespace {

template <class M>
void Try(std::string_view payload) {
  const auto decoded = Decode<M>(payload);
  if (!decoded.ok()) return;
  const std::string once = Encode(*decoded);
  const auto again = Decode<M>(once);
  if (!again.ok() || Encode(*again) != once) std::abort();
}

}  // namespace
}  // namespace msa::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::wire;
  if (size == 0) return 0;
  const std::string_view payload(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 12) {
    case 0:
      Try<JobdHello>(payload);
      break;
    case 1:
      Try<LaunchJob>(payload);
      break;
    case 2:
      Try<MembersChanged>(payload);
      break;
    case 3:
      Try<CancelJob>(payload);
      break;
    case 4:
      Try<GrantAnswer>(payload);
      break;
    case 5:
      Try<NamespaceReport>(payload);
      break;
    case 6:
      Try<GrantAsk>(payload);
      break;
    case 7:
      Try<JobExit>(payload);
      break;
    case 8:
      Try<AttachOpen>(payload);
      break;
    case 9:
      Try<Output>(payload);
      break;
    case 10:
      Try<Input>(payload);
      break;
    default:
      Try<SessionEnd>(payload);
      break;
  }
  return 0;
}
