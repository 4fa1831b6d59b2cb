// The head of a job under arbitrary frames of its members, of the controller and of clients: it may refuse,
// never break an invariant. The input is a sequence of (source, type, length, payload).
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

#include "head.h"

namespace msa::jobd {
namespace {

class Silent final : public HeadOutlet {
 public:
  void ToMember(std::uint32_t, std::uint16_t, std::uint64_t, std::string) override {}
  void ToController(std::uint16_t, std::string) override {}
  void ToSession(std::uint64_t, std::uint16_t, std::string) override {}
  void EndSession(std::uint64_t) override {}
  TimerId After(Millis, std::function<void()> callback) override {
    timers[++next] = std::move(callback);
    return TimerId{next};
  }
  void Cancel(TimerId timer) override { timers.erase(static_cast<std::uint64_t>(timer)); }
  Instant WallTime() override { return {}; }
  SteadyTime SteadyTimeNow() override { return {}; }
  void SaveExitRecord(const std::string&) override {}
  void MembersKnown(Epoch, const std::vector<wire::Member>&, const std::string&) override {}
  bool IsJoined(std::uint32_t) override { return true; }
  void JobOver() override {}
  void Log(const std::string&) override {}
  void FireOldest() {
    if (timers.empty()) return;
    const auto callback = std::move(timers.begin()->second);
    timers.erase(timers.begin());
    callback();
  }
  std::map<std::uint64_t, std::function<void()>> timers;
  std::uint64_t next = 0;
};

wire::LaunchJob TwoNodes() {
  wire::LaunchJob launch;
  launch.interactive = true;
  launch.step.nspace = "n";
  launch.step.apps.resize(1);
  launch.step.apps[0].argv = {"a"};
  launch.step.apps[0].ntasks = 2;
  launch.step.rank_member = {0, 1};
  launch.members.resize(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    launch.members[i].index = i;
    launch.members[i].node = i == 0 ? "a" : "b";
    launch.members[i].cores = {0, 1, 2};
  }
  return launch;
}

}  // namespace
}  // namespace msa::jobd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::jobd;
  Silent outlet;
  Head head(TwoNodes(), outlet);
  head.Start();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 3) {
    const auto source = static_cast<std::uint8_t>(rest[0]);
    const auto low = static_cast<std::uint8_t>(rest[1]);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(rest[2]), rest.size() - 3);
    msa::wire::Frame frame{0, 0, 1, std::string(rest.substr(3, length))};
    rest.remove_prefix(3 + length);
    switch (source % 5) {
      case 0:
      case 1:
        frame.type = static_cast<std::uint16_t>(0x0500 | low);
        head.OnMember(source % 5, frame);
        break;
      case 2:
        frame.type = static_cast<std::uint16_t>(0x0200 | low);
        head.OnController(frame);
        break;
      case 3:
        frame.type = static_cast<std::uint16_t>(0x0400 | low);
        head.OnSession(1 + source / 128, frame);
        break;
      default:
        outlet.FireOldest();
        break;
    }
    if (!head.CheckInvariants().ok()) std::abort();
  }
  return 0;
}
