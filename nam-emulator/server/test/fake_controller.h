#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/nam_messages.h"
#include "msa/namd/extent_name.h"

#include "frame_socket.h"

namespace msa::namd::test {

inline constexpr Millis kLimit{30'000};

// HMAC-SHA256.
std::string Hmac(std::string_view key, std::string_view text);

// Plays the node daemon and the controller behind it for one namd, on the test's own thread: takes its link,
// welcomes it, has extents made, gives leases.
class FakeController {
 public:
  // Listens at DIR/n/<node>/nam-link.sock; the directories are made.
  FakeController(std::string dir, std::string node);

  // The next connection's hello; nullopt: none came.
  std::optional<wire::NamdHello> AwaitHello();
  // With what Allocate and Commit have made so far, unless a test has changed `expected`.
  void Welcome();
  bool Connect() {
    if (!AwaitHello()) return false;
    Welcome();
    return true;
  }
  // Ends the link, as a node daemon does that was restarted or has registered anew.
  void Hangup() { link_.Close(); }

  // nullopt: no answer within the limit.
  std::optional<wire::NamExtentDone> Allocate(const wire::NamExtentAllocate& allocate);
  std::optional<wire::NamExtentDone> Allocate(const ExtentKey& key, std::vector<std::uint64_t> segment_bytes);
  void Commit(const ExtentKey& key);
  bool AllocateAndCommit(const ExtentKey& key, std::vector<std::uint64_t> segment_bytes);
  // Returns the request's number, for AwaitDone.
  std::uint64_t Free(const ExtentKey& key);
  std::optional<wire::NamExtentDone> AwaitDone(std::uint64_t request, Millis limit = kLimit);
  void Revoke(std::vector<LeaseId> leases, std::vector<NamClientId> clients = {});

  // Of a region whose whole memory is this extent, as `expected` has it.
  wire::NamLease LeaseOf(const ExtentKey& key, std::uint32_t uid, NamRights rights = NamRights::kAll);
  std::string Sign(const wire::NamLease& lease) const;

  template <class M>
  void Send(const M& message) {
    link_.Send(message);
  }
  // Messages of other kinds wait for their own Await.
  template <class M>
  std::optional<M> Await(Millis limit = kLimit) {
    const SteadyTime until = SteadyNow() + limit;
    for (;;) {
      for (auto it = received_.begin(); it != received_.end(); ++it) {
        if (it->type != M::kType) continue;
        auto message = wire::Decode<M>(it->payload);
        received_.erase(it);
        if (message.ok()) return std::move(*message);
        return std::nullopt;
      }
      const auto left = std::chrono::duration_cast<Millis>(until - SteadyNow());
      if (left.count() < 0) return std::nullopt;
      auto frame = link_.Receive(left);
      if (!frame) return std::nullopt;
      received_.push_back(std::move(*frame));
    }
  }

  static std::vector<wire::NamSegmentPlace> Places(const std::vector<std::uint64_t>& segment_bytes);

  struct Expected {
    wire::NamExtentState state = wire::NamExtentState::kPending;
    std::vector<wire::NamSegmentPlace> segments;
  };
  std::map<ExtentKey, Expected> expected;
  std::uint64_t system = 0x5157454d;
  std::string key = std::string(32, 's');
  std::vector<LeaseId> live;
  std::uint64_t next_lease = 1;

 private:
  std::string dir_;
  std::string node_;
  UniqueFd listener_;
  FrameSocket link_;
  std::deque<wire::Frame> received_;
  std::uint64_t next_request_ = 1;
};

}  // namespace msa::namd::test
