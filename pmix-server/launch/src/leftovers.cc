#include "leftovers.h"

namespace msa::launch {

std::vector<pid_t> SelectLeftovers(const std::vector<ProcessEntry>& below, const Ownership& ownership) {
  std::vector<pid_t> out;
  std::set<pid_t> ours = ownership.ours;
  std::set<pid_t> others = ownership.others;
  for (const ProcessEntry& process : below) {
    const auto in = [&process](const std::set<pid_t>& leaders) {
      return leaders.contains(process.pid) || leaders.contains(process.parent) ||
             leaders.contains(process.group) || leaders.contains(process.session);
    };
    if (in(ours) || (!in(others) && ownership.carries_name(process.pid))) {
      ours.insert(process.pid);
      out.push_back(process.pid);
    } else if (in(others)) {
      others.insert(process.pid);
    }
  }
  return out;
}

}  // namespace msa::launch
