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

std::vector<std::uint16_t> SlotMap::FreeOf(std::uint32_t member,
                                           const std::vector<std::uint16_t>& cores) const {
  std::vector<std::uint16_t> free;
  const auto it = nodes_.find(member);
  if (it == nodes_.end()) return free;
  const auto& there = it->second.member.cores;
  for (const std::uint16_t core : cores)
    if (!it->second.used.contains(core) && std::find(there.begin(), there.end(), core) != there.end())
      free.push_back(core);
  return free;
}

void SlotMap::TakeThese(std::uint32_t member, const std::vector<std::uint16_t>& cores) {
  const auto it = nodes_.find(member);
  if (it != nodes_.end()) it->second.used.insert(cores.begin(), cores.end());
}

SlotMap SlotMap::AllFree() const {
  SlotMap out = *this;
  for (auto& [index, node] : out.nodes_) node.used.clear();
  return out;
}

bool SlotMap::AnyUsed(std::uint32_t member, const std::vector<std::uint16_t>& cores) const {
  const auto it = nodes_.find(member);
  return it != nodes_.end() && std::any_of(cores.begin(), cores.end(), [&](std::uint16_t core) {
           return it->second.used.contains(core);
         });
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
  return module.empty() || member.module_name == module || member.module_kind == module ||
         fmt::format("{}", member.module) == module;
}

// The members that a command may use, and how many of its tasks each may take at most.
Result<std::vector<std::pair<std::uint32_t, std::uint32_t>>> RoomOf(const SpawnNeed& need,
                                                                    const SlotMap& slots) {
  MSA_ASSIGN_OR_RETURN(const auto limits, ParseHosts(need.hosts));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> room;
  for (const std::uint32_t index : slots.members()) {
    const wire::Member& member = *slots.member(index);
    if (!InModule(member, need.module)) continue;
    std::uint32_t most = need.per_node == 0 ? kUnlimited : need.per_node;
    if (!limits.empty()) {
      const auto limit = limits.find(member.node);
      if (limit == limits.end()) continue;
      most = std::min(most, limit->second);
    }
    most = static_cast<std::uint32_t>(std::min<std::size_t>(most, slots.free(index)));
    if (most > 0) room.emplace_back(index, most);
  }
  return room;
}

// How many tasks each of `nodes` nodes takes: even, the first ones one more.
std::uint32_t EvenShare(const SpawnNeed& need, std::uint32_t node) {
  return need.ntasks / need.nodes + (node < need.ntasks % need.nodes ? 1 : 0);
}

// Takes slots for what fits of `need`; returns how many tasks do.
std::uint32_t TakeRoom(const SpawnNeed& need,
                       const std::vector<std::pair<std::uint32_t, std::uint32_t>>& room, SlotMap& slots,
                       SpawnPlace& place, std::uint32_t& nodes_used) {
  std::uint32_t placed = 0;
  for (const auto& [index, most] : room) {
    std::uint32_t tasks = std::min(most, need.ntasks - placed);
    if (need.nodes > 0) {
      if (nodes_used == need.nodes) break;
      tasks = EvenShare(need, nodes_used);
      if (most < tasks) continue;
    }
    if (tasks == 0) break;
    ++nodes_used;
    placed += tasks;
    for (; tasks > 0; --tasks) {
      place.rank_member.push_back(index);
      place.rank_cores.push_back(slots.Take(index, 1));
    }
  }
  return placed;
}

}  // namespace

Result<SpawnDecision> PlaceSpawn(const std::vector<SpawnNeed>& needs, SlotMap& slots) {
  SpawnDecision decision;
  SlotMap trial = slots;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const SpawnNeed& need = needs[i];
    MSA_ASSIGN_OR_RETURN(const auto room, RoomOf(need, trial));
    std::uint32_t nodes_used = 0;
    const std::uint32_t placed = TakeRoom(need, room, trial, decision.place, nodes_used);
    if (placed == need.ntasks) continue;
    decision.shortage = {i, need.ntasks - placed, placed, {}, need.module, 0, need.per_node};
    if (need.nodes > 0) {
      decision.shortage.more_nodes = need.nodes - nodes_used;
      decision.shortage.slots_per_node = EvenShare(need, nodes_used);
    }
    MSA_ASSIGN_OR_RETURN(const auto limits, ParseHosts(need.hosts));
    for (const auto& [name, limit] : limits) decision.shortage.nodes.push_back(name);
    decision.place = {};
    return decision;
  }
  slots = std::move(trial);
  decision.fits = true;
  return decision;
}

}  // namespace msa::jobd
