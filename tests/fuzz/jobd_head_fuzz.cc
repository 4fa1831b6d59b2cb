// The head of a job under arbitrary frames of its members, of the controller and of clients, and under
// members that come and go: it may refuse, never break an invariant. The input is a sequence of steps, each
// (kind and index, low byte of the type, length, payload); see Step(). The top bits of the first byte choose
// what the job is.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
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
  TimerId After(Millis delay, std::function<void()> callback) override {
    timers_[++next_] = {delay, std::move(callback)};
    return TimerId{next_};
  }
  void Cancel(TimerId timer) override { timers_.erase(static_cast<std::uint64_t>(timer)); }
  Instant WallTime() override { return {}; }
  SteadyTime SteadyTimeNow() override { return now_; }
  void SaveExitRecord(const std::string&) override {}
  void MembersKnown(Epoch, const std::vector<wire::Member>&, const std::string&) override {}
  bool IsJoined(std::uint32_t member) override { return joined.contains(member); }
  void JobOver() override {}
  void Log(const std::string&) override {}
  std::string NewSecret() override { return std::string(64, 'a'); }
  Result<std::string> ListenLink(std::uint64_t, const LinkTicket&) override { return std::string("unix:/x"); }
  Status OpenLink(std::uint64_t, const LinkTicket&, const std::string&) override { return Status::Ok(); }
  void ToLink(std::uint64_t, std::uint16_t, std::uint64_t, std::string) override {}
  void CloseLink(std::uint64_t) override {}
  void FireOldest() {
    if (timers_.empty()) return;
    auto [delay, callback] = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    now_ += delay;
    callback();
  }
  std::set<std::uint32_t> joined = {0, 1};

 private:
  std::map<std::uint64_t, std::pair<Millis, std::function<void()>>> timers_;
  std::uint64_t next_ = 0;
  SteadyTime now_{};
};

wire::LaunchJob TwoNodes(wire::JobMode mode) {
  wire::LaunchJob launch;
  launch.interactive = true;
  launch.mode = mode;
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
  if (mode == wire::JobMode::kStep) return launch;
  launch.components = {{"m", 3, 0, 1, {{0, {0, 1, 2}, 3}}}, {"n", 3, 0, 1, {{1, {0, 1, 2}, 3}}}};
  launch.step.step = wire::kBatchStep;
  launch.step.apps[0].ntasks = 1;
  launch.step.rank_member = {0};
  if (mode == wire::JobMode::kBatch) return launch;
  launch.step.apps.clear();
  launch.step.rank_member.clear();
  return launch;
}

// Frames of the head of another job: of link 1, which a LinkOffer or LinkAnswer of the controller made.
void StepOfLink(Head& head, std::uint32_t index, std::uint16_t low, wire::Frame& frame) {
  frame.type = static_cast<std::uint16_t>(0x0500 | low);
  if (low == 0) return head.OnLinkUp(index);
  if (low == 1) return head.OnLinkLost(index, "lost");
  if (low == 2) return head.OnControllerLink();
  head.OnLinkFrame(index, frame);
}

// kind_and_index: kind in the low three bits, member or session in the two above.
void Step(Head& head, Silent& outlet, std::uint8_t kind_and_index, wire::Frame frame) {
  const std::uint16_t low = frame.type;
  const std::uint32_t index = kind_and_index >> 3 & 3;
  switch (kind_and_index & 7) {
    case 0:
      frame.type = static_cast<std::uint16_t>(0x0500 | low);
      return head.OnMember(index, frame);
    case 1:
      frame.type = static_cast<std::uint16_t>(0x0200 | low);
      return head.OnController(frame);
    case 2:
      frame.type = static_cast<std::uint16_t>(0x0400 | low);
      return head.OnSession(1 + index, frame);
    case 3:
      outlet.joined.insert(index);
      return head.OnMemberJoined(index);
    case 4:
      outlet.joined.erase(index);
      return head.OnMemberLost(index, "lost");
    case 5:
      return head.OnSessionsLost();
    case 6:
      return StepOfLink(head, index, low, frame);
    default:
      return outlet.FireOldest();
  }
}

}  // namespace
}  // namespace msa::jobd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::jobd;
  Silent outlet;
  const int kind = size == 0 ? 0 : data[0] >> 5;
  const bool slurms = kind == 7;
  msa::wire::LaunchJob launch =
      TwoNodes(slurms ? msa::wire::JobMode::kAlloc : static_cast<msa::wire::JobMode>(kind % 3));
  launch.slurms = slurms;
  Head head(std::move(launch), outlet);
  head.Start();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 3) {
    const auto kind_and_index = static_cast<std::uint8_t>(rest[0]);
    const auto low = static_cast<std::uint8_t>(rest[1]);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(rest[2]), rest.size() - 3);
    Step(head, outlet, kind_and_index, {low, 0, 1, std::string(rest.substr(3, length))});
    rest.remove_prefix(3 + length);
    if (const auto status = head.CheckInvariants(); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::abort();
    }
  }
  return 0;
}
