// One member's collectives under any messages of its peers, its own calls, losses and time limits between
// them: every call completes at most once, nothing is sent to itself or to nobody. The input is a sequence of
// steps, each (action and member, length, payload).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "msa/base/wire.h"
#include "msa/pmix/collective.h"

namespace msa::pmix {
namespace {

constexpr std::uint32_t kSelf = 1;
constexpr std::uint32_t kMembers = 8;

class Member {
 public:
  void Step(std::uint8_t action, std::uint32_t peer, std::string_view payload) {
    switch (action) {
      case 0:
      case 1: {
        auto message = wire::Decode<CollectiveMessage>(payload);
        if (!message.ok()) return;
        if (auto effects = engine_.FromPeer(peer, std::move(*message)); effects.ok()) Take(*effects);
        return;
      }
      case 2: {
        CollectiveEngine::Contribution mine{
            ++last_, CollectiveKind::kFence, {{"n", kRankWildcard}}, {}, "me"};
        const unsigned present = payload.empty() ? 0xff : static_cast<unsigned char>(payload[0]);
        for (std::uint32_t i = 0; i < kMembers; ++i)
          if ((present >> i & 1) != 0) mine.participants.push_back(i);
        open_.insert(last_);
        return Take(engine_.LocalContribution(std::move(mine)));
      }
      case 3:
        return Take(engine_.OnTimeout(peer));
      case 4:
        if (peer != kSelf) Take(engine_.MemberLost(peer, "lost"));
        return;
      default:
        return Take(engine_.ForgetNamespace("n"));
    }
  }

 private:
  void Take(const CollectiveEffects& effects) {
    for (const CollectiveEffect& effect : effects)
      if (const auto* done = std::get_if<CollectiveComplete>(&effect); done != nullptr) {
        if (open_.erase(done->operation) == 0) std::abort();
      } else if (std::get<SendToPeer>(effect).member == kSelf) {
        std::abort();
      }
    if (!engine_.CheckInvariants().ok() || engine_.pending() != open_.size()) std::abort();
  }
  CollectiveEngine engine_{{.self = kSelf, .arity = 2, .max_data_bytes = 64, .max_early_operations = 4}};
  std::set<std::uint64_t> open_;
  std::uint64_t last_ = 0;
};

}  // namespace
}  // namespace msa::pmix

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  msa::pmix::Member member;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const auto first = static_cast<std::uint8_t>(rest[0]);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(rest[1]), rest.size() - 2);
    member.Step(first & 7, first >> 3 & 7, rest.substr(2, length));
    rest.remove_prefix(2 + length);
  }
  return 0;
}
