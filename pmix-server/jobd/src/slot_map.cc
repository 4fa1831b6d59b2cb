#include "slot_map.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace msa::jobd {

void SlotMap::SetMembers(const std::vector<wire::Member>& members) {
  std::map<std::uint32_t, Node> next;
  for (const wire::Member& member : members) {
    Node node{member, {}};
    if (const auto old = nodes_.find(member.index); old != nodes_.end()) {
      node.used = old->second.used;
      // What a task holds stays until it is given back, whatever the new description says.
      node.member.cores.insert(node.member.cores.end(), node.used.begin(), node.used.end());
    }
    std::set<std::uint16_t> seen;
    std::erase_if(node.member.cores, [&](std::uint16_t core) { return !seen.insert(core).second; });
    next.emplace(member.index, std::move(node));
  }
  nodes_ = std::move(next);
}

std::vector<std::uint16_t> SlotMap::Take(std::uint32_t member, std::size_t count) {
  const auto it = nodes_.find(member);
  if (it == nodes_.end() || free(member) < count) return {};
  std::vector<std::uint16_t> taken;
  for (const std::uint16_t core : it->second.member.cores) {
    if (taken.size() == count) break;
    if (it->second.used.insert(core).second) taken.push_back(core);
  }
  return taken;
}

void SlotMap::Give(std::uint32_t member, const std::vector<std::uint16_t>& cores) {
  const auto it = nodes_.find(member);
  if (it == nodes_.end()) return;
  for (const std::uint16_t core : cores) it->second.used.erase(core);
}

std::size_t SlotMap::free(std::uint32_t member) const {
  const auto it = nodes_.find(member);
  if (it == nodes_.end()) return 0;
  const auto& cores = it->second.member.cores;
  return static_cast<std::size_t>(std::count_if(
      cores.begin(), cores.end(), [&](std::uint16_t core) { return !it->second.used.contains(core); }));
}

std::size_t SlotMap::free() const {
  std::size_t sum = 0;
  for (const auto& [index, node] : nodes_) sum += free(index);
  return sum;
}

std::size_t SlotMap::total() const {
  std::size_t sum = 0;
  for (const auto& [index, node] : nodes_) sum += node.member.cores.size();
  return sum;
}

const wire::Member* SlotMap::member(std::uint32_t index) const {
  const auto it = nodes_.find(index);
  return it == nodes_.end() ? nullptr : &it->second.member;
}

std::vector<std::uint32_t> SlotMap::members() const {
  std::vector<std::uint32_t> out;
  for (const auto& [index, node] : nodes_) out.push_back(index);
  return out;
}

namespace {

constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

// Node name -> how many tasks it may take.
Result<std::map<std::string, std::uint32_t>> ParseHosts(const std::vector<std::string>& hosts) {
  std::map<std::string, std::uint32_t> limits;
  for (const std::string& host : hosts) {
    const auto colon = host.find(':');
    const std::string name = host.substr(0, colon);
    std::uint32_t limit = kUnlimited;
    if (colon != std::string::npos) {
      const char* first = host.data() + colon + 1;
      const auto [end, error] = std::from_chars(first, host.data() + host.size(), limit);
      if (error != std::errc() || end != host.data() + host.size() || limit == 0)
        return Error(Code::kInvalidArgument,
                     "host '{}': expected NODE or NODE:COUNT with a count of at least 1", host);
    }
    if (name.empty())
      return Error(Code::kInvalidArgument, "host '{}' names no node; expected NODE or NODE:COUNT", host);
    std::uint32_t& sum = limits[name];
    sum = limit == kUnlimited || sum > kUnlimited - limit ? kUnlimited : sum + limit;
  }
  return limits;
}

bool InModule(const wire::Member& member, const std::string& module) {
  return module.empty() || member.module_name == module || member.module_kind == module;
}

}  // namespace

Result<SpawnDecision> PlaceSpawn(const std::vector<SpawnNeed>& needs, SlotMap& slots) {
  SpawnDecision decision;
  SlotMap trial = slots;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const SpawnNeed& need = needs[i];
    MSA_ASSIGN_OR_RETURN(auto limits, ParseHosts(need.hosts));
    std::uint32_t left = need.ntasks;
    for (const std::uint32_t index : trial.members()) {
      const wire::Member& member = *trial.member(index);
      if (!InModule(member, need.module)) continue;
      std::uint32_t room = kUnlimited;
      if (!limits.empty()) {
        const auto limit = limits.find(member.node);
        if (limit == limits.end()) continue;
        room = limit->second;
      }
      for (; left > 0 && room > 0 && trial.free(index) > 0; --left, --room) {
        decision.place.rank_member.push_back(index);
        decision.place.rank_cores.push_back(trial.Take(index, 1));
      }
    }
    if (left > 0) {
      decision.shortage = {i, left, need.ntasks - left, {}, need.module};
      for (const auto& [name, limit] : limits) decision.shortage.nodes.push_back(name);
      decision.place = {};
      return decision;
    }
  }
  slots = std::move(trial);
  decision.fits = true;
  return decision;
}

}  // namespace msa::jobd
