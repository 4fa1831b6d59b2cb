#pragma once
// Which cores of a job's nodes its namespaces use, and where a spawn goes. Pure.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/status.h"

namespace msa::jobd {

// A slot is a core of a member. A namespace takes cpus_per_task slots for each of its tasks while it lives.
class SlotMap {
 public:
  // Members that are new are added, those absent go, cores of the others are updated; what is taken stays
  // taken.
  void SetMembers(const std::vector<wire::Member>& members);
  void Remove(std::uint32_t member) { nodes_.erase(member); }

  // The lowest `count` free cores of a member; none at all if it has fewer.
  std::vector<std::uint16_t> Take(std::uint32_t member, std::size_t count);
  void Give(std::uint32_t member, const std::vector<std::uint16_t>& cores);

  // The free ones among `cores`, in their order.
  std::vector<std::uint16_t> FreeOf(std::uint32_t member, const std::vector<std::uint16_t>& cores) const;
  void TakeThese(std::uint32_t member, const std::vector<std::uint16_t>& cores);
  // The same members with nothing taken.
  SlotMap AllFree() const;

  bool AnyUsed(std::uint32_t member, const std::vector<std::uint16_t>& cores) const;
  std::size_t free(std::uint32_t member) const;
  std::size_t free() const;
  std::size_t total() const;
  const wire::Member* member(std::uint32_t index) const;
  std::vector<std::uint32_t> members() const;

 private:
  struct Node {
    wire::Member member;
    std::set<std::uint16_t> used;
  };
  std::map<std::uint32_t, Node> nodes_;
};

// What one command of a spawn asks of its nodes.
struct SpawnNeed {
  std::uint32_t ntasks = 1;
  std::vector<std::string> hosts;  // only these nodes; "NODE" or "NODE:N", at most N tasks there; empty: any
  std::string module;              // name, kind or id; empty: any
  std::uint32_t nodes = 0;         // spread evenly over exactly so many; 0: as few as hold them
  std::uint32_t per_node = 0;      // at most so many tasks on a node; 0: as the slots allow
};

struct SpawnPlace {
  std::vector<std::uint32_t> rank_member;              // member of each rank, commands one after another
  std::vector<std::vector<std::uint16_t>> rank_cores;  // the slot of each
};

struct SpawnShortage {
  std::size_t command = 0;         // the first that does not fit
  std::uint32_t missing = 0;       // slots
  std::uint32_t fits = 0;          // tasks of it that would fit
  std::vector<std::string> nodes;  // it is restricted to these
  std::string module;
  std::uint32_t more_nodes = 0;      // with SpawnNeed::nodes: on exactly so many further nodes
  std::uint32_t slots_per_node = 0;  // of the missing slots, at most so many on a node; 0: any
};

struct SpawnDecision {
  bool fits = false;
  SpawnPlace place;        // fits; the slots are taken
  SpawnShortage shortage;  // does not; nothing is taken
};

// All or nothing. Fills members in order of their index. kInvalidArgument: a malformed host, with its text.
Result<SpawnDecision> PlaceSpawn(const std::vector<SpawnNeed>& needs, SlotMap& slots);

}  // namespace msa::jobd
