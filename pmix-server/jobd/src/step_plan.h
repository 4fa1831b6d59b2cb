#pragma once
// Where a step inside a batch job or an allocation goes: into the slots of the job's own components. Pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msa/base/messages.h"

#include "slot_map.h"

namespace msa::jobd {

struct StepPlace {
  std::vector<wire::App> apps;             // one for each component of the step
  std::vector<std::uint32_t> rank_member;  // member of each rank
  // The slots of each rank. Empty: it holds none (an overlapping step, tasks beyond the cores of a job with
  // --oversubscribe).
  std::vector<std::vector<std::uint16_t>> rank_cores;
};

// One of: placed; waits for a reason; refused for good.
struct StepDecision {
  std::optional<StepPlace> place;
  std::string reason;
  Status refusal;  // kInvalidArgument, kNotFound (with the nearest name), kOutOfRange
  std::set<std::size_t>
      components;  // of the job, that it uses: who waits for them goes before who comes later
};

// The slots of `place` are taken. `components`: as LaunchJob. What fits once all other steps are gone waits;
// what does not, on the nodes that the job has now, is refused with numbers.
StepDecision PlaceStep(const wire::StepOpen& step, const std::vector<wire::PlacedComponent>& components,
                       SlotMap& slots);

}  // namespace msa::jobd
