#include "msa/job/records.h"

#include <algorithm>
#include <utility>

namespace msa {

std::string_view StateName(JobState state) noexcept {
  switch (state) {
    case JobState::kPending:
      return "PENDING";
    case JobState::kStarting:
      return "STARTING";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kEnding:
      return "ENDING";
    case JobState::kCompleted:
      return "COMPLETED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
    case JobState::kTimeout:
      return "TIMEOUT";
    case JobState::kNodeFail:
      return "NODE_FAIL";
  }
  return "UNKNOWN";
}

const wire::Member* JobRecord::FindMember(std::uint32_t index) const {
  const auto it =
      std::find_if(members.begin(), members.end(), [&](const wire::Member& m) { return m.index == index; });
  return it == members.end() ? nullptr : &*it;
}

const wire::Member* JobRecord::MemberOn(std::string_view node) const {
  const auto it =
      std::find_if(members.begin(), members.end(), [&](const wire::Member& m) { return m.node == node; });
  return it == members.end() ? nullptr : &*it;
}

wire::Member* JobRecord::FindMember(std::uint32_t index) {
  return const_cast<wire::Member*>(std::as_const(*this).FindMember(index));
}

bool JobRecord::HoldsShareOf(GrantId grant) const {
  return std::any_of(allocations.begin(), allocations.end(), [&](const Allocation& share) {
    return share.grant == grant && !share.given_back && FindMember(share.member) != nullptr;
  });
}

}  // namespace msa
